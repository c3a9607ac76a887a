"""The exams of a carrier, a log and a registry: what the runtime relies on, no more.

    async def open_carrier(node): return MyCarrier(node, …)
    await exam_carrier(open_carrier, [Multicast(1, 7), Multicast(1, 8)])

Each raises AssertionError with one line that says what was not kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

from narrowcast.deliver.transport import Address, Carrier, ConflictError, Link, Log, Overlay, Registry

Item = TypeVar("Item")
Open = Callable[[str], Awaitable[Carrier]]


class _Ear:
    """What one node has received."""

    def __init__(self) -> None:
        self.got: Counter[bytes] = Counter()

    def __call__(self, data: bytes) -> None:
        self.got[bytes(data)] += 1


async def exam_carrier(
    open_carrier: Open,
    addresses: Sequence[Address],
    *,
    seconds: float = 5.0,
    quiet: float = 0.3,
    frame_bytes: int = 1200,
    burst: int = 200,
    lossless: bool = True,
) -> None:
    """Try a carrier between four nodes. `open_carrier(node)` makes one that is not started.

    `addresses` are at least two of one kind, the nearer the better: two sessions in one group. `seconds`
    is how long a frame may take, `quiet` how long silence is listened to. With `lossless=False` a frame
    may be sent again until it arrives. An `Overlay`'s frames must reach the node that is its root.
    """
    ears = {name: _Ear() for name in ("sender", "one", "two", "outside")}
    roots = [address.root for address in addresses if isinstance(address, Overlay)]
    for name in roots:
        ears.setdefault(name, _Ear())
    nodes = {name: await open_carrier(name) for name in ears}
    try:
        for name, node in nodes.items():
            await node.start(ears[name])
        trial = _Trial(nodes, ears, seconds, quiet, lossless)
        first, second = addresses[:2]
        if roots:
            await trial.reaches(first, [roots[0]], b"to the root")
        else:
            await trial.channels(first, second)
            await trial.sizes(first, frame_bytes)
            await trial.burst(first, burst)
            await trial.leaving(first, second)
        await trial.reaches(Link("two"), ["two"], b"straight to two")
        assert not ears["outside"].got, "a node that joined nothing received a frame"
    finally:
        for node in nodes.values():
            await node.close()
            await node.close()  # closing twice is closing once


class _Trial:
    def __init__(
        self, nodes: dict[str, Carrier], ears: dict[str, _Ear], seconds: float, quiet: float, lossless: bool
    ) -> None:
        self.nodes, self.ears, self.seconds, self.quiet, self.lossless = nodes, ears, seconds, quiet, lossless

    async def reaches(self, address: Address, names: Sequence[str], data: bytes) -> None:
        """A frame gets to all of these, unaltered."""
        end = asyncio.get_running_loop().time() + self.seconds
        await self.nodes["sender"].send(address, data)
        while not all(self.ears[name].got[data] for name in names):
            missing = [name for name in names if not self.ears[name].got[data]]
            assert asyncio.get_running_loop().time() < end, f"a frame to {address} did not reach {', '.join(missing)}"
            await asyncio.sleep(0.02)
            if not self.lossless:
                await self.nodes["sender"].send(address, data)

    async def channels(self, first: Address, second: Address) -> None:
        for _ in range(2):  # joining twice is joining once
            await self.nodes["one"].join(first)
        await self.nodes["two"].join(first)
        await self.nodes["two"].join(second)
        await self.reaches(first, ["one", "two"], b"first")
        await self.reaches(second, ["two"], b"second")
        await asyncio.sleep(self.quiet)
        assert not self.ears["one"].got[b"second"], f"a node that joined only {first} received a frame of {second}"
        assert self.ears["one"].got[b"first"] == 1 or not self.lossless, "joining twice delivers twice"

    async def sizes(self, address: Address, frame_bytes: int) -> None:
        for size in (1, 100, frame_bytes):
            await self.reaches(address, ["one", "two"], bytes(k % 251 for k in range(size)))

    async def burst(self, address: Address, n: int) -> None:
        """Many frames at once: all arrive, or with a carrier that may lose, some."""
        frames = [b"burst %d" % k for k in range(n)]
        for frame in frames:
            await self.nodes["sender"].send(address, frame)
        end = asyncio.get_running_loop().time() + self.seconds
        ears = [self.ears[name].got for name in ("one", "two")]
        while asyncio.get_running_loop().time() < end:
            if all(got[frame] for got in ears for frame in frames):
                return
            await asyncio.sleep(0.02)
        least = min(sum(got[frame] > 0 for frame in frames) for got in ears)
        assert not self.lossless, f"{least} of {n} frames of a burst arrived"
        assert least > 0, "nothing of a burst arrived"

    async def leaving(self, first: Address, second: Address) -> None:
        await self.nodes["one"].leave(first)
        await self.nodes["one"].leave(second)  # never joined: no harm
        await asyncio.sleep(self.quiet)
        await self.reaches(first, ["two"], b"after leaving")
        await asyncio.sleep(self.quiet)
        assert not self.ears["one"].got[b"after leaving"], "a frame reached a node that had left"
        await self.nodes["one"].join(first)
        await self.reaches(first, ["one", "two"], b"back again")


async def exam_log(log: Log, *, shards: tuple[int, int] = (0, 1), seconds: float = 5.0) -> None:
    """Try an empty log: numbers by one, repeats known, stretches exact, the tail complete and in order.

    Before the first entry there may be one of the log's own, which begins its generation.
    """
    a, b = shards
    assert await log.last(a) == 0, "the log is not empty"
    n = await log.append(a, b"entry 0", dedup="exam-0")
    numbers = [n, *[await log.append(a, b"entry %d" % k, dedup=f"exam-{k}") for k in range(1, 5)]]
    assert numbers == [n, n + 1, n + 2, n + 3, n + 4], f"sequence numbers are {numbers}, not from {n} by one"
    assert await log.append(a, b"entry 2", dedup="exam-2") == n + 2, "a repeat got another sequence number"
    assert await log.last(a) == n + 4, "a repeat was written twice"
    other = await log.append(b, b"other", dedup="exam-2")
    assert other == await log.last(b), "shards share dedup ids or numbers"
    found = await log.read(a, n, most=2)
    assert [(e.sequence - n, e.data) for e in found.entries] == [(1, b"entry 1"), (2, b"entry 2")], "a stretch is wrong"
    assert (found.after, found.upto) == (n, n + 2), f"a stretch of two says ({found.after}, {found.upto}]"
    found = await log.read(a, n, most=10, upto=n + 3)
    assert [e.sequence - n for e in found.entries] == [1, 2, 3], "a stretch goes beyond what was asked"
    found = await log.read(a, n + 4, most=10)
    assert (found.upto, found.entries) == (n + 4, ()), "a read at the end of the log is not empty"
    assert (await log.read(a, 0, most=100)).upto == n + 4, "a whole read does not reach the end"
    async with aclosing(log.tail(a, n + 1)) as tail:
        got = [(await _next(tail, seconds)).sequence - n for _ in range(3)]
        await log.append(a, b"later", dedup="exam-later")
        got.append((await _next(tail, seconds)).sequence - n)
    assert got == [2, 3, 4, 5], f"the tail after the second entry gave {got}"


async def exam_registry(registry: Registry, *, seconds: float = 5.0) -> None:
    """Try a registry: revisions guard writes, absent means 0, watchers see the last value of every key."""
    assert (await registry.get("exam.a")).data is None, "an absent key has a value"
    first = await registry.put("exam.a", b"1", revision=0)
    await _refused(registry.put("exam.a", b"2", revision=0), "a key was created twice")
    second = await registry.put("exam.a", b"2", revision=first)
    assert second > first, "revisions do not grow"
    await _refused(registry.put("exam.a", b"3", revision=first), "a stale revision was accepted")
    found = await registry.get("exam.a")
    assert (found.data, found.revision) == (b"2", second), f"the key holds {found}"
    async with aclosing(registry.watch("exam.")) as watch:
        assert (await _next(watch, seconds)).data == b"2", "a watch does not begin with what is there"
        await registry.put("other.a", b"x")
        await registry.put("exam.b", b"y")
        assert (await _next(watch, seconds)).key == "exam.b", "a watch sees keys of another prefix"
        await registry.delete("exam.a")
        gone = await _next(watch, seconds)
        assert (gone.key, gone.data) == ("exam.a", None), "a watch does not see a deletion"
    assert (await registry.get("exam.a")).data is None, "a deleted key has a value"
    await registry.put("exam.a", b"again", revision=0)


async def _next(found: AsyncIterator[Item], seconds: float) -> Item:
    return await asyncio.wait_for(anext(found), seconds)


async def _refused(writing: Awaitable[int], complaint: str) -> None:
    try:
        await writing
    except ConflictError:
        return
    raise AssertionError(complaint)
