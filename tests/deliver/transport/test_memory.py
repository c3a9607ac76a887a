"""The memory transport passes the exams that every engine takes; and broken ones fail them."""

from __future__ import annotations

import asyncio

import pytest

from memory import MemoryCarrier, MemoryLog, MemoryNetwork, MemoryRegistry
from narrowcast.deliver.transport import Address, Carrier, Multicast, Overlay, Unicast
from narrowcast.testing.engines import exam_carrier, exam_log, exam_registry

SESSIONS = [Multicast(1, 7), Multicast(1, 8)]


def examined(make: type[MemoryCarrier], addresses: list[Address]) -> None:
    network = MemoryNetwork()

    async def open_carrier(node: str) -> Carrier:
        return make(network, node)

    asyncio.run(exam_carrier(open_carrier, addresses, seconds=0.3, quiet=0.01))


@pytest.mark.parametrize(
    "addresses",
    [SESSIONS, [Unicast("ann"), Unicast("bob")], [Overlay("root", (("root", "leaf"),)), Overlay("root")]],
    ids=["multicast", "unicast", "overlay"],
)
def test_the_memory_carrier_passes(addresses: list[Address]) -> None:
    examined(MemoryCarrier, addresses)


def test_the_memory_log_and_registry_pass() -> None:
    asyncio.run(exam_log(MemoryLog()))
    asyncio.run(exam_registry(MemoryRegistry()))


class NeverLeaves(MemoryCarrier):
    async def leave(self, address: Address) -> None:
        pass


class LosesSome(MemoryCarrier):
    sent = 0

    async def send(self, address: Address, data: bytes) -> None:
        type(self).sent += 1
        if self.sent % 50:
            await super().send(address, data)


class MixesSessions(MemoryCarrier):
    async def join(self, address: Address) -> None:
        for session in SESSIONS if address in SESSIONS else [address]:
            await super().join(session)


class Alters(MemoryCarrier):
    async def send(self, address: Address, data: bytes) -> None:
        await super().send(address, data[:-1])


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (NeverLeaves, "had left"),
        (LosesSome, "did not reach|of a burst"),
        (MixesSessions, "joined only"),
        (Alters, "did not reach"),
    ],
)
def test_a_broken_carrier_fails(broken: type[MemoryCarrier], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        examined(broken, list(SESSIONS))


class WritesTwice(MemoryLog):
    async def append(self, shard: int, data: bytes, *, dedup: str) -> int:
        return await super().append(shard, data, dedup=f"{dedup} {await self.last(shard)}")


def test_a_log_that_does_not_know_repeats_fails() -> None:
    with pytest.raises(AssertionError, match="another sequence number"):
        asyncio.run(exam_log(WritesTwice()))


class TakesAnything(MemoryRegistry):
    async def put(self, key: str, data: bytes, *, revision: int | None = None) -> int:
        return await super().put(key, data)


def test_a_registry_without_revisions_fails() -> None:
    with pytest.raises(AssertionError, match="created twice"):
        asyncio.run(exam_registry(TakesAnything()))
