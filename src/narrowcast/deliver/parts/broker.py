"""A broker of the overlay: looks up the channel and passes frames on; as a filter, thins them out per child.

It keeps nothing that a restart would miss: plans, and what subscriptions below it want, come from the registry,
attachments are repeated by the edges. What is lost while it is away is repaired from the log.

In a filtered tree every broker takes part in telling the ones above what is wanted (`climb`), whether its filter works
or not; so a filter can begin to work anywhere at once. There may be profiles to parse, 800 of them in 50 to 160 ms, and
no frame waits for that: it goes on in slices of a few milliseconds, a Tick each. Frames that come in between are passed
on as they are: too much for a moment, never too little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.climb import Climb
from narrowcast.deliver.parts.coverage import Coverage
from narrowcast.deliver.parts.effects import Lookup, Send, Watch, Write
from narrowcast.deliver.parts.events import Arrived, Noted, Refused, Tick, Written
from narrowcast.deliver.parts.filter_moves import FilterMode
from narrowcast.deliver.parts.node import MOST_PLANS, Node
from narrowcast.deliver.parts.part import NEVER
from narrowcast.deliver.parts.relay import Unopened, columns_in
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Address, Link, Overlay
from narrowcast.deliver.wire import Attach, Frame, Malformed, decode_payloads

MOST_HOLES = 16  # in what a root remembers to have passed on
SLICE = 2000  # characters of profiles parsed before frames get their turn: 4 ms, or 15 on a slow machine


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """`forget`: how long an attachment holds that its edge does not repeat. `retry`: when to ask the registry again."""

    forget: float = 2.0
    retry: float = 0.25


@dataclass(slots=True)
class _Place:
    """Our place in the tree of one epoch: what we know there, and how far the registry has it."""

    climb: Climb
    revisions: dict[str, int] = field(default_factory=dict)  # of the records that were heard, by broker
    wrote: dict[str, Any] | None = None  # the last one that is there
    writing: dict[str, Any] | None = None
    request: int = 0
    unheard: dict[str, None] = field(default_factory=dict)  # keys that nobody has said anything about yet
    due: float = 0.0  # when to ask or to write again


class Broker(Node):
    """Passes frames on along the trees of the plans it knows."""

    role = "broker"

    def __init__(self, name: str, settings: BrokerSettings | None = None, *, beat: float = 1.0) -> None:
        super().__init__(name, beat=beat)
        self.settings = settings or BrokerSettings()
        self.mode: FilterMode | None = None  # None: as the plan says
        self._mode_for: int | None = None  # the epoch that the mode is for; None: any
        self._attached: dict[tuple[int, int], dict[str, tuple[float, int]]] = {}  # by (epoch, channel): till when, turn
        self._passed: dict[tuple[int, int, int], Coverage] = {}  # by (epoch, channel, shard), where we are the root
        self._places: dict[int, _Place] = {}  # by epoch, where subscriptions climb
        self._watches_subscriptions = False
        # Subscriptions as they were noted, with their revisions; of ours, the edge and the profile.
        self._subscriptions: dict[str, tuple[bytes, tuple[str, str] | None]] = {}
        self._newest = 0  # the revision of the newest note on a subscription
        self._handlers |= {Arrived: self._on_arrived, Written: self._on_written, Refused: self._on_refused}

    def _start(self, now: float) -> None:
        super()._start(now)
        self._do(Watch(records.named(records.FILTER, self.name)))

    def _noted(self, event: Noted, now: float) -> None:
        if event.key == records.named(records.FILTER, self.name):
            record = None if event.data is None else self._understood(event.key, event.data)
            self.mode = None if event.data is None else _mode(record)
            self._mode_for = None if record is None else record.get("epoch")
        elif event.key.startswith(records.SUBSCRIPTION):
            self._note_subscription(event, now)
        elif event.key.startswith(records.WANTS):
            self._note_wants(event, now)

    # Subscriptions climb.

    def _prepare(self, now: float) -> None:
        """Ready as soon as frames can be passed on, which is before they can be filtered."""
        super()._prepare(now)
        for epoch, routing in self.plans.items():
            if epoch not in self._places and routing.climbs:
                self._begin(epoch, routing, now)

    def _begin(self, epoch: int, routing: Routing, now: float) -> None:
        tree = next((a for a in routing.addresses.values() if isinstance(a, Overlay)), None)
        if tree is None or self.name not in tree.brokers:
            return
        climb = Climb(self.name, tree)
        near = [self.name, *climb.children, *([] if climb.parent is None else [climb.parent])]
        keys = [records.wants_of(epoch, broker) for broker in near]
        self._places[epoch] = _Place(climb, unheard=dict.fromkeys(keys))
        for key in keys:
            self._do(Watch(key))
        if not self._watches_subscriptions:
            self._watches_subscriptions = True
            self._do(Watch(records.SUBSCRIPTION))
        self._advance(epoch, now)

    def _note_subscription(self, event: Noted, now: float) -> None:
        """A subscription came, changed or went: whose it is, every epoch must know."""
        try:
            name = records.name_of(event.key)
        except ValueError:
            self.counts["malformed records"] += 1
            return
        before = self._subscriptions.get(name)
        if event.data is None:
            self._subscriptions.pop(name, None)
            own = None
        elif before is not None and before[0] == event.data:
            return  # registered again
        else:
            record = self._understood(event.key, event.data)
            mine = record is not None and record.get("gateway") == self.name
            own = (record["edge"], record["profile"]) if mine and record is not None else None
            self._subscriptions[name] = (event.data, own)
        for epoch, place in self._places.items():
            place.unheard.pop(event.key, None)
            if place.climb.started:
                place.climb.note(name, *(own or (None,)))
                self._advance(epoch, now)

    def _note_wants(self, event: Noted, now: float) -> None:
        try:
            epoch, broker = records.wants_in(event.key)
        except ValueError:
            self.counts["malformed records"] += 1
            return
        place = self._places.get(epoch)
        if place is None or event.revision < place.revisions.get(broker, 0):
            return  # an answer that newer news has overtaken
        record = self._understood(event.key, event.data)
        if record is None and event.data is not None:
            return  # rubbish: whoever should stand there writes it again
        place.unheard.pop(event.key, None)
        place.revisions[broker] = event.revision
        if broker == self.name:
            self._note_own(place, record)
        elif broker == place.climb.parent:
            place.climb.hear_above(record)
        elif broker in place.climb.children:
            place.climb.hear(broker, record)
        self._advance(epoch, now)

    def _note_own(self, place: _Place, record: dict[str, Any] | None) -> None:
        climb = place.climb
        if not climb.started:
            climb.take_own(record)
            place.wrote = record
            for name in list(climb.subs):  # they may have gone while we were away
                if name not in self._subscriptions:
                    key = records.named(records.SUBSCRIPTION, name)
                    place.unheard[key] = None
            for name, (_, own) in self._subscriptions.items():
                climb.note(name, *(own or (None,)))
        elif record is not None and record == place.writing:
            self._wrote(place)
        elif record is not None and record != place.wrote:
            climb.take_own(record)  # by an earlier self: it was on its way when we started
            place.wrote, place.writing = record, None

    def _wrote(self, place: _Place) -> None:
        assert place.writing is not None
        place.wrote, place.writing, place.request = place.writing, None, 0
        place.climb.written(place.wrote)

    def _advance(self, epoch: int, now: float) -> None:
        """Write what has changed, one record at a time."""
        place = self._places[epoch]
        self._go_on(place)
        if place.climb.started and place.writing is None and place.climb.record() != place.wrote:
            place.writing = place.climb.begin()
            self._write(epoch, place, now)

    def _write(self, epoch: int, place: _Place, now: float) -> None:
        assert place.writing is not None
        place.request, place.due = self._request(), now + self.settings.retry
        data = records.pack(place.writing)
        self._do(Write(place.request, records.wants_of(epoch, self.name), data, place.revisions.get(self.name, 0)))

    def _on_written(self, event: Written, now: float) -> None:
        for epoch, place in self._places.items():
            if place.request == event.request and place.writing is not None:
                place.revisions[self.name] = event.revision
                self._wrote(place)
                self._advance(epoch, now)

    def _on_refused(self, event: Refused, now: float) -> None:
        for epoch, place in self._places.items():
            if place.request == event.request and event.stale:
                self._do(Lookup(records.wants_of(epoch, self.name)))  # what stands there says why

    def _go_on(self, place: _Place) -> None:
        spent = 0
        while spent < SLICE and (took := place.climb.parse(SLICE - spent)):
            spent += took

    def _ask_again(self, now: float) -> None:
        for epoch, place in self._places.items():
            if now >= place.due:
                place.due = now + self.settings.retry
                for key in place.unheard:
                    self._do(Lookup(key))
                if place.writing is not None:
                    self._write(epoch, place, now)
            self._advance(epoch, now)

    # Frames.

    def _on_arrived(self, event: Arrived, now: float) -> None:
        if isinstance(event.what, Attach):
            self._attach(event.what, now)
        elif isinstance(event.what, Frame):
            self._forward(event.what, now)

    def _attach(self, attach: Attach, now: float) -> None:
        edges = self._attached.setdefault((attach.epoch, attach.channel), {})
        if attach.on:
            edges[attach.edge] = (now + self.settings.forget, attach.turn)
        else:
            edges.pop(attach.edge, None)

    def _forward(self, frame: Frame, now: float) -> None:
        routing = self.plans.get(frame.epoch)
        address = routing.address(frame.channel) if routing else None
        if routing is None or not isinstance(address, Overlay):
            self.counts["unknown channel"] += 1
            return
        place = self._places.get(frame.epoch)
        filters = bool(frame.messages) and self._filters(frame.epoch, routing, address, place)
        if filters and isinstance(frame.messages, Unopened) and not frame.messages.is_whole():
            self.counts["malformed frames"] += 1
            return
        if address.root == self.name and self._has_passed(frame):
            self.counts["repeated frames"] += 1
            return
        children = address.children(self.name)
        targets = [*children, *self._edges(frame, place, now)]
        self.counts["frames"] += len(targets)
        thin = [frame] * len(targets)
        if filters:
            thin = self._thinned(frame, targets, place.climb) if place else self._by_flow(frame, targets, address)
        self.counts["messages to brokers"] += sum(len(each.messages) for each in thin[: len(children)])
        for target, each in zip(targets, thin, strict=True):
            self._do(Send(Link(target), each))

    def _has_passed(self, frame: Frame) -> bool:
        """Whether a frame says nothing that was not passed on before, by another source or before one started again.

        Who did not get it then has it from the log.
        """
        passed = self._passed.setdefault((frame.epoch, frame.channel, frame.shard), Coverage())
        if passed.reach(frame.after) >= frame.upto:
            return True
        passed.add(frame.after, frame.upto)
        if len(passed.intervals) > MOST_HOLES:
            passed.forget(passed.intervals[-MOST_HOLES][0])
        return False

    def _edges(self, frame: Frame, place: _Place | None, now: float) -> list[str]:
        """Who is attached; where subscriptions climb, only those who know which of theirs are in the table."""
        edges = self._attached.get((frame.epoch, frame.channel), {})
        turn = None if place is None else place.climb.turn
        return [edge for edge, (until, known) in edges.items() if until > now and turn in (None, known)]

    def _filters(self, epoch: int, routing: Routing, address: Overlay, place: _Place | None) -> bool:
        """Whether to open frames: as the registry says, or else the plan. The root sends no more than anybody wants."""
        if place is None:
            return bool(routing.relayed) and self.is_active(epoch, routing)
        return address.root == self.name or self.is_active(epoch, routing)

    def is_active(self, epoch: int, routing: Routing) -> bool:
        """Whether our filter works in an epoch. Anywhere on the tree is sound."""
        if self.mode is None or self._mode_for not in (None, epoch):
            return self.name in routing.filters
        return self.mode is FilterMode.ACTIVE

    def _thinned(self, frame: Frame, targets: list[str], climb: Climb) -> list[Frame]:
        """The frame for each target: fewer messages, the same claim."""
        messages = _read(frame)
        wanted, active = climb.wanted, self.is_active(frame.epoch, self.plans[frame.epoch])
        if not active:
            if not climb.knows_all:
                return [frame] * len(targets)
            kept = [_is_message(message) and wanted.anybody(message) for message in messages]
            return [self._with(frame, kept)] * len(targets)
        frames = []
        for target in targets:
            if target in wanted:
                kept = [_is_message(message) and wanted.wants(target, message) for message in messages]
                frames.append(self._with(frame, kept))
            else:
                frames.append(frame)  # nobody known below: whoever it is may want anything
        return frames

    def _by_flow(self, frame: Frame, targets: list[str], address: Overlay) -> list[Frame]:
        """In a network: for each child the flows that sites beyond it want, and what belongs to none."""
        routing, children = self.plans[frame.epoch], address.children(self.name)
        frames = []
        for target in targets:
            beyond = routing.wanted_beyond(address, target) if target in children else None
            known = len(routing.flows)
            kept = [beyond is None or flow >= known or flow in beyond for _, flow, _ in frame.messages]
            frames.append(self._with(frame, kept))
        return frames

    def _with(self, frame: Frame, kept: list[bool]) -> Frame:
        if all(kept):
            return frame
        self.counts["filtered"] += len(kept) - sum(kept)
        columns = columns_in(frame.messages)
        if columns is not None and any(kept):
            return replace(frame, messages=columns.select([k for k, keep in enumerate(kept) if keep]))
        if not any(kept):
            return replace(frame, messages=())
        return replace(frame, messages=tuple(m for m, keep in zip(frame.messages, kept, strict=True) if keep))

    def _drain(self) -> None:
        """The last few plans are kept: frames of an older one may still be on their way."""
        current = self.epoch["current"]
        kept = [n for n in sorted(self.plans)[-MOST_PLANS:] if n >= current - 1]
        self.plans = {n: self.plans[n] for n in kept}
        self._attached = {key: edges for key, edges in self._attached.items() if key[0] >= current - 1}
        self._passed = {key: passed for key, passed in self._passed.items() if key[0] in self.plans}
        self._places = {n: place for n, place in self._places.items() if n in self.plans}

    def _wanted(self) -> dict[Address, None]:
        """A broker is reached by its name; where its children are is for the carrier to know."""
        return {}

    def _on_tick(self, event: Tick, now: float) -> None:
        super()._on_tick(event, now)
        self._ask_again(now)
        for edges in self._attached.values():
            for edge in [edge for edge, (until, _) in edges.items() if until <= now]:
                del edges[edge]

    def _next_wake(self, now: float) -> float:
        if any(place.climb.is_busy for place in self._places.values()):
            return now
        open_ = (place.due for place in self._places.values() if place.unheard or place.writing is not None)
        return min(self._beat_at, min(open_, default=NEVER))


def _read(frame: Frame) -> Sequence[Mapping[str, Any] | Malformed]:
    columns = columns_in(frame.messages)
    if columns is None:
        return decode_payloads([payload for _, _, payload in frame.messages])
    from narrowcast.deliver.wire.columns import rows_of  # only who has columns needs Arrow

    return rows_of(columns.batch)


def _mode(record: dict[str, Any] | None) -> FilterMode:
    """A state that is not understood passes everything on."""
    try:
        return FilterMode(record["state"] if record else None)
    except ValueError:
        return FilterMode.PASSIVE


def _is_message(message: Mapping[str, Any] | Malformed) -> TypeGuard[Mapping[str, Any]]:
    return not isinstance(message, Malformed)
