"""A log whose disk is full, on a real small disk with the real server: what is said, what goes on, what comes back."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.processes.overview import Overview
from narrowcast.deliver.processes.supervise import Supervisor, local_system
from narrowcast.deliver.processes.system import System
from narrowcast.errors import TransportError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """64 MiB, and no more."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Somebody else's file, that leaves so many bytes."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as out:
        try:
            while (room := shutil.disk_usage(disk).free - leave) > 0:
                out.write(bytes(min(room, 1 << 20)))
        except OSError:
            pass  # to the last byte
    return ballast


@asynccontextmanager
async def running(local: System) -> AsyncIterator[Supervisor]:
    stop, supervisor = asyncio.Event(), Supervisor(local, sync="2m")
    task = asyncio.ensure_future(supervisor.run(stop))
    try:
        while not supervisor._ready and not task.done():
            await asyncio.sleep(0.05)
        if task.done():
            task.result()
        yield supervisor
        assert not task.done(), "the supervisor ended"
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


async def taken(wanted: Subscription, last: int) -> tuple[list[int], list[str]]:
    """Numbers and gaps until message `last` has come."""
    numbers: list[int] = []
    gaps: list[str] = []
    while last not in numbers:
        batch = await asyncio.wait_for(anext(wanted), 20)
        gaps += [batch.gap] if batch.gap else []
        numbers += [row["n"] for row in batch]
    return numbers, gaps


class Writer:
    """Publishes numbers, and knows which were acknowledged and which nobody can tell of."""

    def __init__(self, client: Connection) -> None:
        self.client = client
        self.next = 0
        self.acknowledged: list[int] = []
        self.unknown: list[int] = []

    async def write(self, size: int = 100) -> str:
        """What was said to the next number; "" if it was acknowledged. Within seconds."""
        n, self.next = self.next, self.next + 1
        try:
            await asyncio.wait_for(self.client.publish({"n": n, "x": "y" * size}), 6)
        except TransportError as error:
            if "unknown" in str(error):
                self.unknown.append(n)
            return str(error)
        self.acknowledged.append(n)
        return ""


@pytest.mark.parametrize("leave", [0, 2_000_000])
def test_a_full_disk_is_said_delivery_goes_on_and_publishing_comes_back_by_itself(disk: Path, leave: int) -> None:
    """To the last byte, where the server stops taking anything, and with the reserve that keeps it from that."""

    async def run() -> None:
        folder = disk / "data"
        local = local_system(folder, None, key=("n",), multicast=None)
        async with running(local) as supervisor, connect(folder) as client, connect(folder) as other:
            writer = Writer(client)
            ann = await other.subscribe("n >= 0", name="ann").ready()
            late = await other.subscribe("n >= 0", name="late").ready()
            for _ in range(50):
                assert await writer.write() == ""
            ballast = fill(disk, leave)
            server = supervisor.server.process
            while leave and not supervisor._disk.full:  # a quick writer would have the reserve before anybody looks
                await asyncio.sleep(0.05)
            while not (said := await writer.write(10_000)):
                assert writer.next < 500, "a full disk takes everything"
            assert said.startswith("the log's disk is full: free space on it, or keep less"), said
            assert "\n" not in said
            for _ in range(3):
                assert (await writer.write()).startswith("the log's disk is full"), "and to the next one too"
            acknowledged = list(writer.acknowledged)
            assert await taken(ann, acknowledged[-1]) == (acknowledged, [])
            supervisor.processes["source-0"].send_signal(signal.SIGKILL)  # nothing can be written down about it
            await asyncio.sleep(1.0)
            assert await taken(late, acknowledged[-1]) == (acknowledged, [])
            if leave:  # the registry has the reserve to write to
                fresh = other.subscribe("n >= 0", name="fresh", from_start=True)
                assert await taken(fresh, acknowledged[-1]) == (acknowledged, [])

            ballast.unlink()
            end = asyncio.get_running_loop().time() + 10
            while await writer.write():
                assert asyncio.get_running_loop().time() < end, "publishing did not come back"
                await asyncio.sleep(0.1)
            for _ in range(50):
                assert await writer.write() == ""
            since = [n for n in writer.acknowledged if n not in acknowledged]
            for each in (ann, late):
                numbers, gaps = await taken(each, since[-1])
                assert gaps == []
                assert [n for n in numbers if n not in writer.unknown] == since
                assert numbers == sorted(set(numbers))
            assert (supervisor.server.process is server) is bool(leave), "restarted only where it had to be"

    asyncio.run(asyncio.wait_for(run(), 60))


