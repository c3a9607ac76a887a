"""Semantic channels go on by the subscription rules; now and then everything is reorganised (SemCast §3.2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from narrowcast.errors import InfeasibleError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.demand import Demand
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.semantic.demand import OverlayDemand
from narrowcast.plans.semantic.live.plan import LiveChannels
from narrowcast.plans.semantic.methods.bounds import within_reach
from narrowcast.plans.semantic.plan import make
from narrowcast.plans.semantic.result import SemanticPlan, bandwidth
from narrowcast.plans.semantic.window import read_profile

#: Messages that a plan is made for again: those of now and the newest before them.
WINDOW = 4000
#: Columns that name the broker of a message's publisher, the first that is there.
SOURCES = ("_broker", "source")


class Wish(NamedTuple):
    """A client, the text of its profile as profiles write it, and its gateway broker."""

    client: str
    profile: str
    gateway: int


@dataclass(frozen=True, eq=False)
class ContinuedSemantic:
    """A plan as it was last reorganised, and the clients of now: those that came or went since then joined and left
    by the rules, so that nobody is missed at any time.

    `wishes` are those of now, `messages` a sample of now, with the broker that each came from; `rate` of them go by
    in a second. `past` are those before, the newest last, which fade: a plan is made for both.
    """

    base: SemanticPlan
    wishes: tuple[Wish, ...]
    messages: Any
    brokers: Ints
    rate: float = 1.0
    time: float = -np.inf
    past: tuple[Any, Ints] | None = None

    @classmethod
    def of(cls, plan: SemanticPlan, demand: Demand) -> ContinuedSemantic:
        """A plan, under the demand of now; UnsupportedError where neither holds messages with their source."""
        sent = _sent(plan, demand) or plan.demand.sent(plan.system)
        return cls(plan, _wishes_of(plan), *sent).under(demand)

    @property
    def size(self) -> int:
        return len(self._now.channels)

    @cached_property
    def _now(self) -> SemanticPlan:
        """The plan with everybody who came and without everybody who left."""
        then = _wishes_of(self.base)
        come, gone = set(self.wishes) - set(then), set(then) - set(self.wishes)
        if not come and not gone:
            return self.base
        live = LiveChannels(self.base)
        for wish in sorted(come):
            live.subscribe(wish.profile, wish.gateway, wish.client)
        for number, wish in enumerate(then):
            if wish in gone:
                live.unsubscribe(number)
        return live.plan

    @cached_property
    def cost(self) -> float:
        """Link traversals in a second of now."""
        return self.rate * bandwidth(self._now, self.messages, self.brokers) / max(self.brokers.size, 1)

    def under(self, demand: Demand) -> ContinuedSemantic:
        """Clients without a gateway of the overlay are served from the log, and not counted."""
        place = _places(self.base)
        wishes = tuple(
            Wish(name, _canonical(text), place[demand.nodes[name]])
            for name, text in demand.profiles.items()
            if demand.nodes.get(name) in place
        )
        rate = float(demand.interest.rates.sum()) or self.rate
        now = replace(self, wishes=wishes or self.wishes, rate=rate)
        sent = _sent(self.base, demand)
        if sent is None or demand.time <= self.time:
            return now
        return replace(now, messages=sent[0], brokers=sent[1], time=demand.time, past=self._window()[:2])

    def improved(self, budget: Budget) -> ContinuedSemantic:
        """Planned again, if that changes no more than the budget allows: the rules have done the rest already."""
        if budget.moves == 0 or budget.joins == 0:
            return self
        change = self.change_to(self._anew)
        within = all(
            most is None or n <= most for n, most in ((change.moves, budget.moves), (change.joins, budget.joins))
        )
        return self._anew if within and self._anew.cost < self.cost else self

    def anew(self) -> ContinuedSemantic:
        """Planned again with the settings of the plan; as it is, where no such plan keeps the latency bounds."""
        return self._anew

    @cached_property
    def _anew(self) -> ContinuedSemantic:
        base, given = self.base, self.base.parameters
        rendezvous, half_life = str(given.get("rendezvous", "best")), given.get("half_life")
        messages, brokers, fading = self._window()
        demand = replace(self._demand(), messages=messages, sources=brokers)
        try:
            made = make(demand, base.method, base.max_channels, rendezvous, half_life or fading, seed=base.seed)
        except InfeasibleError:
            return self
        told = {**given, **made.parameters, "half_life": half_life, **_bound(base)}
        return replace(self, base=replace(made, parameters=told))

    def _window(self) -> tuple[Any, Ints, float | None]:
        """Past and present messages, the newest last, and how many before the last count half; None: all count."""
        import pyarrow as pa

        if self.past is None:
            return self.messages, self.brokers, None
        try:
            messages = pa.concat_tables((self.past[0], self.messages), promote_options="permissive")
        except pa.ArrowInvalid:  # an attribute has another type now
            return self.messages, self.brokers, None
        brokers = np.concatenate((self.past[1], self.brokers))
        low = max(0, messages.num_rows - WINDOW)
        return messages.slice(low), brokers[low:], float(max(1, self.brokers.size))

    def reorganised(self, least: float) -> ContinuedSemantic:
        return self.anew()

    def _demand(self) -> OverlayDemand:
        texts = list(dict.fromkeys(wish.profile for wish in self.wishes))
        number = {text: i for i, text in enumerate(texts)}
        clients = np.array([(number[wish.profile], wish.gateway) for wish in self.wishes], np.int64).reshape(-1, 2)
        return OverlayDemand(
            self.base.system.topology,
            [read_profile(text) for text in texts],
            clients,
            self.messages,
            self.brokers,
            names=tuple(wish.client for wish in self.wishes),
            bounds=self._bounds(clients),
            key=self.base.key,
        )

    def _bounds(self, clients: Ints) -> Floats | None:
        """What each client may wait: as before, a newcomer as all may; no less than the quickest way takes."""
        bounds = self.base.demand.bounds
        if bounds is None:
            return None
        of_wish = dict(zip(_wishes_of(self.base), np.asarray(bounds, np.float64).tolist(), strict=True))
        others = _bound(self.base).get("latency_bound") or np.inf
        asked = np.array([of_wish.get(wish, others) for wish in self.wishes], np.float64)
        return within_reach(self.base.system.topology, clients, self.brokers, asked)

    def change_to(self, other: ContinuedSemantic) -> Change:
        """Channels that are new or have another tree, and the gateways that join one they were not in."""
        before, after = _trees(self._now), _trees(other._now)
        moved = [key for key, channel in after.items() if before.get(key) != channel]
        joins = sum(len(set(after[key][1]) - set(before.get(key, ((), ()))[1])) for key in moved)
        return Change(len(moved), joins, 0.0)

    def plan(self) -> SemanticPlan:
        return self._now.rated_by(self.messages, self.brokers)


continued = ContinuedSemantic.of


def _places(plan: SemanticPlan) -> dict[str | None, int]:
    return {name: i for i, name in enumerate(plan.broker_names)}


def _wishes_of(plan: SemanticPlan) -> tuple[Wish, ...]:
    """A wish per client, in the plan's order."""
    texts = [str(profile) for profile in plan.system.profiles]
    clients = zip(plan.client_names, plan.system.clients.tolist(), strict=True)
    return tuple(Wish(name, texts[profile], gateway) for name, (profile, gateway) in clients)


