"""A broker of the overlay: looks up the channel and passes frames on; as a filter, thins them out per child.

It keeps nothing that a restart would miss: plans come from the registry, attachments are repeated by
the edges. What is lost while it is away is repaired from the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Send, Watch
from narrowcast.deliver.parts.events import Arrived, Noted, Tick
from narrowcast.deliver.parts.node import MOST_PLANS, Node
from narrowcast.deliver.parts.subscription_table import SubscriptionTable
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Address, Link, Overlay
from narrowcast.deliver.wire import Attach, Frame, Malformed, decode_payloads
from narrowcast.profiles.parsed import parsed


class FilterState(Enum):
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
        self.state: FilterState | None = None  # None: as the plan says
        self._attached: dict[tuple[int, int], dict[str, float]] = {}  # edges by (epoch, channel), and until when
        self._tables: dict[tuple[int, int], SubscriptionTable[str] | None] = {}
        self._handlers[Arrived] = self._on_arrived

    def _start(self, now: float) -> None:
        super()._start(now)
        self._do(Watch(records.named(records.FILTER, self.name)))

    def _noted(self, event: Noted, now: float) -> None:
        if event.key == records.named(records.FILTER, self.name):
            self.state = None if event.data is None else _state(event.data)

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
        edges = self._attached.get((frame.epoch, frame.channel), {})
        targets = [*address.children(self.name), *(edge for edge, until in edges.items() if until > now)]
        self.counts["frames"] += len(targets)
        table = self._table(frame.epoch, frame.channel) if frame.messages and self._filters(routing) else None
        for target, thin in zip(targets, self._thinned(frame, targets, table), strict=True):
            self._do(Send(Link(target), thin))

    def _filters(self, routing: Routing) -> bool:
        """As the registry says, or else the plan. Anywhere on the tree is sound: the plan tells who is below."""
        return self.name in routing.filters if self.state is None else self.state is FilterState.ACTIVE

    def _thinned(self, frame: Frame, targets: list[str], table: SubscriptionTable[str] | None) -> list[Frame]:
        """The frame for each target: fewer messages, the same claim."""
        if table is None:
            return [frame] * len(targets)
        known = set(table.children())
        messages = decode_payloads([payload for _, _, payload in frame.messages])
        frames = []
        for target in targets:
            if target in known:
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

    def _table(self, epoch: int, channel: int) -> SubscriptionTable[str] | None:
        """Who below wants what of a channel, by child; None if the plan does not say."""
        if (epoch, channel) not in self._tables:
            routing = self.plans[epoch]
            self._tables[epoch, channel] = filter_table(routing, channel, self.name)
        return self._tables[epoch, channel]

    def _drain(self) -> None:
        """The last few plans are kept: frames of an older one may still be on their way."""
        current = self.epoch["current"]
        kept = [n for n in sorted(self.plans)[-MOST_PLANS:] if n >= current - 1]
        self.plans = {n: self.plans[n] for n in kept}
        self._attached = {key: edges for key, edges in self._attached.items() if key[0] >= current - 1}
        self._tables = {key: table for key, table in self._tables.items() if key[0] in self.plans}

    def _wanted(self) -> dict[Address, None]:
        """A broker is reached by its name; where its children are is for the carrier to know."""
        return {}

    def _on_tick(self, event: Tick, now: float) -> None:
        super()._on_tick(event, now)
        for edges in self._attached.values():
            for edge in [edge for edge, until in edges.items() if until <= now]:
                del edges[edge]

    def _next_wake(self, now: float) -> float:
        return self._beat_at


def _state(data: bytes) -> FilterState:
    """A state that is not understood passes everything on."""
    try:
        return FilterState(records.unpack(data)["state"])
    except (ValueError, KeyError, TypeError):
        return FilterState.PASSIVE


def _passes(table: SubscriptionTable[str], target: str, message: Mapping[str, Any] | Malformed) -> bool:
    return not isinstance(message, Malformed) and table.wants(target, message)


def filter_table(routing: Routing, channel: int, broker: str) -> SubscriptionTable[str] | None:
    """The subscriptions below a broker that take a channel, by the broker's child or edge they are reached through.

    None where the plan leaves out a profile, an edge or a gateway: then nothing may be filtered.
    """
    address = routing.addresses[channel]
    assert isinstance(address, Overlay)
    below = {child: _subtree(address, child) for child in address.children(broker)}
    table: SubscriptionTable[str] = SubscriptionTable()
    for name, channels in routing.taken.items():
        if channel not in channels:
            continue
        profile, edge = routing.profiles.get(name), routing.edges.get(name)
        gateway = routing.gateways.get(edge) if edge is not None else None
        if profile is None or edge is None or gateway is None:
            return None
        if gateway == broker:
            table.add(name, edge, parsed(profile))
        for child, brokers in below.items():
            if gateway in brokers:
                table.add(name, child, parsed(profile))
    return table


def _subtree(address: Overlay, broker: str) -> set[str]:
    found, waiting = {broker}, [broker]
    while waiting:
        for child in address.children(waiting.pop()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found
