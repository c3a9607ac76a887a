"""Hybrid plans explained: by which group or by unicast, and what the other way would cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from narrowcast.evaluate.channels import hybrid_cost, weights
from narrowcast.evaluate.delivery import Delivery, delivery
from narrowcast.evaluate.explain_channels import _numbered, _some, _wanting
from narrowcast.evaluate.explanation import Choice, Explanation, Unwanted, place_of, ranked, several, worst
from narrowcast.model._arrays import Bools, Ints, distinct
from narrowcast.model.plan import Plan

MEASURE = "C′, the cost of receiving, sending and unicast"

# Of a subscriber's flows, so many are looked at one by one.
FASTEST = 3


class _Mixed:
    """A hybrid plan as a group per flow and the wishes met by unicast, and what any other such pair would cost."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.read, self.w = plan, delivery(plan), weights(plan)
        self.cost = hybrid_cost(plan, self.read)["total"]
        budget = plan.parameters.get("groups")
        used = np.unique(self.read.group_of_flow[self.read.group_of_flow >= 0]).size
        self.no_group = f"all {budget} groups are in use" if budget is not None and used >= budget else ""

    def total(self, group: Ints, alone: Bools) -> tuple[float, float]:
        """C′ from the definition, and the unicast part; a flow that nobody takes by multicast is not sent so."""
        read, (w1, w2, w3) = self.read, self.w
        together = ~alone & (group[read.want_flow] >= 0)
        sent = distinct(read.want_flow[together])
        rate = np.bincount(group[sent], read.rates[sent], minlength=read.groups.size + 1)
        joins = distinct(read.pair(group[read.want_flow[together]], read.want_user[together]))
        unicast = w3 * (w1 + w2) * float(read.rates[read.want_flow[~together]].sum())
        return w1 * float(rate[joins // max(read.n_users, 1)].sum()) + w2 * float(rate.sum()) + unicast, unicast

    def choice(self, what: str, group: Ints, alone: Bools, barred: str = "") -> Choice:
        total, unicast = self.total(group, alone)
        cap = self.plan.parameters.get("cap")
        if cap is not None and unicast > cap * total * (1 + 1e-9):
            barred = barred or f"cap {cap:.0%} on unicast"
        return Choice(what, total, total - self.cost, barred)

    def explained(self, subject: str, headline: str, facts: dict[str, Any], unwanted: Any, choices: Any) -> Explanation:
        # Choices that come to the plan as it is are no choices.
        return Explanation("hybrid", subject, headline, facts, MEASURE, self.cost, worst(unwanted), ranked(choices))

    def number(self, g: int) -> int:
        return int(self.read.groups[g])


def explain_flow(plan: Plan, name: str) -> Explanation:
    """Whether a flow goes by a group or by unicast, who gets it unasked, and every other way for it."""
    case = _Mixed(plan)
    read = case.read
    k = place_of("flow", name, read.flow_names)
    rate, g = float(read.rates[k]), int(read.group_of_flow[k])
    wants, alone = _wanting(read, k), np.unique(read.unicast_user[read.unicast_flow == k])
    if not wants.size:
        return case.explained(f"flow {name}", f"{name} is not sent: nobody wants it", {"rate": rate}, (), ())
    hears = read.member[read.joined == g] if g >= 0 else np.zeros(0, np.int64)
    unwanted = [Unwanted(read.user_names[u], rate, f"group {case.number(g)}") for u in np.setdiff1d(hears, wants)]
    unwanted += [Unwanted(read.user_names[u], rate, "a second time") for u in np.intersect1d(hears, alone)]
    facts = {"rate": rate, "group": case.number(g) if g >= 0 else None, "wanted by": wants.size,
             "by unicast to": alone.size, "received by": hears.size + alone.size}  # fmt: skip
    way = f"in group {case.number(g)}" if g >= 0 else "by unicast"
    also = f" and by unicast to {alone.size:,}" if g >= 0 and alone.size else ""
    headline = f"{name} goes {way}{also}: {several(wants.size, 'subscriber')} want it"
    return case.explained(f"flow {name}", headline, facts, unwanted, _other_ways(case, k, g))


def explain_subscriber(plan: Plan, name: str) -> Explanation:
    """What a subscriber gets by groups and by unicast, and what leaving each group for unicast would cost."""
    case = _Mixed(plan)
    read = case.read
    u = place_of("subscriber", name, read.user_names)
    mine = read.want_user == u
    joined = read.joined[read.member == u]
    wanted = float(read.rates[read.want_flow[mine]].sum())
    alone = float(read.rates[read.want_flow[mine & read.by_unicast]].sum())
    received = float(read.group_rates[joined].sum()) + alone
    heard = np.flatnonzero(np.isin(read.group_of_flow, joined))
    foreign = np.setdiff1d(heard, read.want_flow[mine & ~read.by_unicast])
    unwanted = [Unwanted(name, float(read.rates[k]), f"flow {read.flow_names[k]} in group "
                         f"{case.number(read.group_of_flow[k])}") for k in foreign]  # fmt: skip
    facts = {
        "flows wanted": int(mine.sum()), "rate wanted": wanted,
        "groups joined": [case.number(g) for g in joined.tolist()],
        "rate received": received, "by unicast": alone, "thrown away": received - wanted,
    }  # fmt: skip
    headline = (
        f"{name} joins {several(joined.size, 'group')} and gets {received:.4g} a second ({alone:.4g} by unicast), of "
        f"which it wants {wanted:.4g}"
    )
    group, choices = read.group_of_flow, []
    for g in joined.tolist():
        moved = read.by_unicast | (mine & (group[read.want_flow] == g))
        choices.append(case.choice(f"without group {case.number(g)}: by unicast", group, moved))
    if joined.size > 1:
        choices.append(case.choice("everything by unicast", group, read.by_unicast | mine))
    if (mine & read.by_unicast & (group[read.want_flow] >= 0)).any():
        choices.append(case.choice("all that is in groups by groups", group, read.by_unicast & ~mine))
    fast = read.want_flow[mine][np.argsort(-read.rates[read.want_flow[mine]], kind="stable")[:FASTEST]]
    for k in fast.tolist():
        best = ranked(_other_ways(case, k, int(group[k])))[:1]
        choices += [replace(choice, what=f"flow {read.flow_names[k]} {choice.what}") for choice in best]
    return case.explained(f"subscriber {name}", headline, facts, unwanted, choices)


def explain_group(plan: Plan, number: int) -> Explanation:
    """What a group carries, what each member throws away, and what giving the group up would cost."""
    case = _Mixed(plan)
    read = case.read
    g = _numbered("group", number, read.groups)
    flows, rate, hears = (
        np.flatnonzero(read.group_of_flow == g),
        float(read.group_rates[g]),
        read.member[read.joined == g],
    )
    here = np.isin(read.want_flow, flows) & ~read.by_unicast
    wanted = np.bincount(read.want_user[here], read.rates[read.want_flow[here]], minlength=read.n_users)
    unwanted = [Unwanted(read.user_names[u], rate - float(wanted[u])) for u in hears.tolist()]
    facts = {"flows": _some(read.flow_names, flows, read.rates), "n_flows": flows.size, "rate": rate,
             "members": hears.size, "delivered": rate * hears.size, "of it wanted": float(wanted.sum())}  # fmt: skip
    share = float(wanted.sum()) / (rate * hears.size) if rate and hears.size else 1.0
    headline = (
        f"group {number} carries {several(flows.size, 'flow')} to {several(hears.size, 'member')}; {share:.0%} of what "
        "they get they want"
    )
    gone = read.group_of_flow.copy()
    gone[flows] = -1
    choices = [case.choice("all of it by unicast", gone, read.by_unicast)]
    for h in range(read.groups.size):
        if h != g:
            merged = read.group_of_flow.copy()
            merged[flows] = h
            choices.append(case.choice(f"all of it in group {case.number(h)}", merged, read.by_unicast))
    return case.explained(f"group {number}", headline, facts, unwanted, choices)


def _other_ways(case: _Mixed, k: int, present: int) -> Iterator[Choice]:
    read: Delivery = case.read
    group, mine = read.group_of_flow, read.want_flow == k
    none = read.by_unicast & ~mine
    if not (read.by_unicast[mine].all() and present < 0):
        yield case.choice("by unicast to all", _with(group, k, -1), read.by_unicast | mine)
    for h in range(read.groups.size):
        if h != present or read.by_unicast[mine].any():
            yield case.choice(f"in group {case.number(h)}", _with(group, k, h), none)
    if present < 0 or (group == present).sum() > 1 or read.by_unicast[mine].any():
        full = case.no_group if present < 0 or (group == present).sum() > 1 else ""
        yield case.choice("in a group of its own", _with(group, k, read.groups.size), none, full)


def _with(group: Ints, k: int, h: int) -> Ints:
    moved = group.copy()
    moved[k] = h
    return moved


HYBRID: dict[str, Callable[[Plan, Any], Explanation]] = {
    "flow": explain_flow,
    "subscriber": explain_subscriber,
    "group": explain_group,
    "session": explain_group,
    "channel": explain_group,
}