def _sent(plan: SemanticPlan, demand: Demand) -> tuple[Any, Ints] | None:
    """The messages of a demand and their brokers; None if there are none.

    Who does not say where a message comes from means the broker that all came from when the plan was made. If
    there was more than one, or where it comes from is no broker of the overlay, the message is left out.
    """
    if demand.messages is None or not demand.messages.num_rows:
        return None
    column = next((name for name in SOURCES if name in demand.messages.column_names), None)
    names = [None] * demand.messages.num_rows if column is None else demand.messages[column].to_pylist()
    place = _places(plan)
    if plan.sources.size == 1:
        place[None] = int(plan.sources[0])
    kept = demand.messages.drop_columns([column]) if column == "_broker" else demand.messages
    known = np.array([name in place for name in names], np.bool_)
    return (kept.filter(known), np.array([place[n] for n in names if n in place], np.int64)) if known.any() else None


@lru_cache(maxsize=65_536)
def _canonical(text: str) -> str:
    """A profile's text as profiles write it."""
    return str(read_profile(text))


def _bound(plan: SemanticPlan) -> Mapping[str, Any]:
    """The parameter that says what all clients may wait, if there is one."""
    return {"latency_bound": plan.parameters["latency_bound"]} if "latency_bound" in plan.parameters else {}


def _trees(plan: SemanticPlan) -> dict[tuple[Any, ...], tuple[Any, tuple[int, ...]]]:
    """Channels by content, or where a channel is told by its members, by these: its tree and its members."""
    found = {}
    for channel in plan.channels:
        key = (str(channel.expression), int(channel.rendezvous))
        found[key] = (sorted(map(tuple, channel.edges.tolist())), tuple(channel.gateways))
    return found
