"""Packets of somebody without a credential, from inside the segment or from another host, against a running system.

`python -m system.packets victim FOLDER INTERFACE` runs a system, publishes and subscribes until FOLDER/stop is there,
and writes what became of it; `… intruder FOLDER INTERFACE PACKETS` sends packets. Each may run in a network namespace.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import deque
from pathlib import Path
from random import Random
from typing import Any

from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.processes.supervise import local_system
from narrowcast.deliver.transport import Multicast
from narrowcast.deliver.transport.dds.config import DdsSettings, partition
from narrowcast.deliver.transport.dds.node import DdsNode
from narrowcast.deliver.wire import Frame, Pulse, Seal, decode, encode, encode_payload, end_of, place, sequence_of
from narrowcast.deliver.wire.bundle import unbundled
from narrowcast.deliver.wire.frame import EVERY, NO_FLOW, PREFIX
from system.hosts import Hosts
from system.live import a_plan, by_channel, running, upto

DOMAIN = 68
PATHS = f"{Path(__file__).parents[1]}:{Path(__file__).parents[2] / 'src'}"
FORGED = -666  # the number of every message that nobody published
BEYOND = 3  # entries that do not exist yet, and of which an intruder says that it knows them
GENERATION = 64  # bits of a place below the number of its log's generation
_TO_ARRIVE = 10_000_000_000  # ns
REFUSED = ("forged", "replayed", "foreign", "no key")


class Intruder:
    """Somebody in the segment: hears what goes by, and sends what it likes into the sessions that somebody takes.

    Each lie is a packet of its own, and DDS brings it to every receiver: it goes as fast as the slowest counts them.
    """

    def __init__(self, multicast: DdsSettings) -> None:
        self.node = _Stranger(multicast)
        names = [partition(Multicast(group, session)) for group in range(3) for session in range(4)]
        self._ears = [self.node.reader(name) for name in names]
        self._mouths = [self.node.writer(name) for name in names]
        self.heard: deque[bytes] = deque(maxlen=200)
        self.sent = 0
        self._random = Random(5)
        self._seal = Seal(1, sealed=True)

    def listen(self, frames: int, limit: float = 30.0) -> None:
        """Until so many frames have been heard, and some sessions are known to have receivers."""
        end = time.monotonic() + limit
        while (len(self.heard) < frames or not self._taken()) and time.monotonic() < end:
            self._hear()
            time.sleep(0.02)
        for mouth in self._taken():
            self._send(mouth, b"")
            assert mouth.wait_for_acks(_TO_ARRIVE), "no receiver hears the intruder"

    def _taken(self) -> list[Any]:
        return [mouth for mouth in self._mouths if mouth.get_matched_subscriptions()]

    def _hear(self) -> None:
        for reader, _ in self._ears:
            for packet in self.node.take(reader, 256):
                self.heard += [frame for frame in unbundled(packet) if len(frame) >= PREFIX.size]

    def lies(self, data: bytes) -> list[bytes]:
        """Made from one frame that was heard: as it is, damaged, cut, and others with its names on them."""
        rng = self._random
        _, _, _, system, epoch, channel, plan = PREFIX.unpack_from(data)
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        near, far = self._stretch(data)
        message = (place(sequence_of(far), 0), NO_FLOW, encode_payload({"s": "a", "n": FORGED}))
        claims = [Frame(0, channel, epoch, near, far, messages) for messages in ((message,), ())]
        claims += [] if channel != EVERY else [Pulse(0, epoch, near, far)]  # type: ignore[list-item]
        self._seal.system = system
        self._seal.know(epoch, plan)
        self._seal.add_root(epoch, rng.randbytes(32))
        made = [data, bytes(flipped), data[: rng.randrange(1, len(data))], rng.randbytes(80)]
        made += [encode(claim, system, plan) for claim in claims]
        return made + [self._seal.pack(claim) for claim in claims]

    def _stretch(self, data: bytes) -> tuple[int, int]:
        """What to claim: of a frame that can be read, from before all that its receivers have to a little beyond.

        The number of a log's generation cannot be guessed, so beyond a seal it is one that no log has come to.
        """
        read = decode(data)
        if isinstance(read, Frame | Pulse):
            return read.upto >> GENERATION << GENERATION, end_of(sequence_of(read.upto) + BEYOND)
        far = end_of((1 << 110) + self._random.randrange(1 << 30))
        return far - 500_000, far

    def attack(self, packets: int) -> None:
        """Send so many, with new ones from what is heard meanwhile."""
        while self.sent < packets:
            self._hear()
            taken = self._taken() or self._mouths
            for _ in range(20):
                for lie in self.lies(self._random.choice(self.heard)):
                    self._send(self._random.choice(taken), lie)

    def _send(self, mouth: Any, lie: bytes) -> None:
        end = time.monotonic() + 5
        while not self.node.write(mouth, lie):  # as fast as they are taken
            if time.monotonic() > end:
                return  # that one does not take anything
            time.sleep(0.0005)
        self.sent += 1


class _Stranger(DdsNode):
    """Does not hear itself."""

    def reader(self, name: str) -> Any:
        kept, local = self._qos, self._core.Policy.IgnoreLocal.Participant
        self._qos = kept + self._core.Qos(local)
        try:
            return super().reader(name)
        finally:
            self._qos = kept


def segment(interface: str) -> DdsSettings:
    return DdsSettings(domain=DOMAIN, groups=4, interface=interface, network=f"239.{DOMAIN}.0.0/16")


def assaulted(folder: Path, packets: int, *, seal: bool = True) -> dict[str, Any]:
    """Publish and subscribe while somebody in the segment sends packets; what became of both.

    Without seals publishing goes on whatever comes, and what comes is held against it at the end.
    """

    async def attack(client: Connection) -> None:
        env = os.environ | {"PYTHONPATH": PATHS}
        command = ("-m", "system.packets", "intruder", str(folder), "lo", str(packets))
        intruder = await asyncio.create_subprocess_exec(sys.executable, *command, env=env)
        try:
            assert await intruder.wait() == 0, "the intruder did not get to its end"
        finally:
            if intruder.returncode is None:
                intruder.kill()

    async def run() -> dict[str, Any]:
        found = await (besieged if seal else unsealed)(folder, segment("lo"), attack)
        return found | json.loads((folder / "sent.json").read_text())

    return asyncio.run(asyncio.wait_for(run(), 90 + packets / 300))


async def besieged(folder: Path, multicast: DdsSettings, attack: Any) -> dict[str, Any]:
    """A system with one subscriber, while an attack goes on; what it got that was not sent, and by which way."""
    local = local_system(folder / "data", a_plan(folder / "plan"), multicast=multicast)
    async with running(local), connect(local.folder) as client:
        ann = await client.subscribe("s = 'a'", name="ann").ready()
        await by_channel(client, client, ann, {"s": "a"})
        under_way = asyncio.ensure_future(attack(client))
        await client.publish({"s": "a", "n": -99})
        await upto(ann, -99)
        before, wrong, n = client.ways["channel"], [], 0
        while (not under_way.done() or n < 200) and not wrong:
            await client.publish({"s": "a", "n": n})
            found = await next_one(ann)
            if found != ([n], []):
                wrong.append([n, found])
            n += 1
        await under_way
        assert client._edge is not None
        counts = client._edge.part.counts + client._edge.counts
        refused = sum(count for name, count in counts.items() if name in REFUSED or name.startswith("malformed"))
        by_way = client.ways["channel"] - before
        return {"received": n, "wrong": wrong, "by channel": by_way, "refused": refused, "counts": counts}


async def unsealed(folder: Path, multicast: DdsSettings, attack: Any, *, seal: bool = False) -> dict[str, Any]:
    """The same with frames in the clear: how many messages came that nobody sent, and how many never came."""
    local = local_system(folder / "data", a_plan(folder / "plan"), multicast=multicast, seal=seal)
    async with running(local), connect(local.folder) as client:
        ann = await client.subscribe("s = 'a'", name="ann").ready()
        await by_channel(client, client, ann, {"s": "a"})
        last, n = 1 << 40, 0
        coming = asyncio.ensure_future(upto(ann, last))
        under_way = asyncio.ensure_future(attack(client))
        while not under_way.done():
            await client.publish({"s": "a", "n": n})
            n += 1
            await asyncio.sleep(0.005)
        await under_way
        for k in range(-2 * BEYOND, 1):  # beyond whatever the last lie said: messages come in order, so that is all
            await client.publish({"s": "a", "n": last + k})
        got, gaps = await coming
        missed = set(range(n)).difference(got)
        return {"published": n, "forged": got.count(FORGED), "missed": len(missed), "gaps": gaps}


async def next_one(wanted: Subscription) -> tuple[list[int], list[str]]:
    """The numbers of the next batch that is not of the attack's own beginning."""
    while True:
        batch = await asyncio.wait_for(anext(wanted), 30)
        numbers = [row["n"] for row in batch]
        if batch.gap or not all(number in (-1, -99) for number in numbers):
            return numbers, [batch.gap] if batch.gap else []


