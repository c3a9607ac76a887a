"""The relay of a site: an edge on the backbone and a source in the site, in one.

It takes the trees that bring what its site wants, and sends it on in the site's channels. A claim `(after, upto]` on a
channel of the site says: everything of it that this site wants is in here. The relay may say so once its own
watermark has passed `upto`; and it says so under the plan by whose trees it got there, for another one may want more.
What it misses it reads from the log, once for the whole site. The frames of the last minutes are kept: who lacks one
asks the relay, and the log only if the relay does not answer.

It keeps nothing that a restart would miss. A relay that starts again begins at the end of the log; what lies between
is read there by those who want it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.edge import Edge, EdgeSettings, _Subscription, lacked
from narrowcast.deliver.parts.effects import Deliver, Effect, Gap, Join, Leave, Send, Subscribed
from narrowcast.deliver.parts.events import Arrived, Noted, Subscribe, Tick
from narrowcast.deliver.parts.node import MOST_PLANS, Node
from narrowcast.deliver.parts.reader import Message, Opened, Reader, end_of_item, n_messages
from narrowcast.deliver.parts.relay import columns_in
from narrowcast.deliver.parts.source import Source, SourceSettings
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.sites import EVERYTHING, relay_subscription, site_asks, site_pulse
from narrowcast.deliver.transport import Address, Entry
from narrowcast.deliver.wire import (
    Attach,
    Frame,
    Malformed,
    Marker,
    Pulse,
    decode_entry,
    decode_payloads,
    end_of,
    generation_of,
    sequence_of,
)
from narrowcast.deliver.wire.frame import NO_FLOW

if TYPE_CHECKING:
    from narrowcast.deliver.wire.columns import Columns

OWN = (Subscribed, Deliver, Gap)  # what an edge tells its application; a relay has none
AGAIN_S = 0.05  # a frame is not sent again sooner: many who lack it ask for it at once


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """`kept_s`, `kept_bytes`: how long frames are kept to be sent again, and how many bytes of them at most."""

    kept_s: float = 120.0
    kept_bytes: int = 64 << 20
    edge: EdgeSettings = field(default_factory=EdgeSettings)
    source: SourceSettings = field(default_factory=SourceSettings)


@dataclass(slots=True)
class SiteReader(Reader):
    """Takes everything; remembers the flow of what came by a tree, and the markers of what came from the log."""

    flow_at: dict[int, int] = field(default_factory=dict)
    markers: list[tuple[int, int]] = field(default_factory=list)

    def take(self, opened: Opened, now: float, counts: Counter[str]) -> None:
        frame = opened.frame
        self.heard, self.head = now, max(self.head, frame.upto)
        if self.blind or frame.upto <= self.mark:
            return
        self.claim(frame.epoch, frame.channel, frame.after, frame.upto)
        self.furthest = max(self.furthest, frame.upto)
        for at, flow, payload in frame.messages:
            if at > self.mark:
                self.held[at], self.flow_at[at] = payload, flow
        counts["came by channel"] += len(frame.messages)

    def connected(self, epoch: int) -> int:
        """How far the channels of one epoch connect."""
        return self._connected(epoch)

    def from_log(self, entries: Iterable[Entry]) -> list[Message]:
        entries = tuple(entries)
        found = ((entry.sequence, decode_entry(entry.data)) for entry in entries)
        self.markers = [(end_of(at), what.epoch) for at, what in found if isinstance(what, Marker)]
        return Reader.from_log(self, entries)

    def flowing(self, upto: int) -> list[Any]:
        """What is held up to a place, in order: messages with their flows, and columns."""
        found = self.held_upto(upto)
        if not self.columns:
            return [(at, self.flow_at[at], payload) for at, payload in found]
        # An entry that came both ways is messages now; the flows of its rows are with its columns.
        of = dict(self.flow_at)
        for rows in (rows for parts in self.columns.values() for rows in parts):
            of |= zip(rows.places, rows.flows.tolist(), strict=True)
        return [(item[0], of[item[0]], item[1]) if type(item) is tuple else item for item in found]

    def pass_on(self, wanted: list[Message], upto: int, credit: int | None) -> list[Message]:
        handed = Reader.pass_on(self, wanted, upto, credit)
        if self.flow_at:
            self.flow_at = {at: flow for at, flow in self.flow_at.items() if at in self.held}
        return handed

    def go_blind(self) -> None:
        Reader.go_blind(self)
        self.flow_at = {}

    def _wants(self, message: dict[str, Any] | Malformed) -> bool:
        return not isinstance(message, Malformed)


class SiteSender(Source):
    """The sending half, for one shard: a source whose log is what the relay has got, up to `mark`."""

    def __init__(self, relay: str, shard: int, settings: RelaySettings, do: Callable[[Effect], None]) -> None:
        super().__init__(relay, shard, settings.source)
        self.relay, self.mark, self.keeps = relay, 0, settings
        self.now = 0.0
        self._out = do
        self._kept: dict[tuple[int, int], deque[tuple[Address, Frame]]] = {}  # by epoch and channel
        self._order: deque[tuple[float, int, tuple[int, int]]] = deque()  # when each was kept, its size and where
        self._kept_bytes = 0
        self._again: dict[tuple[int, int, int], float] = {}  # when a frame was last sent again

    # A source, but for where its messages come from.

    @property
    def _at(self) -> int:
        return self.mark

    def _channels(self, routing: Routing) -> Mapping[int, Address]:
        return routing.sent_by.get(self.relay, {})

    def _pulse_at(self, routing: Routing) -> Address | None:
        return site_pulse(self.relay) if routing.pulse is not None else None

    def _join(self) -> None:
        """The relay does it for all shards."""

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Send) and isinstance(effect.what, Pulse):
            effect = replace(effect, what=self._signed(effect.what))
        elif isinstance(effect, Send) and isinstance(effect.what, Frame):
            self._keep(effect.address, effect.what)
        self._out(effect)

    def _signed(self, pulse: Pulse) -> Pulse:
        """With one of our channels in it at least: so it is known to be ours, and to speak for ours alone."""
        if pulse.lately:
            return pulse
        lane = next(iter(self._lanes.values()))
        return replace(pulse, lately=((lane.channel, max(lane.claimed, pulse.after)),))

    # What has come in goes out.

    def forward(self, items: list[Any], after: int, upto: int, epoch: int, now: float) -> None:
        """Everything for this site in `(after, upto]`, as the plan of an epoch has it: messages with their flow, rows.

        What came as columns goes on as columns.
        """
        self.now = now
        if after != self.mark or epoch != self.in_force or self._routing is None:
            self.turn(epoch, after)
        if generation_of(sequence_of(upto)) != generation_of(sequence_of(after)):
            self._speak(self.mark)  # a claim is of one generation; what lies between is read from the log
            self.mark = upto
            self._enter(epoch)
        elif self._routing is not None:
            for item in items:
                if type(item) is tuple:
                    self._route_one(item)
                else:
                    self._route_rows(item)
            self.mark = upto
            self._schedule(now, False)

    def turn(self, epoch: int, at: int) -> None:
        """The plan of `epoch` from a place on; the one before speaks for what it has got.

        Nobody speaks for it again, so that it has nothing more is kept like a frame.
        """
        self._speak(self.mark)
        for lane in self._lanes.values():
            if lane.claimed < self.mark and generation_of(sequence_of(lane.claimed)) == self._generation:
                self._keep(lane.address, Frame(self.shard, lane.channel, self.in_force, lane.claimed, self.mark))
        self.mark = at
        self._enter(epoch)

    @property
    def _generation(self) -> int:
        return generation_of(sequence_of(self.mark))

    @property
    def is_ready(self) -> bool:
        """Whether the plan in force has come in. Until then nothing is said, so it does not matter what there was."""
        return self._routing is not None

    def with_flows(self, items: list[Any]) -> list[Any]:
        """What came from the log, each with its flow under the plan in force."""
        routing = self._routing
        if routing is None:
            return []
        single = [item for item in items if type(item) is tuple]
        decoded = iter(decode_payloads([payload for _, payload in single]))
        return [
            (item[0], _flow_of(next(decoded), routing), item[1]) if type(item) is tuple else self._rows_with_flows(item)
            for item in items
        ]

    def _rows_with_flows(self, rows: Columns) -> Columns:
        from narrowcast.deliver.routing.table_routes import TableRoutes  # only who has columns needs Arrow
        from narrowcast.deliver.wire.columns import Columns

        assert self._routing is not None
        if self._table_routes is None:
            self._table_routes = TableRoutes(self._routing)
        return Columns(rows.base, rows.indices, rows.batch, rows.data, self._table_routes(rows.batch)[0])

    def _channels_of(self, flow: int) -> tuple[int, ...]:
        assert self._routing is not None
        known = self._routing.flows
        return known[flow][1] if flow < len(known) else self._routing.rest

    def _route_one(self, message: tuple[int, int, bytes]) -> None:
        for channel in self._channels_of(message[1]):
            lane = self._lanes.get(channel)
            if lane is not None:
                self._put(lane, message)

    def _route_rows(self, rows: Columns) -> None:
        import numpy as np

        flows: dict[int, list[int]] = {}
        for flow in np.unique(rows.flows).tolist():
            for channel in self._channels_of(flow):
                flows.setdefault(channel, []).append(flow)
        for channel, its in sorted(flows.items()):
            lane = self._lanes.get(channel)
            if lane is not None:
                if lane.waiting:
                    self._send(lane, max(rows.base, lane.waiting[-1][0]))
                self._put_columns(lane, rows.select(np.flatnonzero(np.isin(rows.flows, its))))

    def tick(self, now: float, heard: float) -> float:
        """Send what is due; when to do so again. A relay that hears nothing does not say that there is nothing."""
        self.now = now
        self._fresh_until = heard + 4 * self.settings.retry
        self._timers(now)
        return min(self._flush_at, self._settle_at, self._beat_frames_at)

    # What was sent may be asked for again.

    def _keep(self, address: Address, frame: Frame) -> None:
        key, size = (frame.epoch, frame.channel), _size(frame)
        self._kept.setdefault(key, deque()).append((address, frame))
        self._order.append((self.now, size, key))
        self._kept_bytes += size
        oldest = self.now - self.keeps.kept_s
        while self._order and (self._kept_bytes > self.keeps.kept_bytes or self._order[0][0] < oldest):
            _, size, key = self._order.popleft()
            self._kept_bytes -= size
            self._kept[key].popleft()
            if not self._kept[key]:
                del self._kept[key]

    def repeat(self, asked: Frame, now: float) -> int:
        """Send again what is kept of a channel in `(after, upto]`, and say what there is not; how many frames."""
        self.now = now
        self._again = {key: at for key, at in self._again.items() if at > now - AGAIN_S}
        found: list[tuple[Address, Frame]] = []
        for address, frame in reversed(self._kept.get((asked.epoch, asked.channel), ())):
            if frame.upto <= asked.after:
                break
            if frame.after < asked.upto and (frame.epoch, frame.channel, frame.upto) not in self._again:
                found.append((address, frame))
        for address, frame in reversed(found):
            self._again[frame.epoch, frame.channel, frame.upto] = now
            self._out(Send(address, frame))
        return len(found) + self._speak_for(asked)

    def _speak_for(self, asked: Frame) -> int:
        """What waits for a channel of the plan in force, or that nothing does; a pulse that said so may be lost."""
        lane = self._lanes.get(asked.channel) if asked.epoch == self.in_force else None
        if lane is None or not lane.claimed < asked.upto <= self.mark:
            return 0
        self._send(lane, self.mark)
        return 1


class SiteRelay(Edge):
    """Relays what a site wants from the backbone into the site, at its gateway."""

    role = "relay"
    reader = SiteReader
    sends_by = SiteSender

    def __init__(
        self,
        name: str,
        shards: tuple[int, ...],
        settings: RelaySettings | None = None,
        *,
        gateway: str,
        beat: float = 1.0,
    ) -> None:
        settings = settings or RelaySettings()
        super().__init__(name, shards, settings.edge, gateway=gateway, beat=beat)
        self.subscription = relay_subscription(name)
        self._outgoing = {shard: self.sends_by(self.subscription, shard, settings, self._do) for shard in shards}
        for each in self._outgoing.values():
            each.counts = self.counts
        self._sends_to: set[Address] = set()
        self._send_at = 0.0

    def _start(self, now: float) -> None:
        super()._start(now)
        self._on_subscribe(Subscribe(self.subscription, EVERYTHING), now)

    def _do(self, effect: Effect) -> None:
        if not isinstance(effect, OWN):
            super()._do(effect)

    # Keys: a relay sends, so it has those of all sessions.

    @property
    def _keys_at(self) -> str:
        return records.SEAL

    def _take_keys(self, event: Noted) -> None:
        Node._take_keys(self, event)

    def _has_keys(self, epoch: int) -> bool:
        return Node._has_keys(self, epoch)

    # Plans.

    def _wanted(self) -> dict[Address, None]:
        return {**super()._wanted(), site_asks(self.subscription): None}

    def _drain(self) -> None:
        """The last few plans are kept: somebody may still lack what was sent by an older one."""
        for gone in sorted(self.plans)[:-MOST_PLANS]:
            self.seal.forget(gone)
            del self.plans[gone]
            self._retake()

    def _join(self) -> None:
        """As an edge; and what a plan that is known has for us to send, we are ready to send."""
        super()._join()
        plans = (self.plans[epoch] for epoch in sorted(self.plans))
        wanted = {a: None for plan in plans for a in plan.sent_by.get(self.subscription, {}).values()}
        for address in wanted:
            if address not in self._sends_to:
                self._do(Join(address, True))
        for address in sorted(self._sends_to - wanted.keys(), key=repr):
            self._do(Leave(address, True))
        self._sends_to = set(wanted)

    # From the trees into the site.

    def _advance(self, reader: Reader, now: float) -> None:
        """Epoch by epoch: what came by the trees of a plan is all that this plan's channels need, and no other's."""
        assert isinstance(reader, SiteReader)
        for epoch in sorted(reader.taken):
            upto = reader.connected(epoch)
            if upto > reader.mark:
                self._forward(reader, reader.flowing(upto), upto, epoch, now)
        if reader.holds() > self.settings.most_held:
            self.counts["blinded"] += 1
            reader.go_blind()
        self._plan_read(reader, now)

    def _forward(self, reader: Reader, items: list[Any], upto: int, epoch: int, now: float) -> None:
        outgoing = self._outgoing[reader.shard]
        outgoing.plans = self.plans
        after = reader.mark
        reader.pass_on([], upto, None)
        reader.told = reader.mark
        outgoing.forward(items, after, upto, epoch, now)
        self.counts["relayed"] += n_messages(items)
        self._send_at = min(self._send_at, outgoing.tick(now, reader.heard))

    def _hand(self, subscription: _Subscription, reader: Reader, wanted: list[Any], upto: int) -> None:
        """From the log, which has everything: enough for any plan. At its markers the next one begins."""
        assert isinstance(reader, SiteReader)
        markers = [each for each in reader.markers if reader.mark < each[0] <= upto]
        ends = [*(at for at, _ in markers), *([upto] if not markers or markers[-1][0] < upto else [])]
        epochs = [epoch for _, epoch in markers]
        outgoing, now = self._outgoing[reader.shard], self._now
        for k, end in enumerate(ends):
            epoch = max(outgoing.in_force, self._current_at(reader), *epochs[:k], 0)
            outgoing.plans = self.plans
            if epoch != outgoing.in_force or not outgoing.is_ready:
                outgoing.turn(epoch, reader.mark)
            some = [item for item in wanted if reader.mark < end_of_item(item) <= end]
            self._forward(reader, outgoing.with_flows(some), end, epoch, now)

    def _current_at(self, reader: Reader) -> int:
        """The plan in force, if it is known to be so where a reader stands."""
        begun = end_of(self.epoch["cutover"].get(str(reader.shard), 0))
        return int(self.epoch["current"]) if reader.mark >= begun else 0

    # From the site: what somebody lacks.

    def _on_arrived(self, event: Arrived, now: float) -> None:
        what = event.what
        if not isinstance(what, Attach):
            super()._on_arrived(event, now)
            return
        asked, routing = lacked(what), self.plans.get(what.epoch)
        ours = routing is not None and routing.relay_of(what.channel) == self.subscription
        if asked is None or not ours or asked.shard not in self.shards:
            self.counts["stray"] += 1
        else:
            self.counts["asked"] += 1
            self.counts["sent again"] += self._outgoing[asked.shard].repeat(asked, now)

    # Time.

    def step(self, event: Any, now: float) -> list[Effect]:
        self._now = now
        return super().step(event, now)

    def _on_tick(self, event: Tick, now: float) -> None:
        super()._on_tick(event, now)
        if now >= self._send_at:
            own = self.subscriptions[self.subscription].readers
            self._send_at = min(
                (self._outgoing[shard].tick(now, reader.heard) for shard, reader in own.items()), default=now + 1.0
            )

    def _next_wake(self, now: float) -> float:
        return min(super()._next_wake(now), self._send_at)


def _flow_of(payload: dict[str, Any] | Malformed, routing: Routing) -> int:
    return NO_FLOW if isinstance(payload, Malformed) else routing.flow_of(payload)


def _size(frame: Frame) -> int:
    columns = columns_in(frame.messages)
    return len(columns.data) if columns is not None else sum(len(payload) for _, _, payload in frame.messages)
