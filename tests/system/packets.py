"""Packets of somebody without a credential, from inside the segment or from another host, against a running system.

`python -m system.packets victim FOLDER INTERFACE` runs a system, publishes and subscribes until FOLDER/stop is there,
and writes what became of it; `… intruder FOLDER INTERFACE PACKETS` sends packets. Each may run in a network namespace.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.processes.supervise import local_system
from narrowcast.deliver.transport import Multicast
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.dds.multicast import DdsMulticast
from narrowcast.deliver.wire import Frame, Pulse, Seal, encode, encode_payload, end_of, place
from narrowcast.deliver.wire.frame import EVERY, NO_FLOW, PREFIX
from system.hosts import Hosts
from system.live import a_plan, by_channel, running, upto

DOMAIN = 68
REFUSED = ("forged", "replayed", "foreign", "no key")


class Intruder:
    """Somebody in the segment: hears what goes by, and sends what it likes into the sessions it hears."""

    def __init__(self, multicast: DdsSettings) -> None:
        self.carrier = DdsMulticast(multicast)
        self.sessions = [Multicast(group, session) for group in range(3) for session in range(4)]
        self.heard: list[bytes] = []
        self._mine: set[int] = set()
        self._random = Random(5)
        self._seal = Seal(1, sealed=True)

    async def start(self) -> None:
        await self.carrier.start(self._hear)
        for session in self.sessions:
            await self.carrier.join(session)
            await self.carrier.prepare(session)

    def _hear(self, data: bytes) -> None:
        if hash(data) not in self._mine and len(data) >= PREFIX.size:
            self.heard = [*self.heard[-200:], data]

    def lies(self, data: bytes) -> list[bytes]:
        """Made from one frame that was heard: as it is, damaged, cut, and others with its names on them."""
        rng = self._random
        _, _, _, system, epoch, channel, plan = PREFIX.unpack_from(data)
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        far = end_of((1 << 110) + rng.randrange(1 << 30))
        message = (place(far >> 16, 0), NO_FLOW, encode_payload({"s": "a", "n": -666}))
        near = far - 500_000
        claims = [Frame(0, channel, epoch, near, far, messages) for messages in ((), (message,))]
        claims += [] if channel != EVERY else [Pulse(0, epoch, near, far)]  # type: ignore[list-item]
        self._seal.system = system
        self._seal.know(epoch, plan)
        self._seal.add_root(epoch, rng.randbytes(32))
        made = [data, bytes(flipped), data[: rng.randrange(len(data))], rng.randbytes(80)]
        made += [encode(claim, system, plan) for claim in claims]
        return made + [self._seal.pack(claim) for claim in claims]

    @property
    def sent(self) -> int:
        return self.carrier.counts["frames sent"]

    async def attack(self, packets: int) -> None:
        while self.sent < packets:
            for lie in self.lies(self._random.choice(self.heard)):
                session = self._random.choice(self.sessions)
                self._mine.add(hash(lie))
                await self.carrier.send(session, lie)
            await asyncio.sleep(0)


def assaulted(folder: Path, packets: int, *, seal: bool = True, interface: str = "lo") -> dict[str, Any]:
    """Publish and subscribe while somebody in the segment sends packets; what became of both."""

    async def run() -> dict[str, Any]:
        multicast = DdsSettings(domain=DOMAIN, groups=4, interface=interface, network=f"239.{DOMAIN}.0.0/16")
        intruder = Intruder(multicast)

        async def attack(client: Connection) -> None:
            while not intruder.heard:
                await asyncio.sleep(0.02)
            await intruder.attack(packets)

        await intruder.start()
        found = await besieged(folder, multicast, attack, seal=seal)
        await intruder.carrier.close()
        return found | {"sent": intruder.sent}

    return asyncio.run(asyncio.wait_for(run(), 60 + packets / 500))


async def besieged(folder: Path, multicast: DdsSettings, attack: Any, *, seal: bool = True) -> dict[str, Any]:
    """A system with one subscriber, while an attack goes on; what it got that was not sent, and by which way."""
    local = local_system(folder / "data", a_plan(folder / "plan"), multicast=multicast, seal=seal)
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
        counts = client._edge.part.counts
        refused = sum(counts.get(name, 0) for name in REFUSED)
        by_way = client.ways["channel"] - before
        return {"received": n, "wrong": wrong, "by channel": by_way, "refused": refused, "counts": counts}


async def next_one(wanted: Subscription) -> tuple[list[int], list[str]]:
    """The numbers of the next batch that is not of the attack's own beginning."""
    while True:
        batch = await asyncio.wait_for(anext(wanted), 30)
        numbers = [row["n"] for row in batch]
        if batch.gap or not all(number in (-1, -99) for number in numbers):
            return numbers, [batch.gap] if batch.gap else []


def unharmed(found: dict[str, Any], packets: int) -> None:
    """Nothing got in, nobody was silenced, and there was an attack."""
    counts = found["counts"]
    assert found["wrong"] == [], found
    assert found["sent"] >= packets
    assert found["by channel"] > 0.8 * found["received"], found
    assert counts["forged"] > packets / 100, counts
    assert counts["replayed"] > packets / 1000, counts
    assert counts["foreign"] > 0, counts


def assaulted_from_afar(folder: Path, packets: int) -> dict[str, Any]:
    """The system in one namespace, the packets from another on the same bridge."""
    root = Path(__file__).parent.parent
    env = {"PYTHONPATH": f"{root}:{root.parent / 'src'}"}
    with Hosts(2, snooping=False) as hosts:
        command = [sys.executable, "-m", "system.packets"]
        victim = hosts.start([*command, "victim", str(folder), "eth0"], 0, env=env)
        end = time.monotonic() + 60
        while not (folder / "ready").exists():
            assert victim.poll() is None, "the victim did not start"
            assert time.monotonic() < end
            time.sleep(0.05)
        intruder = hosts.start([*command, "intruder", str(folder), "eth0", str(packets)], 1, env=env)
        intruder.wait(60 + packets / 200)
        (folder / "stop").touch()
        victim.wait(60)
        return {"sent": packets, **json.loads((folder / "found.json").read_text())}


def main(role: str, folder: Path, interface: str, packets: int) -> None:
    multicast = DdsSettings(domain=DOMAIN, groups=4, interface=interface, network=f"239.{DOMAIN}.0.0/16")

    async def until_stopped(client: Connection) -> None:
        (folder / "ready").touch()
        while not (folder / "stop").exists():
            await asyncio.sleep(0.05)

    async def intrude() -> None:
        intruder = Intruder(multicast)
        await intruder.start()
        end = asyncio.get_running_loop().time() + 30
        while len(intruder.heard) < 100 and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.05)
        await intruder.attack(packets)
        await asyncio.sleep(0.5)  # the last ones are on their way
        await intruder.carrier.close()

    if role == "victim":
        found = asyncio.run(besieged(folder, multicast, until_stopped))
        (folder / "found.json").write_text(json.dumps(found))
    else:
        asyncio.run(intrude())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int([*sys.argv, "0"][4]))
