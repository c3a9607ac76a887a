"""Runs one part on real engines: carries out its effects in order, and tells it what happens.

Everything happens in one event loop, so `step` is never entered twice. What goes to a carrier, and
whatever must not overtake it (a write that says "joined", a read that brings more to send), stands in
one lane and is begun in order; answers come whenever they come. A source therefore reads no faster
than its carriers take frames.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import (
    Acked,
    Append,
    Deliver,
    Effect,
    Gap,
    Join,
    Leave,
    Locate,
    Lookup,
    PlanWanted,
    Read,
    Rejected,
    Send,
    Subscribed,
    Unsure,
    Watch,
    Write,
)
from narrowcast.deliver.parts.events import (
    Appended,
    Arrived,
    Event,
    Failed,
    Located,
    Noted,
    Planned,
    Refused,
    Tick,
    WasRead,
    Written,
)
from narrowcast.deliver.parts.part import NEVER, Part
from narrowcast.deliver.parts.relay import Unopened
from narrowcast.deliver.processes.traces import traces_of
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import (
    Address,
    Carrier,
    ConflictError,
    Entry,
    FinalError,
    Link,
    Log,
    Multicast,
    Registry,
)
from narrowcast.deliver.transport.protocols import Done
from narrowcast.deliver.wire import Attach, Frame, Malformed, Pulse, decode, decode_many, sequence_of
from narrowcast.deliver.wire.seal import REFUSED
from narrowcast.errors import NarrowcastError, TransportError

log = logging.getLogger(__name__)

Application = Callable[[Effect], None]
Planner = Callable[[PlanWanted], Routing | None]
IN_LANE = frozenset((Send, Join, Leave, Write, Read))
FOR_APPLICATION = frozenset((Deliver, Acked, Subscribed, Unsure, Rejected, Gap))
MOST_AHEAD = 2048  # effects in the lane before a tail is made to wait
MOST_AHEAD_BYTES = 32 << 20  # of entries whose effects may still be in the lane
TOGETHER = 256  # frames that may share packets
TURN = 64  # effects carried out before others get their turn
TURN_S = 0.005  # of entries dealt with before others get theirs
LATE_S = 0.02  # a tick that comes later than that finds a loop that was busy
WRITES = 32  # to the registry at once; of one account the gate takes 64 questions at once
MOST_BUSY_S = 3.0  # for which a part is told so: it must not put off for ever what it puts off then


@dataclass
class Engines:
    """What a part runs on. Carriers by the class of the addresses they carry; one may stand for several."""

    log: Log
    registry: Registry
    carriers: Mapping[type[Address], Carrier] = field(default_factory=dict)
    system: int = 0  # which system this is, for traces

    @property
    def distinct(self) -> list[Carrier]:
        found: list[Carrier] = []
        for carrier in self.carriers.values():
            if carrier not in found:
                found.append(carrier)
        return found


def _nothing(effect: Effect) -> None:
    """An application that does not listen."""


class Driver:
    """Drives `part`. `application` gets what is meant for it; `planner` runs in a thread of its own."""

    def __init__(
        self,
        part: Part,
        engines: Engines,
        *,
        application: Application = _nothing,
        planner: Planner | None = None,
        tail: int | None = None,
        open_frame: Callable[..., Frame | Attach | Pulse | Malformed] = decode,
    ) -> None:
        self.part, self.engines = part, engines
        self.counts: Counter[str] = Counter()
        self.application, self._planner, self._tail, self._open = application, planner, tail, open_frame
        self._lane: deque[Effect] = deque()
        self._filled, self._room = asyncio.Event(), asyncio.Event()
        self._beginning = False  # an effect of the lane is being begun: others wait for it
        self._writes: asyncio.Queue[Write] = asyncio.Queue()
        self._beats: asyncio.Queue[Write] = asyncio.Queue()  # that we are alive, which waits for nothing else
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER
        self._busy_since = NEVER
        self.heard: tuple[int, int, float] | None = None  # of a frame since somebody looked: shard, last entry, when
        self._encoded: tuple[Frame | Attach | Pulse | None, bytes] = (None, b"")
        self._stopped = False
        self.on_start: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None
        self.extra: Callable[[], Mapping[str, Any]] = dict  # what else to tell about this part
        self.failed: asyncio.Future[None]
        self._traces = traces_of(engines.system, part.name, getattr(part, "role", type(part).__name__.lower()))

    # Life.

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.failed = self._loop.create_future()
        for carrier in self.engines.distinct:
            if hasattr(carrier, "receive_many") and self._open is decode:
                carrier.receive_many = self._receive_many
            await carrier.start(self._receive)
        self._spawn(self._run_lane())
        self._spawn(self._run_writes(self._writes))
        self._spawn(self._run_writes(self._beats))
        if self._tail is not None:
            self._spawn(self._run_tail(self._tail))
        self.tell(Tick())
        self.on_start()

    async def stop(self) -> None:
        """At once. What was promised is in the log; what was not is nobody's."""
        self._stopped = True
        self.on_stop()
        if self._timer is not None:
            self._timer.cancel()
        await _end(list(self._tasks))
        for carrier in self.engines.distinct:
            await carrier.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something go on beside the part; if it fails, the driver has failed."""
        self._spawn(work)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and not self.failed.done():
            self.failed.set_exception(task.exception() or RuntimeError())

    # Events in.

    def tell(self, event: Event) -> None:
        """Let the part take an event, now."""
        if self._stopped:
            return
        for effect in self.part.step(event, time.monotonic()):
            self._carry_out(effect)
        self._set_timer()

    def _tell_or_fail(self, event: Event) -> None:
        """For those who are called by an engine that would log an error and go on."""
        try:
            self.tell(event)
        except Exception as error:
            if not self.failed.done():
                self.failed.set_exception(error)

    def _receive(self, data: bytes) -> None:
        plain = self.part.seal.open(data)
        found = plain if isinstance(plain, Malformed) else self._open(plain, checked=self.part.seal.sealed)
        if isinstance(found, Frame) and isinstance(found.messages, Unopened):
            found.messages.sent = data
        self._tell_arrived(found)

    def _tell_arrived(self, found: Frame | Attach | Pulse | Malformed) -> None:
        if isinstance(found, Malformed):
            self._count_refused(found.reason)
        else:
            if isinstance(found, Frame):
                self.counts["messages arrived"] += len(found.messages)
                if self.heard is None and len(found.messages):
                    self.heard = (found.shard, sequence_of(found.upto), time.time())
            self.tell(Arrived(found))

    def _receive_many(self, frames: list[bytes]) -> None:
        """What connects is told as one frame: the part has less to do, and learns the same."""
        opened = []
        for data in frames:
            plain = self.part.seal.open(data)
            if isinstance(plain, Malformed):
                self._count_refused(plain.reason)
            else:
                opened.append(plain)
        sealed = self.part.seal.sealed
        if len(opened) == 1:
            self._tell_arrived(decode(opened[0], checked=sealed))
            return
        for found in decode_many(opened, checked=sealed):
            self._tell_arrived(found)

    def _count_refused(self, reason: str) -> None:
        """What is no frame, and what is one that somebody else made, or made before."""
        if reason in REFUSED:
            self.part.counts[reason] += 1
        else:
            self.counts[f"malformed {reason}"] += 1

    def _set_timer(self) -> None:
        at = self.part.wake_at
        if self._timer is not None:
            if self._timer_at <= at:
                return  # it looks again when it goes off
            self._timer.cancel()
            self._timer = None
        if at < NEVER:
            # Loops count in milliseconds: one that goes off too early would be set again and again until it is time.
            wait = ceil(1000 * max(0.0, at - time.monotonic())) / 1000
            self._timer, self._timer_at = self._loop.call_later(wait, self._tick), at

    def _tick(self) -> None:
        """Time has come; where the loop was busy, or a carrier has more, the part may hear that before it decides."""
        now = time.monotonic()
        late = 0.0 if self._timer is None else now - self._timer_at
        self._timer = None
        if now < self.part.wake_at:
            self._set_timer()
            return
        behind = any(getattr(carrier, "behind", False) for carrier in self.engines.distinct)
        self._busy_since = min(self._busy_since, now) if late > LATE_S or behind else NEVER
        busy = now < self._busy_since + MOST_BUSY_S < NEVER
        if not busy:
            self._busy_since = NEVER
        self.tell(Tick(busy))

    # Effects out.

    def _carry_out(self, effect: Effect) -> None:
        kind = type(effect)
        if kind in FOR_APPLICATION:
            if self._traces is not None and isinstance(effect, Deliver):
                self._traces.delivered(effect)
            self.application(effect)
        elif kind in IN_LANE:
            self._lane.append(effect)
            self._filled.set()
        elif isinstance(effect, Append):
            self._append(effect)
        elif isinstance(effect, Locate):
            self._spawn(self._locate(effect))
        elif isinstance(effect, Watch):
            self._spawn(self._watch(effect))
        elif isinstance(effect, Lookup):
            self._spawn(self._look_up(effect))
        elif isinstance(effect, PlanWanted):
            self._spawn(self._plan(effect))

    async def _run_lane(self) -> None:
        turns = 0
        while True:
            await self._filled.wait()
            while self._lane:
                self._beginning = True
                await self._begin(self._lane.popleft())
                self._beginning = False
                turns += 1
                if turns % TURN == 0:
                    await asyncio.sleep(0)
            self._filled.clear()
            self._room.set()

    async def _begin(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            await self._send([effect, *self._following(Send, TOGETHER)])
        elif isinstance(effect, Write):
            (self._beats if effect.key.startswith(records.NODE) else self._writes).put_nowait(effect)
        elif isinstance(effect, Read):
            self._spawn(self._read(effect))
        elif isinstance(effect, Join):
            await asyncio.gather(*(self._join(each) for each in [effect, *self._following(Join)]))
        elif isinstance(effect, Leave):
            await self._leave(effect)

    def _following(self, kind: type[Any], most: int = MOST_AHEAD) -> list[Any]:
        """Effects of the same kind that come next: joins do not mind each other, and frames share packets."""
        found: list[Any] = []
        while self._lane and isinstance(self._lane[0], kind) and len(found) < most:
            found.append(self._lane.popleft())
        return found

    # Carriers. Whatever fails is counted: the log makes up for it.

    async def _send(self, effects: list[Send]) -> None:
        """By address, in order; what goes to different addresses may overtake each other anyway."""
        begin = time.time_ns()
        for address, some in _by_address(effects):
            self._count_sent(address, some)
            carrier = self.engines.carriers.get(type(address))
            try:
                await self._pass_on(carrier, address, [self._bytes(address, effect.what) for effect in some])
            except NarrowcastError as error:
                self._count("send failed", error)
        if self._traces is not None:
            self._traces.sent(effects, begin)
        if len(effects) >= TURN:
            await asyncio.sleep(0)

    def _send_now(self) -> None:
        """Begin what stands first in the lane without a turn of the loop, as far as carriers take it at once."""
        while not self._beginning and self._lane and isinstance(self._lane[0], Send):
            begin = time.time_ns()
            effects = self._following(Send, TOGETHER)
            left = [effect for address, some in _by_address(effects) for effect in self._send_some_now(address, some)]
            if self._traces is not None:
                waiting = set(map(id, left))
                self._traces.sent([effect for effect in effects if id(effect) not in waiting], begin)
            if left:
                self._lane.extendleft(reversed(left))
                return

    def _send_some_now(self, address: Address, some: list[Send]) -> list[Send]:
        """The effects of one address that have to wait."""
        send_now = getattr(self.engines.carriers.get(type(address)), "send_now", None)
        if send_now is None:
            return some
        try:
            taken = send_now(address, [self._bytes(address, effect.what) for effect in some])
        except NarrowcastError as error:
            self._count("send failed", error)
            return []
        self._count_sent(address, some[:taken])
        return some[taken:]

    async def _pass_on(self, carrier: Carrier | None, address: Address, frames: list[bytes]) -> None:
        if carrier is None:
            self.counts["no carrier"] += len(frames)
        elif hasattr(carrier, "send_many"):
            await carrier.send_many(address, frames)
        else:
            for frame in frames:
                await carrier.send(address, frame)

    def _bytes(self, address: Address, what: Frame | Attach | Pulse) -> bytes:
        """Encoded once however many get it; what is passed on as it came is not encoded at all.

        What a broker made for one node, or an edge asks of one broker, is sealed for that one.
        """
        seal = self.part.seal
        if (sent := seal.passes(what)) is not None:
            return sent
        if isinstance(address, Link):
            return seal.pack(what, address.node)
        if self._encoded[0] is not what:
            self._encoded = (what, seal.pack(what))
        return self._encoded[1]

    def _count_sent(self, address: Address, effects: list[Send]) -> None:
        messages = sum(len(effect.what.messages) for effect in effects if isinstance(effect.what, Frame))
        self.counts["messages sent"] += messages
        if isinstance(address, Multicast):
            self.counts[f"group {address.group} messages"] += messages

    async def _join(self, effect: Join) -> None:
        await self._member(effect, "prepare" if effect.sender else "join")

    async def _leave(self, effect: Leave) -> None:
        await self._member(effect, "forget" if effect.sender else "leave")

    async def _member(self, effect: Join | Leave, verb: str) -> None:
        """Senders are prepared where a carrier has a use for that."""
        carrier = self.engines.carriers.get(type(effect.address))
        call = getattr(carrier, verb, None)
        if call is None:
            self.counts["no carrier"] += carrier is None
            return
        try:
            await call(effect.address)
        except NarrowcastError as error:
            self._count(f"{verb} failed", error)

    def _count(self, what: str, error: Exception) -> None:
        if not self.counts[what]:
            log.warning("%s: %s: %s", self.part.name, what, error)
        self.counts[what] += 1

    # The log.

    def _append(self, effect: Append) -> None:
        begin = time.time_ns()

        def done(found: int | TransportError) -> None:
            event: Event
            if isinstance(found, TransportError):
                event = Failed(effect.request, str(found), final=isinstance(found, FinalError))
            else:
                event = Appended(effect.request, found)
                if self._traces is not None:
                    self._traces.published(effect.shard, found, begin)
            self._tell_or_fail(event)

        at_once = getattr(self.engines.log, "append_at_once", None)
        if at_once is None or not at_once(effect.shard, effect.data, effect.dedup, done):
            self._spawn(self._append_later(effect, done))

    async def _append_later(self, effect: Append, done: Done) -> None:
        try:
            done(await self.engines.log.append(effect.shard, effect.data, dedup=effect.dedup))
        except TransportError as error:
            done(error)

    async def _read(self, effect: Read) -> None:
        try:
            found = await self.engines.log.read(effect.shard, effect.after, most=effect.most, upto=effect.upto)
        except TransportError as error:
            self.tell(Failed(effect.request, str(error)))
        else:
            gone = (found.first, found.back)
            self.tell(WasRead(effect.request, effect.shard, found.after, found.upto, found.entries, *gone))

    async def _locate(self, effect: Locate) -> None:
        try:
            sequence = await self.engines.log.last(effect.shard)
        except TransportError as error:
            self.tell(Failed(effect.request, str(error)))
        else:
            self.tell(Located(effect.request, effect.shard, sequence))

    async def _run_tail(self, shard: int) -> None:
        """To a source: entries as they come, without being asked for."""
        while getattr(self.part, "sequence", 0) < 0:
            await asyncio.sleep(0.01)
        after = getattr(self.part, "sequence", 0)
        ahead = 0  # bytes of entries since the lane was last empty
        turn = time.monotonic()

        def at_once(entry: Entry, more: bool) -> bool:
            """An entry that comes when nothing waits is dealt with where it is read, and its frames go with it."""
            if self._lane or self._stopped:
                return False
            self._tell_or_fail(WasRead(0, shard, entry.sequence - 1, entry.sequence, (entry,)))
            if not more:  # else its frames wait for those that share their packets
                self._send_now()
            return True

        async for entry in self.engines.log.tail(shard, after, at_once):
            ahead = ahead + len(entry.data) if self._lane else 0
            if len(self._lane) > MOST_AHEAD or ahead > MOST_AHEAD_BYTES:
                self._room.clear()
                await self._room.wait()
                ahead = 0
            self.tell(WasRead(0, shard, entry.sequence - 1, entry.sequence, (entry,)))
            if time.monotonic() > turn + TURN_S:  # a source that is behind would say nothing until it is not
                await asyncio.sleep(0)
                turn = time.monotonic()

    # The registry.

    async def _run_writes(self, waiting: asyncio.Queue[Write]) -> None:
        """Several at a time, but of each key one after the other: its last value is the last one asked for.

        An edge registers all its subscriptions every few seconds. One by one they take longer than that where the
        loop is busy, and whoever has just come waits behind them.
        """
        held: list[Write] = []  # a second one of a key
        while True:
            together: dict[str, Write] = {}
            while not together or (len(together) < WRITES and not waiting.empty()):
                effect = held.pop() if held else await waiting.get()
                if effect.key in together:
                    held.append(effect)
                    break
                together[effect.key] = effect
            await asyncio.gather(*map(self._write_one, together.values()))

    async def _write_one(self, effect: Write) -> None:
        try:
            revision = await self._write(effect)
        except ConflictError:
            self.tell(Refused(effect.request))
        except TransportError as error:
            self._count("write failed", error)
            self.tell(Refused(effect.request, stale=False))
        else:
            self.tell(Written(effect.request, revision))

    async def _write(self, effect: Write) -> int:
        registry = self.engines.registry
        if effect.data is not None:
            return await registry.put(effect.key, effect.data, revision=effect.revision)
        await registry.delete(effect.key, revision=effect.revision)
        return 0

    async def _watch(self, effect: Watch) -> None:
        async for key, data, revision in self.engines.registry.watch(effect.prefix):
            self.tell(Noted(key, data, revision))

    async def _look_up(self, effect: Lookup) -> None:
        try:
            key, data, revision = await self.engines.registry.get(effect.key)
        except TransportError as error:
            self._count("lookup failed", error)
        else:
            self.tell(Noted(key, data, revision))

    async def _plan(self, effect: PlanWanted) -> None:
        routing = None
        if self._planner is not None:
            try:
                routing = await asyncio.to_thread(self._planner, effect)
            except NarrowcastError as error:
                self._count("no plan", error)
        self.tell(Planned(effect.request, routing))


def _by_address(effects: list[Send]) -> list[tuple[Address, list[Send]]]:
    """Effects with the same address together: by identity, for a tree's address is long to compare."""
    found: dict[int, list[Send]] = {}
    for effect in effects:
        found.setdefault(id(effect.address), []).append(effect)
    return [(some[0].address, some) for some in found.values()]


async def _end(tasks: list[asyncio.Task[None]], tries: int = 20) -> None:
    """Cancel until it has worked: before Python 3.12 `wait_for` may swallow a cancellation."""
    for _ in range(tries):
        tasks = [task for task in tasks if not task.done()]
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=0.25)
    log.warning("%d tasks did not stop when cancelled: %s", len(tasks), tasks[0])
