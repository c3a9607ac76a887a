"""The power fails at random instants under load: every acknowledged message is there when it comes back."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from narrowcast.deliver.transport.nats.link import connect_nats
from narrowcast.deliver.transport.nats.log import NatsLog
from narrowcast.deliver.transport.nats.server import NatsServer
from narrowcast.deliver.wire import Batch, decode_entry, encode_entry
from narrowcast.errors import TransportError
from system.power import ImageDisk, image_disk, started_again

pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a disk"),
]
WRITERS = 6


def powerless(folder: Path, times: int, *, sync: str = "always", seed: int = 1) -> dict[str, int]:
    """So many failures; how many acknowledged messages there were in all, and how many were lost."""
    try:
        with image_disk(folder) as disk:
            return asyncio.run(asyncio.wait_for(_fail(folder, disk, times, sync, Random(seed)), 60 + 20 * times))
    except TimeoutError:
        raise
    except OSError as error:
        pytest.skip(f"a disk cannot be made here: {error}")


async def _fail(folder: Path, disk: ImageDisk, times: int, sync: str, rng: Random) -> dict[str, int]:
    server = NatsServer(disk.place / "data", sync=sync)
    link = await connect_nats(await server.start())
    log = NatsLog(link)
    await log.start((0,))
    acked: list[int] = []
    over = asyncio.Event()

    async def write(first: int) -> None:
        number = first
        while not over.is_set():  # a cancellation alone may be swallowed before Python 3.12, where an answer just came
            data = encode_entry(Batch("w", number, (b'{"n":%d,"x":"%s"}' % (number, b"y" * rng.randrange(400)),)))
            with suppress(TransportError):
                await log.append(0, data, dedup=str(number))
                acked.append(number)
            number += WRITERS

    tasks = [asyncio.ensure_future(write(first)) for first in range(WRITERS)]
    found = {"failures": 0, "acknowledged": 0, "lost": 0, "disturbed": 0}
    assert server.process is not None
    pid = int((disk.place / "data" / "nats.pid").read_text())
    try:
        while found["failures"] < times:
            await asyncio.sleep(rng.uniform(0.02, 0.25))
            owed = set(acked)  # nothing runs here until the copy is there
            disk.lose_power(pid, folder / "copy")
            kept = await asyncio.to_thread(lambda: asyncio.run(_kept(folder)))
            found["failures"] += 1
            found["acknowledged"] += len(owed)
            found["lost"] += len(owed - kept)
    finally:
        over.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await link.close()
        await server.stop()
    return found | {"disturbed": disk.disturbed}


async def _kept(folder: Path) -> set[int]:
    """The messages in the log of the copy, by a server of its own."""
    with started_again(folder / "copy", folder / "again") as place:
        server = NatsServer(place / "data", port=None, sync="2m")
        (place / "data" / "nats.url").unlink(missing_ok=True)  # the port is still in use
        link = await connect_nats(await server.start())
        try:
            log = NatsLog(link)
            await log.start((0,), make=False)
            kept: set[int] = set()
            after = 0
            with suppress(TransportError):  # a log that is not there holds nothing
                while entries := (await log.read(0, after, most=512)).entries:
                    after = entries[-1].sequence
                    batches = [decode_entry(entry.data) for entry in entries]
                    kept |= {batch.number for batch in batches if isinstance(batch, Batch)}
            return kept
        finally:
            await link.close()
            await server.stop()


@pytest.mark.slow
def test_what_was_acknowledged_survives_power_failures(tmp_path: Path) -> None:
    found = powerless(tmp_path, 5)
    assert found["acknowledged"] > 20, found
    assert found["lost"] == 0, found


@pytest.mark.slow
def test_a_log_that_does_not_sync_loses_what_it_acknowledged(tmp_path: Path) -> None:
    """So that one sees that the failures are ones."""
    assert powerless(tmp_path, 2, sync="2m")["lost"] > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_what_was_acknowledged_survives_two_hundred_power_failures(tmp_path: Path) -> None:
    found = powerless(tmp_path, 200, seed=2)
    assert found["lost"] == 0, found