def unharmed(found: dict[str, Any], packets: int) -> None:
    """Nothing got in, nobody was silenced, and there was an attack: the subscriber refused what was sent."""
    counts = found["counts"]
    assert found["wrong"] == [], found
    assert found["sent"] >= packets
    assert found["by channel"] > 0.8 * found["received"], found
    assert found["refused"] > 0.8 * packets, found
    assert counts["forged"] > packets / 3, counts
    assert counts["replayed"] > packets / 100, counts
    assert counts["foreign"] > 0, counts


def harmed(found: dict[str, Any], packets: int) -> None:
    """The subscriber got messages that nobody published, and lost some that somebody did, without being told."""
    assert found["sent"] >= packets, found
    assert found["forged"] > 0, f"no forged message was delivered: {found}"
    assert found["missed"] > 0, f"nobody was silenced: {found}"
    assert found["gaps"] == [], found


def assaulted_from_afar(folder: Path, packets: int) -> dict[str, Any]:
    """The system in one namespace, the packets from another on the same bridge."""
    env = {"PYTHONPATH": PATHS}
    with Hosts(2, snooping=False) as hosts:
        command = [sys.executable, "-m", "system.packets"]
        victim = hosts.start([*command, "victim", str(folder), "eth0"], 0, env=env)
        end = time.monotonic() + 60
        while not (folder / "ready").exists():
            assert victim.poll() is None, "the victim did not start"
            assert time.monotonic() < end
            time.sleep(0.05)
        intruder = hosts.start([*command, "intruder", str(folder), "eth0", str(packets)], 1, env=env)
        assert intruder.wait(60 + packets / 300) == 0, "the intruder did not get to its end"
        (folder / "stop").touch()
        victim.wait(60)
        return {**json.loads((folder / "found.json").read_text()), **json.loads((folder / "sent.json").read_text())}


def main(role: str, folder: Path, interface: str, packets: int) -> None:
    async def until_stopped(client: Connection) -> None:
        (folder / "ready").touch()
        while not (folder / "stop").exists():
            await asyncio.sleep(0.05)

    if role == "victim":
        found = asyncio.run(besieged(folder, segment(interface), until_stopped))
        (folder / "found.json").write_text(json.dumps(found))
    else:
        intruder = Intruder(segment(interface))
        intruder.listen(100)
        begun = time.monotonic()
        intruder.attack(packets)
        (folder / "sent.json").write_text(json.dumps({"sent": intruder.sent, "seconds": time.monotonic() - begun}))
        time.sleep(1.0)  # the last ones are on their way


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int([*sys.argv, "0"][4]))
