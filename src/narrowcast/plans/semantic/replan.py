"""Semantic channels go on by the subscription rules; now and then everything is reorganised (SemCast §3.2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.model import Topology
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Plan
from narrowcast.plans import semantic
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.semantic.folder import as_plan, broker_names
from narrowcast.plans.semantic.result import SemanticPlan

KEPT = ("variant", "max_channels", "rendezvous", "half_life")


@dataclass(frozen=True, eq=False)
class ContinuedSemantic:
    """A plan as it was last reorganised, and the clients of now: those that came or went since then joined and left
    by the rules, so that nobody is missed at any time.

    `wishes` are (profile, gateway) by client. A plan's folder does not hold the rule itself, so it is made again from
    what the folder does hold: overlay, clients and a sample of messages.
    """

    base: SemanticPlan
    then: Mapping[str, tuple[str, str]]
    wishes: Mapping[str, tuple[str, str]]
    messages: Any  # with the broker of each in `_broker`
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, plan: Plan, demand: Demand) -> ContinuedSemantic:
        """A plan from its folder, under the demand of now."""
        nodes, links = plan.tables["nodes"]["node"].to_pylist(), plan.tables["topology"].to_pydict()
        place = {name: i for i, name in enumerate(nodes)}
        ends = [(place[u], place[v]) for u, v in zip(links["u"], links["v"], strict=True)]
        overlay = Topology(ends, links["cost"], links["delay"], n_brokers=len(nodes), names=nodes)
        texts = dict(zip(*(plan.tables["profiles"][c].to_pylist() for c in ("profile", "text")), strict=True))
        clients = zip(*(plan.tables["clients"][c].to_pylist() for c in ("client", "profile", "gateway")), strict=True)
        wishes = {client: (texts[profile], gateway) for client, profile, gateway in clients}
        messages = plan.tables["sample"].drop_columns(["_channels"])
        if messages.num_rows == 0 or messages["_broker"].null_count:
            raise UnsupportedError("the plan does not know where its messages come from", works=("a source column",))
        base = _planned(overlay, wishes, messages, plan.parameters, plan.seed)
        return cls(base, wishes, wishes, messages, {**plan.parameters, "seed": plan.seed}).under(demand)

    @property
    def _overlay(self) -> Topology:
        return self.base.system.topology

    @property
    def size(self) -> int:
        return len(self._now.channels)

    @cached_property
    def _now(self) -> SemanticPlan:
        """The plan with everybody who came and without everybody who left."""
        if self.wishes == self.then:
            return self.base
        place = {name: i for i, name in enumerate(broker_names(self.base))}
        live = semantic.LivePlan(self.base)
        number = {name: i for i, name in enumerate(_ordered(self.then, self.base))}
        for name, wish in self.wishes.items():
            if self.then.get(name) != wish:
                live.subscribe(wish[0], place[wish[1]])
        for name, wish in self.then.items():
            if self.wishes.get(name) != wish:
                live.unsubscribe(number[name])
        return live.plan

    @cached_property
    def _sources(self) -> Any:
        place = {name: i for i, name in enumerate(broker_names(self.base))}
        return np.array([place[name] for name in self.messages["_broker"].to_pylist()], np.int64)

    @property
    def _content(self) -> Any:
        return self.messages.drop_columns(["_broker"])

    @cached_property
    def cost(self) -> float:
        """Link traversals of the messages of now, for each of them."""
        n: int = max(self.messages.num_rows, 1)
        return float(semantic.bandwidth(self._now, self._content, self._sources)) / n

    def under(self, demand: Demand) -> ContinuedSemantic:
        """Clients without a gateway of the overlay are served from the log, and not counted."""
        known = set(broker_names(self.base))
        wishes = {
            name: (text, demand.nodes[name])
            for name, text in demand.profiles.items()
            if demand.nodes.get(name) in known
        }
        usable = demand.messages is not None and "_broker" in demand.messages.column_names
        messages = demand.messages if usable and demand.messages.num_rows else self.messages
        return replace(self, wishes=wishes or self.wishes, messages=messages)

    def improved(self, budget: Budget) -> ContinuedSemantic:
        """The rules have done already what can be done between two reorganisations."""
        return self

    def anew(self) -> ContinuedSemantic:
        made = _planned(self._overlay, self.wishes, self.messages, self.parameters, int(self.parameters["seed"]))
        return replace(self, base=made, then=self.wishes)

    def reorganised(self, least: float) -> ContinuedSemantic:
        return self.anew()

    def change_to(self, other: ContinuedSemantic) -> Change:
        """Channels that are new or have another tree, and the gateways that join one they were not in."""
        before, after = _trees(self._now), _trees(other._now)
        moved = [key for key, channel in after.items() if before.get(key) != channel]
        joins = sum(len(set(after[key][1]) - set(before.get(key, ((), ()))[1])) for key in moved)
        return Change(len(moved), joins, 0.0)

    def plan(self) -> Plan:
        names = broker_names(self.base)
        place = {name: i for i, name in enumerate(names)}
        now = self._now
        number = {str(profile): i for i, profile in enumerate(now.system.profiles)}
        order = sorted(
            self.wishes, key=lambda name: (_number(self.wishes[name][0], number), place[self.wishes[name][1]])
        )
        given = {name: self.parameters[name] for name in ("key", "attributes") if name in self.parameters}
        return as_plan(now, self._content, self._sources, client_names=order, parameters=given)


def _planned(
    overlay: Topology, wishes: Mapping[str, tuple[str, str]], messages: Any, parameters: Mapping[str, Any], seed: int
) -> SemanticPlan:
    place = {name: i for i, name in enumerate(overlay.names or ())}
    texts = list(dict.fromkeys(text for text, _ in wishes.values()))
    number = {text: i for i, text in enumerate(texts)}
    clients = [(number[text], place[gateway]) for text, gateway in wishes.values()]
    sources = [place[name] for name in messages["_broker"].to_pylist()]
    kept = {name: parameters[name] for name in KEPT if parameters.get(name) is not None}
    return semantic.plan(overlay, texts, clients, messages.drop_columns(["_broker"]), sources, seed=seed, **kept)


def _ordered(wishes: Mapping[str, tuple[str, str]], base: SemanticPlan) -> list[str]:
    """The names of the clients in the order in which the plan has them."""
    place = {name: i for i, name in enumerate(broker_names(base))}
    number = {str(profile): i for i, profile in enumerate(base.system.profiles)}
    free: dict[tuple[int, int], list[str]] = {}
    for name, (text, gateway) in wishes.items():
        free.setdefault((_number(text, number), place[gateway]), []).append(name)
    return [free[int(profile), int(gateway)].pop(0) for profile, gateway in base.system.clients.tolist()]


def _number(text: str, number: Mapping[str, int]) -> int:
    """The number of a profile, by its text as profiles write it."""
    from narrowcast.profiles import Profile
    from narrowcast.profiles.xpath.xpath import XPath

    return (
        number[text] if text in number else number[str(XPath.parse(text) if text[:1] == "/" else Profile.parse(text))]
    )


def _trees(plan: SemanticPlan) -> dict[tuple[Any, ...], tuple[Any, tuple[int, ...]]]:
    """Channels by content, or where a channel is told by its members, by these: its tree and its members."""
    found = {}
    for channel in plan.channels:
        key = (str(channel.expression), int(channel.rendezvous))
        found[key] = (sorted(map(tuple, channel.edges.tolist())), tuple(channel.gateways))
    return found
