"""What filtering costs a receiver on this machine: its CPU under several mixes of traffic, on the real carrier.

A receiver in a process of its own takes one session of a group. Messages of that session it decodes and sorts
by flow; those of another session in the same group, which somebody else takes, stop in the middleware. From its CPU
under several rates of both, with h messages in a frame, `channels.calibrate` fits α(h) and β(h) (Tock et al., §5.2).

In a running system receivers are watched instead (`Receivers`). An edge says how many messages arrived and which groups
it joined, sources say how many they sent to each group: what was sent to a joined group and did not arrive is of
a session that the edge does not take.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from narrowcast.deliver.processes.backbone import Backbone
from narrowcast.deliver.transport import Multicast
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.wire import Carried, Frame, decode, encode, end_of
from narrowcast.errors import TransportError

TAKEN, OTHER = Multicast(0, 0), Multicast(0, 1)
MIXES = ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (0.25, 0.75))
STEP_S = 0.01
FLOWS = 8
GROUP_MESSAGES, GROUP_SENT = re.compile(r"group (\d+) messages"), re.compile(r"group (\d+) frames sent")


@dataclass(frozen=True, slots=True)
class Sample:
    """A row for `channels.calibrate`: messages per second taken and not, CPU seconds per second, messages per frame."""

    accepted: float
    discarded: float
    cpu: float
    h: int


def measure(
    settings: DdsSettings | None = None,
    *,
    aggregation: Sequence[int] = (1, 8, 64),
    frames_s: float = 2000.0,
    seconds: float = 2.0,
    size: int = 200,
    progress: Callable[[int, int], None] | None = None,
) -> list[Sample]:
    """A sample for each mix and each h, about `seconds` apiece. The load is the same number of frames for each."""
    place = settings or DdsSettings()
    context = multiprocessing.get_context("spawn")
    pipes, receivers = [], []
    for session in (TAKEN, OTHER):  # a session that nobody takes would not be sent
        ours, theirs = context.Pipe()
        pipes.append(ours)
        receivers.append(context.Process(target=_receive, args=(theirs, place, session), daemon=True))
    for receiver in receivers:
        receiver.start()
    try:
        return asyncio.run(_measure(pipes, place, aggregation, frames_s, seconds, size, progress))
    finally:
        for pipe, receiver in zip(pipes, receivers, strict=True):
            if receiver.is_alive():
                pipe.send("stop")
            receiver.join(5)
            receiver.kill()


async def _measure(
    receivers: Sequence[Connection],
    settings: DdsSettings,
    aggregation: Sequence[int],
    frames_s: float,
    seconds: float,
    size: int,
    progress: Callable[[int, int], None] | None,
) -> list[Sample]:
    from narrowcast.deliver.transport.dds.multicast import DdsMulticast

    carrier = DdsMulticast(settings)
    await carrier.start(lambda _: None)
    try:
        for session in (TAKEN, OTHER):
            await carrier.prepare(session)
        for each in receivers:
            await _joined(each)
        receiver = receivers[0]
        await asyncio.sleep(1.0)
        idle, _, _ = await _counted(receiver, asyncio.sleep(seconds))
        found: list[Sample] = []
        for h in aggregation:
            for mix in MIXES:
                load = _load(carrier, h, frames_s, mix, seconds, size)
                cpu, taken, passed_by = await _counted(receiver, load)
                rates = (taken * h / seconds, passed_by * h / seconds)
                found.append(Sample(*rates, max(0.0, cpu - idle) / seconds, h))
                if progress is not None:
                    progress(len(found), len(aggregation) * len(MIXES))
        return found
    finally:
        await carrier.close()


async def _joined(receiver: Connection, timeout: float = 20.0) -> None:
    if not await asyncio.to_thread(receiver.poll, timeout) or receiver.recv() != "joined":
        raise TransportError("the measuring receiver did not start", group="0")


async def _load(carrier: Any, h: int, frames_s: float, mix: tuple[float, float], seconds: float, size: int) -> int:
    """Send both sessions at their rates; how many frames of the other one."""
    sent, begin = [0, 0], time.perf_counter()
    payload = bytes(size)
    data = [_frame(channel, h, payload) for channel in (0, 1)]
    while (spent := time.perf_counter() - begin) < seconds:
        for at, session in enumerate((TAKEN, OTHER)):
            while sent[at] < frames_s * mix[at] * spent:
                await carrier.send(session, data[at])
                sent[at] += 1
        await asyncio.sleep(STEP_S)
    return sent[1]


def _frame(channel: int, h: int, payload: bytes) -> bytes:
    messages = tuple(Carried(end_of(0) + 1 + at, at % FLOWS, payload) for at in range(h))
    return encode(Frame(0, channel, 1, end_of(0), end_of(1), messages))


async def _counted(receiver: Connection, work: Any) -> tuple[float, int, Any]:
    """The receiver's CPU seconds and the frames it took while something goes on, and what that gave."""
    before = await _asked(receiver)
    result = await work
    await asyncio.sleep(0.2)
    after = await _asked(receiver)
    return after[0] - before[0], after[1] - before[1], result


async def _asked(receiver: Connection) -> tuple[float, int]:
    receiver.send("count")
    if not await asyncio.to_thread(receiver.poll, 20.0):
        raise TransportError("the measuring receiver does not answer", group="0")
    cpu, frames = receiver.recv()
    return float(cpu), int(frames)