def test_by_default_the_log_does_not_fill_the_disk_and_what_it_drops_is_counted_and_told(disk: Path) -> None:
    async def run() -> None:
        folder = disk / "data"
        async with running(local_system(folder, None, key=("n",), multicast=None)), connect(folder) as client:
            position = (await client.subscribe("n >= 0", name="first").ready()).position
            while " started" not in (folder / "coordinator.log").read_text():  # from then on it counts
                await asyncio.sleep(0.05)
            writer = Writer(client)
            for _ in range(100):
                assert await writer.write(900_000) == "", "the log filled the disk"
            assert shutil.disk_usage(disk).free > 16_000_000
            slow = client.subscribe("n >= 0", name="slow", position=position)
            numbers, gaps = await taken(slow, 99)
            assert gaps == ["log"]
            assert numbers == list(range(numbers[0], 100))
            assert 50 < numbers[0] < 90  # about 30 MB are left

            top, base = Overview(), await backbone((folder / "nats.url").read_text().strip(), name="top")
            told: asyncio.Queue[bytes] = asyncio.Queue()
            await base.listen_statistics(told.put_nowait)
            dropped = 0
            while dropped < numbers[0]:
                top.take(json.loads(await asyncio.wait_for(told.get(), 10)), asyncio.get_running_loop().time())
                for node in top.measured(1.0)["nodes"]:
                    if node["role"] == "coordinator" and "dropped by retention" in node["trouble"]:
                        text = node["trouble"].split("entries dropped by retention ")[1]
                        dropped = int(text.split(", ")[0].replace(",", ""))
            assert numbers[0] <= dropped <= numbers[0] + 5  # entries of the system's own are among them
            await base.close()
        assert "entries dropped by retention" in (folder / "coordinator.log").read_text()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_retention_can_be_set_changed_and_taken_away(disk: Path) -> None:
    async def becomes(retention: str, wanted: tuple[int, float]) -> None:
        folder, found = disk / "data", None
        async with running(local_system(folder, None, key=("n",), multicast=None, shards=2, retention=retention)):
            base = await backbone((folder / "nats.url").read_text().strip(), name="look")
            for _ in range(100):  # the coordinator sets it, and may have been started just now
                config = (await base.link.js.stream_info("nc-log-1")).config
                found = (config.max_bytes, config.max_age)
                if found == wanted:
                    break
                await asyncio.sleep(0.1)
            await base.close()
        assert found == wanted

    async def run() -> None:
        await becomes("40MB,3h", (20_000_000, 10_800))
        await becomes("7d", (-1, 604_800))
        await becomes("none", (-1, 0))

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_process_that_dies_on_a_full_disk_does_not_take_the_supervisor_with_it(disk: Path) -> None:
    async def run() -> None:
        local = local_system(disk / "data", None, key=("n",), multicast=None)
        async with running(local) as supervisor:
            ballast = fill(disk, 0)
            first = supervisor.processes["source-0"]
            first.send_signal(signal.SIGKILL)
            await asyncio.sleep(1.5)
            ballast.unlink()
            for _ in range(80):
                if supervisor.processes["source-0"] is not first:
                    break
                await asyncio.sleep(0.1)
            assert supervisor.processes["source-0"] is not first

    asyncio.run(asyncio.wait_for(run(), 60))


def test_up_on_a_full_disk_says_so_in_one_line(disk: Path) -> None:
    fill(disk, 0)
    command = [sys.executable, "-m", "narrowcast.cli", "up", "--system", str(disk / "data"), "--no-multicast"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode not in (0, 4)
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
