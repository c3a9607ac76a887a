"""A broker of the overlay: looks up the channel and passes frames on; as a filter, thins them out per child.

It keeps nothing that a restart would miss: plans come from the registry, attachments are repeated by
the edges. What is lost while it is away is repaired from the log.

A filter has profiles to parse, 800 of them in 50 to 160 ms, and no frame waits for that: parsing begins when the
plan arrives, before its epoch does, and goes on in slices of a few milliseconds, a Tick each. Frames that come in
between are passed on as they are: too much for a moment, never too little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Send, Watch
from narrowcast.deliver.parts.events import Arrived, Noted, Tick
from narrowcast.deliver.parts.node import MOST_PLANS, Node
from narrowcast.deliver.parts.relay import Unopened
from narrowcast.deliver.parts.wanted_below import WantedBelow, profiles_below
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Address, Link, Overlay
from narrowcast.deliver.wire import Attach, Frame, Malformed, decode_payloads
from narrowcast.errors import NarrowcastError

SLICE = 2000  # characters of profiles parsed before frames get their turn: 4 ms, or 15 on a slow machine


class FilterMode(Enum):
    """What a filter does now. Only an active one filters; the others pass everything on: too much, never too little."""

    ACTIVE = "active"
    PASSIVE = "passive"
    MIGRATING = "migrating"
    SPAWNING = "spawning"


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """`forget`: how long an attachment holds that its edge does not repeat."""

    forget: float = 2.0


class Broker(Node):
    """Passes frames on along the trees of the plans it knows."""

    role = "broker"

    def __init__(self, name: str, settings: BrokerSettings | None = None, *, beat: float = 1.0) -> None:
        super().__init__(name, beat=beat)
        self.settings = settings or BrokerSettings()
        self.mode: FilterMode | None = None  # None: as the plan says
        self._attached: dict[tuple[int, int], dict[str, float]] = {}  # edges by (epoch, channel), and until when
        self._tables: dict[tuple[int, int], WantedBelow] = {}  # by (epoch, channel), those that are ready
        self._begun: dict[int, Iterator[int]] = {}  # the parsing for each epoch in which this broker is a filter
        self._unfinished: list[int] = []  # its epochs
        self._handlers[Arrived] = self._on_arrived

    def _start(self, now: float) -> None:
        super()._start(now)
        self._do(Watch(records.named(records.FILTER, self.name)))

    def _noted(self, event: Noted, now: float) -> None:
        if event.key == records.named(records.FILTER, self.name):
            self.mode = None if event.data is None else _mode(self._understood(event.key, event.data))
            self._begin_filters()

    def _prepare(self, now: float) -> None:
        """Ready as soon as frames can be passed on, which is before they can be filtered."""
        super()._prepare(now)
        self._begin_filters()

    def _begin_filters(self) -> None:
        """Begin to parse what a filter needs; where that is little, it is done now."""
        for epoch, routing in self.plans.items():
            if epoch not in self._begun and self._filters(routing):
                self._begun[epoch] = self._parse(epoch, routing)
                self._unfinished.append(epoch)
        self._go_on()

    def _parse(self, epoch: int, routing: Routing) -> Iterator[int]:
        """Make the tables of an epoch, and tell after each step what it took, in characters parsed."""
        for channel, address in routing.addresses.items():
            if not isinstance(address, Overlay) or self.name not in address.brokers:
                continue
            below = profiles_below(routing, channel, self.name)
            yield len(routing.taken)  # to look at a subscription takes no longer than to parse a character
            if below is None:
                continue
            table = WantedBelow()
            for child, profile in below:
                if not self._add(table, child, profile):
                    break
                yield len(profile)
            else:
                self._tables[epoch, channel] = table

    def _add(self, table: WantedBelow, child: str, profile: str) -> bool:
        """Whether a profile is one; where it is not, nobody knows what is wanted, and nothing may be filtered."""
        try:
            table.add(child, profile)
        except (NarrowcastError, RecursionError):
            self.counts["malformed records"] += 1
            return False
        return True

    def _go_on(self) -> None:
        spent = 0
        while self._unfinished and spent < SLICE:
            took = next(self._begun[self._unfinished[0]], None)
            if took is None:
                self._unfinished.pop(0)
            else:
                spent += took

    def _on_arrived(self, event: Arrived, now: float) -> None:
        if isinstance(event.what, Attach):
            self._attach(event.what, now)
        elif isinstance(event.what, Frame):
            self._forward(event.what, now)

    def _attach(self, attach: Attach, now: float) -> None:
        edges = self._attached.setdefault((attach.epoch, attach.channel), {})
        if attach.on:
            edges[attach.edge] = now + self.settings.forget
        else:
            edges.pop(attach.edge, None)

    def _forward(self, frame: Frame, now: float) -> None:
        routing = self.plans.get(frame.epoch)
        address = routing.address(frame.channel) if routing else None
        if routing is None or not isinstance(address, Overlay):
            self.counts["unknown channel"] += 1
            return
        table = self._tables.get((frame.epoch, frame.channel)) if frame.messages and self._filters(routing) else None
        if table is not None and isinstance(frame.messages, Unopened) and not frame.messages.is_whole():
            self.counts["malformed frames"] += 1
            return
        edges = self._attached.get((frame.epoch, frame.channel), {})
        targets = [*address.children(self.name), *(edge for edge, until in edges.items() if until > now)]
        self.counts["frames"] += len(targets)
        for target, thin in zip(targets, self._thinned(frame, targets, table), strict=True):
            self._do(Send(Link(target), thin))

    def _filters(self, routing: Routing) -> bool:
        """As the registry says, or else the plan. Anywhere on the tree is sound: the plan tells who is below."""
        return self.name in routing.filters if self.mode is None else self.mode is FilterMode.ACTIVE

    def _thinned(self, frame: Frame, targets: list[str], table: WantedBelow | None) -> list[Frame]:
        """The frame for each target: fewer messages, the same claim."""
        if table is None:
            return [frame] * len(targets)
        messages = decode_payloads([payload for _, _, payload in frame.messages])
        frames = []
        for target in targets:
            if target in table:
                kept = tuple(
                    carried
                    for carried, message in zip(frame.messages, messages, strict=True)
                    if _passes(table, target, message)
                )
                self.counts["filtered"] += len(frame.messages) - len(kept)
                frames.append(replace(frame, messages=kept))
            else:
                frames.append(frame)  # nobody known below: whoever it is may want anything
        return frames

    def _drain(self) -> None:
        """The last few plans are kept: frames of an older one may still be on their way."""
        current = self.epoch["current"]
        kept = [n for n in sorted(self.plans)[-MOST_PLANS:] if n >= current - 1]
        self.plans = {n: self.plans[n] for n in kept}
        self._attached = {key: edges for key, edges in self._attached.items() if key[0] >= current - 1}
        self._tables = {key: table for key, table in self._tables.items() if key[0] in self.plans}
        self._begun = {n: work for n, work in self._begun.items() if n in self.plans}
        self._unfinished = [n for n in self._unfinished if n in self.plans]

    def _wanted(self) -> dict[Address, None]:
        """A broker is reached by its name; where its children are is for the carrier to know."""
        return {}

    def _on_tick(self, event: Tick, now: float) -> None:
        super()._on_tick(event, now)
        self._go_on()
        for edges in self._attached.values():
            for edge in [edge for edge, until in edges.items() if until <= now]:
                del edges[edge]

    def _next_wake(self, now: float) -> float:
        return now if self._unfinished else self._beat_at


def _mode(record: dict[str, Any] | None) -> FilterMode:
    """A state that is not understood passes everything on."""
    try:
        return FilterMode(record["state"] if record else None)
    except ValueError:
        return FilterMode.PASSIVE


def _passes(table: WantedBelow, target: str, message: Mapping[str, Any] | Malformed) -> bool:
    return not isinstance(message, Malformed) and table.wants(target, message)
