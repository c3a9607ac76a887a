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


class Wish(NamedTuple):
    """A client, the text of its profile as profiles write it, and its gateway broker."""

    client: str
    profile: str
    gateway: int


@dataclass(frozen=True, eq=False)
class ContinuedSemantic:
    """A plan as it was last reorganised, and the clients of now: those that came or went since then joined and left
    by the rules, so that nobody is missed at any time.

    `wishes` are those of now, `messages` a sample of now, with the broker that each came from.
    """

    base: SemanticPlan
    wishes: tuple[Wish, ...]
    messages: Any
    brokers: Ints

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
        """Link traversals of the messages of now, for each of them."""
        return bandwidth(self._now, self.messages, self.brokers) / max(self.brokers.size, 1)

    def under(self, demand: Demand) -> ContinuedSemantic:
        """Clients without a gateway of the overlay are served from the log, and not counted."""
        place = _places(self.base)
        wishes = tuple(
            Wish(name, _canonical(text), place[demand.nodes[name]])
            for name, text in demand.profiles.items()
            if demand.nodes.get(name) in place
        )
        messages, brokers = _sent(self.base, demand) or (self.messages, self.brokers)
        return replace(self, wishes=wishes or self.wishes, messages=messages, brokers=brokers)

    def improved(self, budget: Budget) -> ContinuedSemantic:
        """The rules have done already what can be done between two reorganisations."""
        return self

    def anew(self) -> ContinuedSemantic:
        """Planned again with the settings of the plan; as it is, where no such plan keeps the latency bounds."""
        base, given = self.base, self.base.parameters
        rendezvous, half_life = str(given.get("rendezvous", "best")), given.get("half_life")
        try:
            made = make(self._demand(), base.method, base.max_channels, rendezvous, half_life, seed=base.seed)
        except InfeasibleError:
            return self
        return replace(self, base=replace(made, parameters={**given, **made.parameters, **_bound(base)}))

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


def _places(plan: SemanticPlan) -> dict[str, int]:
    return {name: i for i, name in enumerate(plan.broker_names)}


def _wishes_of(plan: SemanticPlan) -> tuple[Wish, ...]:
    """A wish per client, in the plan's order."""
    texts = [str(profile) for profile in plan.system.profiles]
    clients = zip(plan.client_names, plan.system.clients.tolist(), strict=True)
    return tuple(Wish(name, texts[profile], gateway) for name, (profile, gateway) in clients)


def _sent(plan: SemanticPlan, demand: Demand) -> tuple[Any, Ints] | None:
    """The messages of a demand and their brokers; None if it has none, or some come from outside the overlay."""
    if demand.messages is None or "_broker" not in demand.messages.column_names or not demand.messages.num_rows:
        return None
    place = _places(plan)
    names = demand.messages["_broker"].to_pylist()
    if not set(names) <= place.keys():
        return None
    return demand.messages.drop_columns(["_broker"]), np.array([place[name] for name in names], np.int64)


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