def _receive(pipe: Connection, settings: DdsSettings, session: Multicast) -> None:
    """The receiver's process."""
    asyncio.run(_receiving(pipe, settings, session))


async def _receiving(pipe: Connection, settings: DdsSettings, session: Multicast) -> None:
    from narrowcast.deliver.transport.dds.multicast import DdsMulticast

    counts = {"frames": 0, "wanted": 0}

    def receive(data: bytes) -> None:
        found = decode(data)
        if isinstance(found, Frame):
            counts["frames"] += 1
            for message in found.messages:
                if message[1] == 0:
                    counts["wanted"] += 1

    carrier = DdsMulticast(settings)
    await carrier.start(receive)
    await carrier.join(session)
    pipe.send("joined")
    while (asked := await asyncio.to_thread(pipe.recv)) != "stop":
        assert asked == "count"
        pipe.send((time.process_time(), counts["frames"]))
    await carrier.close()


# In a running system.

KINDS = ("messages", "packets")


@dataclass(frozen=True, slots=True)
class ReceiverSample:
    """One process over a while: messages and packets a second that it took and passed by, CPU seconds per second."""

    process: str
    accepted: float
    discarded: float
    accepted_packets: float
    discarded_packets: float
    cpu: float


@dataclass
class Receivers:
    """Snapshots of every process as they come in, and samples of `every_s` seconds."""

    every_s: float = 2.0
    _sent: dict[str, list[tuple[float, dict[str, dict[int, int]]]]] = field(default_factory=dict)  # by source
    _edges: dict[str, list[tuple[float, dict[str, Any]]]] = field(default_factory=dict)

    def take(self, told: Mapping[str, Any], now: float) -> None:
        """What a process has just told."""
        counts, carried = told["counts"], told["carried"]
        if told["role"] == "source":
            sent = {"messages": _by_group(counts, GROUP_MESSAGES), "packets": _by_group(carried, GROUP_SENT)}
            self._sent.setdefault(told["name"], []).append((now, sent))
        elif told["role"] == "edge" and "cpu" in told:
            kept = {name: told.get(name) for name in ("process", "cpu", "groups", "started")}
            kept["messages"] = counts.get("messages arrived", 0) - counts.get("came by unicast", 0)
            kept["packets"] = sum(carried.get(f"group {group} frames", 0) for group in told.get("groups", ()))
            self._edges.setdefault(told["name"], []).append((now, kept))

    def samples(self) -> list[ReceiverSample]:
        """What was seen, receiver by receiver; not while one joined, left or started again."""
        found = [each for edge in self._edges.values() for each in self._of_edge(edge)]
        edges_of = Counter(edge[-1][1]["process"] for edge in self._edges.values())
        return [each for each in found if edges_of[each.process] == 1]  # of several nobody knows which one spent what

    def _of_edge(self, told: list[tuple[float, dict[str, Any]]]) -> Iterable[ReceiverSample]:
        start = 0
        for end in range(1, len(told)):
            (begun, before), (ended, after) = told[start], told[end]
            same = all(before[name] == after[name] for name in ("process", "groups", "started"))
            if same and ended - begun < self.every_s:
                continue
            start = end
            if same and self._sources_cover(begun, ended):
                took, passed = zip(*(self._shared(what, told[end], (begun, before)) for what in KINDS), strict=True)
                seconds = ended - begun
                rates = (took[0], passed[0], took[1], passed[1], after["cpu"] - before["cpu"])
                yield ReceiverSample(after["process"], *(max(0.0, each) / seconds for each in rates))

    def _shared(self, what: str, now: tuple[float, dict[str, Any]], then: tuple[float, dict[str, Any]]) -> Any:
        """How many messages or packets were taken, and how many of those sent to the joined groups were not."""
        took = now[1][what] - then[1][what]
        sent = sum(self._sent_to(what, g, now[0]) - self._sent_to(what, g, then[0]) for g in now[1]["groups"])
        return took, max(0.0, sent - took)

    def _sources_cover(self, begun: float, ended: float) -> bool:
        """Whether all sources were heard of before and after."""
        return bool(self._sent) and all(told[0][0] <= begun <= ended <= told[-1][0] for told in self._sent.values())

    def _sent_to(self, what: str, group: int, at: float) -> float:
        """What was sent to a group by a time, in a straight line between what sources said."""
        total = 0.0
        for told in self._sent.values():
            k = min(max(1, bisect_left(told, at, key=lambda each: each[0])), len(told) - 1)
            (t0, before), (t1, after) = told[k - 1], told[k]
            share = min(1.0, max(0.0, (at - t0) / (t1 - t0))) if t1 > t0 else 1.0
            first, last = (each[what].get(group, 0) for each in (before, after))
            total += first + share * (last - first)
        return total


def _by_group(counts: Mapping[str, int], name: re.Pattern[str]) -> dict[int, int]:
    return {int(found[1]): n for each, n in counts.items() if (found := name.fullmatch(each))}


async def watch(base: Backbone, seconds: float, every_s: float) -> list[ReceiverSample]:
    """What the receivers of a running system do for so long."""
    found, loop = Receivers(every_s), asyncio.get_running_loop()
    await base.listen_statistics(lambda data: found.take(json.loads(data), loop.time()))
    await asyncio.sleep(seconds)
    return found.samples()
