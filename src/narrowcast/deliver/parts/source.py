"""The source of a shard: reads the log in order and sends each channel its frames.

It is a function of the log: which entries there are, and at which markers epochs begin. So any
number of sources may run for one shard, and one that starts again from its checkpoint says nothing
that was not true before; what it sends twice is dropped at the edges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Lookup, Read, Send, Write
from narrowcast.deliver.parts.events import Failed, Noted, Tick, WasRead
from narrowcast.deliver.parts.node import STEADY, Node
from narrowcast.deliver.parts.part import NEVER
from narrowcast.deliver.routing.routing import Routing, nothing
from narrowcast.deliver.transport import Address, Entry
from narrowcast.deliver.wire import (
    Batch,
    ColumnBatch,
    Frame,
    Malformed,
    Marker,
    Pulse,
    decode_entry,
    decode_payloads,
    end_of,
    generation_of,
    place,
)
from narrowcast.deliver.wire.frame import (
    COLUMNS_BYTES,
    FRAME_BYTES,
    MESSAGE_BYTES,
    MOST_BYTES,
    ROW_BYTES,
    Message,
)
from narrowcast.errors import NarrowcastError

if TYPE_CHECKING:
    from narrowcast.deliver.routing.table_routes import TableRoutes
    from narrowcast.deliver.wire.columns import Columns

# A pulse also says what the ones before it said, so that a few of them may be lost.
MEMORY = 4
LOOKS = 4  # at a checkpoint that cannot be read, before the source begins without one
MOST_LATELY = 50_000  # channels in one pulse; it must fit into one message


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """`most_messages` is the aggregation h, `most_bytes` keeps a frame within one packet.

    `most_columns`: bytes of a frame of columns, which carriers cut into packets as reliably as they carry them.
    `few`: a channel that gets fewer rows of an entry gets them as messages, which then cost less and are smaller.
    `linger`: how long messages wait for company. An edge that takes several channels waits until those that had
    none are told so: at once, unless that was done less than `settle` ago. `heartbeat`: when nothing happens.
    """

    most_messages: int = 64
    most_bytes: int = 1200
    most_columns: int = 60_000
    few: int = 16
    linger: float = 0.0
    settle: float = 0.002
    heartbeat: float = 0.25
    poll: float = 0.02
    retry: float = 0.25
    checkpoint: float = 1.0
    read_most: int = 256


@dataclass(slots=True)
class _Lane:
    """One channel: what has been claimed for it, and what waits to be sent."""

    channel: int
    address: Address
    claimed: int
    waiting: list[Message] = field(default_factory=list)
    size: int = FRAME_BYTES  # of the frame that waits
    ours: bool = True  # to send


class Source(Node):
    """Sends the frames of one shard."""

    role = "source"
    sender = True

    def __init__(
        self,
        name: str,
        shard: int,
        settings: SourceSettings | None = None,
        *,
        gateway: str | None = None,
        beat: float = 1.0,
    ) -> None:
        """`gateway`: send only what enters at this broker, as one of several sources of a network does."""
        super().__init__(name, beat=beat)
        self.shard, self.gateway = shard, gateway
        self.settings = settings or SourceSettings()
        self.sequence = -1  # everything up to this entry has been looked at; −1: not known yet
        self.in_force = 0
        self._routing: Routing | None = None  # None: the plan in force has not come in yet
        self._lanes: dict[int, _Lane] = {}
        self._waiting: dict[int, _Lane] = {}  # those with messages that wait
        self._together: frozenset[int] | None = None  # channels that somebody takes with another; None: not known
        self._table_routes: TableRoutes | None = None  # of the plan in force, once columns come along
        self._pulses: deque[int] = deque(maxlen=MEMORY)  # where the last few pulses ended
        self._saved = -1
        self._reading = 0
        self._read_at = self._flush_at = self._settle_at = self._save_at = NEVER
        self._beat_frames_at = NEVER
        self._told_at = -NEVER  # when all channels were last spoken for
        self._fresh_until = 0.0  # without the log, "nothing new" is not for a source to say
        self._handlers |= {WasRead: self._on_read, Failed: self._on_failed}

    # Starting: where was I?

    def _start(self, now: float) -> None:
        super()._start(now)
        self._read_at = now
        self._save_at = now + self.settings.checkpoint

    @property
    def _key(self) -> str:
        return records.numbered(records.SOURCE, self.shard)

    def _noted(self, event: Noted, now: float) -> None:
        if event.key == self._key and self.sequence < 0:
            saved = {"sequence": 0, "epoch": 0} if event.data is None else self._understood(event.key, event.data)
            saved = saved or self._last_cutover()
            if saved is not None:
                self.sequence = self._saved = saved["sequence"]
                self._enter(saved["epoch"])
                self._read_at = now

    def _last_cutover(self) -> dict[str, Any] | None:
        """Where to begin if the checkpoint cannot be read: where the plan in force began; None if nobody said yet."""
        if self.epoch is STEADY and self.counts["malformed records"] < LOOKS:
            return None
        return {"sequence": self.epoch["cutover"].get(str(self.shard), 0), "epoch": self.epoch["current"]}

    def _prepare(self, now: float) -> None:
        """Profiles are read before we say that we are ready: at the cut-over there would be silence meanwhile."""
        for epoch in self.plans:
            if epoch > self.in_force:
                with suppress(KeyError, NarrowcastError, RecursionError):
                    self.plans[epoch].ready()
        super()._prepare(now)
        if self.sequence >= 0 and self._routing is None and self.in_force in self.plans:
            self._enter(self.in_force)
            self._read_at = now

    def _enter(self, epoch: int) -> None:
        """From here on the plan of `epoch` is in force. Until it is known, nothing can be said."""
        self.in_force = epoch
        self._routing = self._ready(self.plans.get(epoch)) if epoch else nothing()
        self._table_routes = None
        begun = self._at
        routing = self._routing
        addresses = self._channels(routing) if routing else {}
        self._lanes = {channel: _Lane(channel, at, begun) for channel, at in sorted(addresses.items())}
        self._waiting = {}
        for channel, lane in self._lanes.items():
            lane.ours = routing is None or self._enters_here(channel, routing)
        self._together = None if routing is None else _taken_together(routing)
        self._pulses.clear()
        self._pulses.append(begun)
        self._join()

    @property
    def _at(self) -> int:
        """The place up to which everything has been looked at."""
        return end_of(max(self.sequence, 0))

    def _channels(self, routing: Routing) -> Mapping[int, Address]:
        """What there is to send: all but what relays send in their sites."""
        return routing.sent_by[""]

    def _enters_here(self, channel: int, routing: Routing) -> bool:
        """Whether a channel is ours to send. What is true of the others we know as well: it is all in the log."""
        if self.gateway is None:
            return True
        at = routing.enters_at(channel) or routing.enters_at(min(routing.addresses))
        return at in (None, self.gateway)

    def _pulse_at(self, routing: Routing) -> Address | None:
        return routing.pulse

    def _ready(self, routing: Routing | None) -> Routing | None:
        """A plan with a profile that is none has no channels: everybody reads the log."""
        try:
            return routing if routing is None else routing.ready()
        except (KeyError, NarrowcastError, RecursionError):
            self.counts["malformed records"] += 1
            return nothing()

    # Reading: entries in order, under the plan in force.

    def _on_read(self, event: WasRead, now: float) -> None:
        self._fresh_until = now + 4 * self.settings.retry
        if event.request == self._reading:
            self._reading = 0
        if event.shard != self.shard or self.sequence < 0 or self._routing is None:
            return
        if event.first > self.sequence + 1 and event.after <= self.sequence:
            self._skip_to(event.first - 1)
        if event.after > self.sequence:
            return  # a tail that runs ahead: what lies between has still to be read
        for entry in event.entries:
            if entry.sequence > self.sequence and not self._take(entry):
                break
        full = event.upto == self.sequence and event.goes_on(self.settings.read_most)
        self._schedule(now, full)

    def _skip_to(self, sequence: int) -> None:
        """Entries are gone from the log, and with them perhaps a marker: say nothing until the next one."""
        self.counts["truncated"] += 1
        self.sequence = sequence
        self._routing, self._lanes, self._waiting, self._table_routes = nothing(), {}, {}, None

    def _take(self, entry: Entry) -> bool:
        """Deal with one entry; whether to go on, which needs the plan in force."""
        if generation_of(entry.sequence) != generation_of(self.sequence):
            self._begin_generation(entry.sequence)
        found = decode_entry(entry.data)
        if isinstance(found, Batch):
            self._route(entry.sequence, found.payloads)
        elif isinstance(found, ColumnBatch):
            self._route_columns(entry.sequence, found)
        elif isinstance(found, Malformed):
            self.counts[f"entry {found.reason}"] += 1
        self.sequence = entry.sequence
        if isinstance(found, Marker) and found.epoch > self.in_force:
            self._cut_over(found.epoch)
        return self._routing is not None

    def _begin_generation(self, number: int) -> None:
        """A claim is of one generation: the old one is spoken for to its end, and claims begin again with its heir.

        What lies between, which is nothing but the entry that begins it, edges read from the log: so they learn of it.
        """
        self._speak(end_of(self.sequence))
        self.sequence = number - 1
        if self._lanes:
            self._enter(self.in_force)

    def _route(self, sequence: int, payloads: tuple[bytes, ...]) -> None:
        """Put each message of an entry into the lanes of its channels."""
        assert self._routing is not None
        route, lanes = self._routing.route, self._lanes
        for index, message in enumerate(decode_payloads(payloads)):
            if isinstance(message, Malformed):
                self.counts["payload"] += 1
                continue
            flow, channels = route(message)
            carried = (place(sequence, index), flow, payloads[index])
            for channel in channels:
                lane = lanes.get(channel)
                if lane is not None:
                    self._put(lane, carried)

    def _put(self, lane: _Lane, message: Message) -> None:
        """Into the channel's frame; one that would be too large goes out first, up to the message before."""
        size = MESSAGE_BYTES + len(message[2])
        if FRAME_BYTES + size > MOST_BYTES:
            self._leave_out(lane, message[0])
            return
        if lane.waiting and lane.size + size > self.settings.most_bytes:
            self._send(lane, lane.waiting[-1][0])
        lane.waiting.append(message)
        lane.size += size
        self._waiting[lane.channel] = lane
        if len(lane.waiting) >= self.settings.most_messages:
            self._send(lane, message[0])

    def _route_columns(self, sequence: int, found: ColumnBatch) -> None:
        """Send the rows of an entry to their channels, as columns; a few for one as messages, where they may be."""
        assert self._routing is not None
        import numpy as np

        from narrowcast.deliver.routing.table_routes import TableRoutes  # only who has columns needs Arrow
        from narrowcast.deliver.wire.columns import Columns, decode_columns, is_plain

        batch = decode_columns(found.data, found.count)
        if isinstance(batch, Malformed):
            self.counts["entry columns"] += 1
            return
        if self._table_routes is None:
            self._table_routes = TableRoutes(self._routing)
        flows, routes = self._table_routes(batch)
        whole = Columns(place(sequence, 0) - 1, np.arange(found.count), batch, found.data, flows)
        routes = {channel: rows for channel, rows in sorted(routes.items()) if channel in self._lanes}
        few = {channel: rows for channel, rows in routes.items() if len(rows) < self.settings.few}
        if few and is_plain(batch):
            wanted = np.unique(np.concatenate(list(few.values())))
            messages = dict(zip(wanted.tolist(), whole.select(wanted), strict=True))
            for channel in few:
                for row in routes.pop(channel).tolist():
                    self._put(self._lanes[channel], messages[row])
        for channel, rows in routes.items():
            self._put_columns(self._lanes[channel], whole.select(rows))

    def _put_columns(self, lane: _Lane, rows: Columns) -> None:
        """What waits goes first. Rows go out at once, in as many frames as they need."""
        if lane.waiting:
            self._send(lane, rows.base)
        most = min(self.settings.most_columns, MOST_BYTES)
        size = COLUMNS_BYTES + ROW_BYTES * len(rows) + rows.nbytes  # nearly, and not worth more if it is too much
        if size <= most or len(rows) == 1:
            size = COLUMNS_BYTES + ROW_BYTES * len(rows) + len(rows.data)
        if size > most and len(rows) > 1:
            step = max(1, min(len(rows) // 2, len(rows) * most * 7 // (8 * size)))  # rows are not all of one size
            for start in range(0, len(rows), step):
                self._put_columns(lane, rows.part(start, start + step))
        elif size > MOST_BYTES:
            self._leave_out(lane, rows.first)
        else:
            if lane.ours:
                frame = Frame(self.shard, lane.channel, self.in_force, lane.claimed, rows.last, rows)
                self._do(Send(lane.address, frame))
            lane.claimed = rows.last
            self.counts["frames"] += 1

    def _leave_out(self, lane: _Lane, at: int) -> None:
        """A message that no frame can hold: claims end before it and go on behind it, so edges read it from the log."""
        self.counts["too large"] += 1
        if lane.claimed < at - 1:
            self._send(lane, at - 1)
        lane.claimed = at

    def _cut_over(self, epoch: int) -> None:
        """The old plan speaks for everything up to the marker, the new one for what follows."""
        self._speak(end_of(self.sequence))
        self._enter(epoch)

    # Sending: frames that connect, each from where the one before it ended.

    def _send(self, lane: _Lane, upto: int) -> None:
        messages = tuple(lane.waiting)
        if lane.ours:
            self._do(Send(lane.address, Frame(self.shard, lane.channel, self.in_force, lane.claimed, upto, messages)))
        lane.claimed, lane.waiting, lane.size = upto, [], FRAME_BYTES
        self._waiting.pop(lane.channel, None)
        self.counts["frames" if messages else "heartbeats"] += 1

    def _speak(self, upto: int, *, idle: bool = True) -> None:
        """Send what waits; and for channels without messages, if asked for, that there are none."""
        pulse = self._pulse_at(self._routing) if self._routing else None
        for lane in list(self._lanes.values() if idle and pulse is None else self._waiting.values()):
            self._send(lane, upto)
        if idle and pulse is not None and self._lanes:
            self._pulse(pulse, upto)

    def _pulse(self, address: Address, upto: int) -> None:
        after = self._pulses[0]
        lately = [lane for lane in self._lanes.values() if lane.claimed > after]
        for lane in lately[MOST_LATELY:]:
            # More than a pulse can name: these have heartbeats of their own, and the pulse begins after them.
            self._send(lane, upto)
        named = tuple((lane.channel, lane.claimed) for lane in lately[:MOST_LATELY])
        if len(lately) > MOST_LATELY:
            after = upto
        self._do(Send(address, Pulse(self.shard, self.in_force, after, upto, named)))
        self._pulses.append(upto)
        self.counts["pulses"] += 1

    def _schedule(self, now: float, full: bool) -> None:
        s = self.settings
        self._read_at = now if full else now + s.poll
        upto = self._at
        if self._waiting:
            self._flush_at = min(self._flush_at, now + s.linger)
        if self._behind(upto) and self._waited_for():
            # Idle: at once. Busy: what is already waiting goes first, and the next batch is the wait.
            self._settle_at = min(self._settle_at, now + s.settle if full else max(now, self._told_at + s.settle))
        self._beat_frames_at = min(self._beat_frames_at, now + s.heartbeat)
        self._timers(now)

    def _behind(self, upto: int) -> bool:
        """Whether some channel has not been spoken for so far."""
        if self._routing is not None and self._pulse_at(self._routing) is not None:
            return bool(self._lanes) and self._pulses[-1] < upto
        return any(lane.claimed < upto for lane in self._lanes.values())

    def _waited_for(self) -> bool:
        """Whether somebody who takes what was sent since the last pulse waits for other channels to speak, too.

        Who takes one channel needs no more than its frames; heartbeats tell of those that were lost at the end.
        """
        if self._together is None or self._routing is None or self._pulse_at(self._routing) is None:
            return True
        told = self._pulses[-1]
        lanes = (self._lanes[channel] for channel in self._together if channel in self._lanes)
        return any(lane.claimed > told or lane.waiting for lane in lanes)

    def _timers(self, now: float) -> None:
        upto = self._at
        every = now >= self._beat_frames_at
        if every and now > self._fresh_until:
            self._beat_frames_at, every = now + self.settings.heartbeat, False
        settle, flush = now >= self._settle_at, now >= self._flush_at
        if not (every or settle or flush):
            return
        idle = every or (settle and self._behind(upto))
        self._speak(upto, idle=idle)
        self._told_at = now if idle else self._told_at
        self._flush_at = NEVER
        self._settle_at = NEVER if every or settle else self._settle_at
        if every:
            self._beat_frames_at = now + self.settings.heartbeat

    def _on_tick(self, event: Tick, now: float) -> None:
        super()._on_tick(event, now)
        if now >= self._read_at:
            self._ask(now)
        self._timers(now)
        if now >= self._save_at:
            self._save(now)

    def _ask(self, now: float) -> None:
        self._read_at = now + self.settings.retry
        if self.sequence < 0:
            self._do(Lookup(self._key))
        elif self._routing is not None:
            self._reading = self._request()
            self._do(Read(self._reading, self.shard, self.sequence, None, self.settings.read_most))

    def _on_failed(self, event: Failed, now: float) -> None:
        if event.request == self._reading:
            self._reading, self._read_at = 0, now + self.settings.poll

    def _save(self, now: float) -> None:
        """A checkpoint: an entry after which nothing waits to be sent, and the epoch in force there."""
        self._save_at = now + self.settings.checkpoint
        if self.sequence > self._saved and not self._waiting:
            self._saved = self.sequence
            record: dict[str, Any] = {"sequence": self.sequence, "epoch": self.in_force}
            self._do(Write(self._request(), self._key, records.pack(record)))

    def _drain(self) -> None:
        """Plans before the one in force are done with, once something is."""
        if self.sequence >= 0:
            self.plans = {number: plan for number, plan in self.plans.items() if number >= self.in_force}

    def _wanted(self) -> dict[Address, None]:
        plans = [self.plans[n] for n in sorted(self.plans) if n >= self.in_force]
        channels = [(plan, c, a) for plan in plans for c, a in sorted(self._channels(plan).items())]
        return {address: None for plan, channel, address in channels if self._enters_here(channel, plan)}

    def _next_wake(self, now: float) -> float:
        return min(self._beat_at, self._read_at, self._flush_at, self._settle_at, self._beat_frames_at, self._save_at)


def _taken_together(routing: Routing) -> frozenset[int] | None:
    """The channels that a subscription takes beside another; None where plans do not say who takes what."""
    if routing.climbs or routing.relayed or not routing.taken:
        return None
    return frozenset(channel for channels in routing.taken.values() if len(channels) > 1 for channel in channels)
