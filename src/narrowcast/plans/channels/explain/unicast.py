"""Hybrid plans explained: by which group or by unicast, and what the other way would cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from narrowcast.evaluate.explanation import Choice, Explanation, Unwanted, place_of, ranked, several, worst
from narrowcast.model.arrays import Bools, Ints, distinct
from narrowcast.model.plan import Tables
from narrowcast.model.quantity import quantity
from narrowcast.plans.channels.explain.groups import _numbered, _some, _wanting
from narrowcast.plans.channels.judge.delivery import Delivery, delivery
from narrowcast.plans.channels.judge.faults import hybrid_cost, weights

MEASURE = "C′, the cost of receiving, sending and unicast"

# Of a subscriber's flows, so many are looked at one by one.
FASTEST = 3


class _Mixed:
    """A hybrid plan as a session per flow, a group per session and the wishes met by unicast, and what any other such
    choice would cost. One session more than the plan has is for a flow that is to have its own.
    """

    def __init__(self, plan: Tables) -> None:
        self.plan, self.read, self.w = plan, delivery(plan), weights(plan)
        self.cost = hybrid_cost(plan, self.read)["total"]
        self.two_level = "sessions" in plan.parameters
        self.no_group = _full(plan, "groups", self.read.group_of_flow)
        self.no_session = _full(plan, "sessions", self.read.session_of_flow) if self.two_level else ""

    def total(self, session: Ints, alone: Bools, group_of: Ints) -> tuple[float, float]:
        """C′ from the definition, and the unicast part; a flow that nobody takes by multicast is not sent so."""
        read, (w1, w2, w3, beta) = self.read, self.w
        together = ~alone & (session[read.want_flow] >= 0)
        flow, user = read.want_flow[together], read.want_user[together]
        sent = distinct(flow)

        def received(cluster: Ints) -> float:
            rate = np.bincount(cluster[sent], read.rates[sent])
            return float(rate[distinct(read.pair(cluster[flow], user)) // max(read.n_users, 1)].sum())

        unicast = w3 * (w1 + beta + w2) * float(read.rates[read.want_flow[~together]].sum())
        heard = w1 * received(group_of[session]) + beta * received(session)
        return heard + w2 * float(read.rates[sent].sum()) + unicast, unicast

    def choice(
        self, what: str, session: Ints, alone: Bools, barred: str = "", group_of: Ints | None = None, own: int = -1
    ) -> Choice:
        """`own` is the group of the session beside the plan's; −1 for a group of its own."""
        read = self.read
        group_of = read.group_of_session if group_of is None else group_of
        more = own if own >= 0 else read.groups.size
        total, unicast = self.total(session, alone, np.append(group_of, more))
        cap = self.plan.parameters.get("cap")
        if cap is not None and unicast > cap * total * (1 + 1e-9):
            barred = barred or f"cap {cap:.0%} on unicast"
        return Choice(what, total, total - self.cost, barred)

    def explained(self, subject: str, headline: str, facts: dict[str, Any], unwanted: Any, choices: Any) -> Explanation:
        # Choices that come to the plan as it is are no choices.
        return Explanation("channels", subject, headline, facts, MEASURE, self.cost, worst(unwanted), ranked(choices))

    def number(self, g: int) -> int:
        return int(self.read.groups[g])

    def place(self, l: int) -> str:
        """Where a session is, as people say it."""
        group = f"group {self.number(self.read.group_of_session[l])}"
        return f"session {self.read.sessions[l]} of {group}" if self.two_level else group


def _full(plan: Tables, name: str, used: Ints) -> str:
    budget = plan.parameters.get(name)
    return f"all {budget} {name} are in use" if budget is not None and distinct(used[used >= 0]).size >= budget else ""


def explain_flow(plan: Tables, name: str) -> Explanation:
    """Whether a flow goes by a group or by unicast, who gets it unasked, and every other way for it."""
    case = _Mixed(plan)
    read = case.read
    k = place_of("flow", name, read.flow_names)
    rate, g, l = float(read.rates[k]), int(read.group_of_flow[k]), int(read.session_of_flow[k])
    wants, alone = _wanting(read, k), np.unique(read.unicast_user[read.unicast_flow == k])
    if not wants.size:
        return case.explained(f"flow {name}", f"{name} is not sent: nobody wants it", {"rate": rate}, (), ())
    hears = read.member[read.joined == g] if g >= 0 else np.zeros(0, np.int64)
    unwanted = [Unwanted(read.user_names[u], rate, f"group {case.number(g)}") for u in np.setdiff1d(hears, wants)]
    unwanted += [Unwanted(read.user_names[u], rate, "a second time") for u in np.intersect1d(hears, alone)]
    facts = {"rate": rate, "group": case.number(g) if g >= 0 else None, "wanted by": wants.size,
             "by unicast to": alone.size, "received by": hears.size + alone.size}  # fmt: skip
    way = f"in {case.place(l)}" if g >= 0 else "by unicast"
    also = f" and by unicast to {alone.size:,}" if g >= 0 and alone.size else ""
    headline = f"{name} goes {way}{also}: {several(wants.size, 'subscriber')} want it"
    return case.explained(f"flow {name}", headline, facts, unwanted, _other_ways(case, k, l))


def explain_subscriber(plan: Tables, name: str) -> Explanation:
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
        "rate received": received, "by unicast": alone, "thrown away": float(read.rates[foreign].sum()),
    }  # fmt: skip
    headline = (
        f"{name} joins {several(joined.size, 'group')} and gets {quantity(received)} a second "
        f"({quantity(alone)} by unicast), of which it wants {quantity(wanted)}"
    )
    group, session, choices = read.group_of_flow, read.session_of_flow, []
    for g in joined.tolist():
        moved = read.by_unicast | (mine & (group[read.want_flow] == g))
        choices.append(case.choice(f"without group {case.number(g)}: by unicast", session, moved))
    if joined.size > 1:
        choices.append(case.choice("everything by unicast", session, read.by_unicast | mine))
    if (mine & read.by_unicast & (group[read.want_flow] >= 0)).any():
        choices.append(case.choice("all that is in groups by groups", session, read.by_unicast & ~mine))
    fast = read.want_flow[mine][np.argsort(-read.rates[read.want_flow[mine]], kind="stable")[:FASTEST]]
    for k in fast.tolist():
        best = ranked(_other_ways(case, k, int(session[k])))[:1]
        choices += [replace(choice, what=f"flow {read.flow_names[k]} {choice.what}") for choice in best]
    return case.explained(f"subscriber {name}", headline, facts, unwanted, choices)


def explain_group(plan: Tables, number: int) -> Explanation:
    """What a group carries, what each member throws away, and what giving the group up would cost."""
    case = _Mixed(plan)
    read = case.read
    g = _numbered("group", number, read.groups)
    rate, hears = float(read.group_rates[g]), read.member[read.joined == g]
    return _carried(case, f"group {number}", np.flatnonzero(read.group_of_session == g), rate, hears)


def explain_session(plan: Tables, number: int) -> Explanation:
    """The same for a session of a group."""
    case = _Mixed(plan)
    read = case.read
    l = _numbered("session", number, read.sessions)
    session, user = read.subscribed
    return _carried(case, f"session {number}", np.array([l]), float(read.session_rates[l]), user[session == l])


def _carried(case: _Mixed, subject: str, sessions: Ints, rate: float, hears: Ints) -> Explanation:
    """Some sessions of one group, heard by the same receivers."""
    read = case.read
    flows = np.flatnonzero(np.isin(read.session_of_flow, sessions))
    here = np.isin(read.want_flow, flows) & ~read.by_unicast
    wanted = np.bincount(read.want_user[here], read.rates[read.want_flow[here]], minlength=read.n_users)
    unwanted = [Unwanted(read.user_names[u], rate - float(wanted[u])) for u in hears.tolist()]
    facts = {"flows": _some(read.flow_names, flows, read.rates), "n_flows": flows.size, "rate": rate,
             "members": hears.size, "delivered": rate * hears.size, "of it wanted": float(wanted.sum())}  # fmt: skip
    share = float(wanted.sum()) / (rate * hears.size) if rate and hears.size else 1.0
    headline = (
        f"{subject} carries {several(flows.size, 'flow')} to {several(hears.size, 'member')}; {share:.0%} of what "
        "they get they want"
    )
    gone = read.session_of_flow.copy()
    gone[flows] = -1
    choices = [case.choice("all of it by unicast", gone, read.by_unicast)]
    present = read.group_of_session[sessions]
    for h in range(read.groups.size):
        if (present != h).any():
            moved = read.group_of_session.copy()
            moved[sessions] = h
            way = f"all of it in group {case.number(h)}"
            choices.append(case.choice(way, read.session_of_flow, read.by_unicast, group_of=moved))
    return case.explained(subject, headline, facts, unwanted, choices)


def _other_ways(case: _Mixed, k: int, present: int) -> Iterator[Choice]:
    read: Delivery = case.read
    session, mine = read.session_of_flow, read.want_flow == k
    own, none = read.sessions.size, read.by_unicast & ~mine
    apart = bool(read.by_unicast[mine].any())
    at = int(read.group_of_flow[k])
    # What it would leave behind, it can have again.
    free, empty = (present >= 0 and (of == of[k]).sum() == 1 for of in (session, read.group_of_flow))
    if not (read.by_unicast[mine].all() and present < 0):
        yield case.choice("by unicast to all", _with(session, k, -1), read.by_unicast | mine)
    for l in range(own):
        if l != present or apart:
            yield case.choice(f"in {case.place(l)}", _with(session, k, l), none)
    for h in range(read.groups.size if case.two_level else 0):
        if not (free and h == at) or apart:
            way, full = f"in a session of its own in group {case.number(h)}", "" if free else case.no_session
            yield case.choice(way, _with(session, k, own), none, full, own=h)
    if not empty or apart:
        full = ("" if empty else case.no_group) or ("" if free else case.no_session)
        yield case.choice("in a group of its own", _with(session, k, own), none, full)


def _with(session: Ints, k: int, l: int) -> Ints:
    moved = session.copy()
    moved[k] = l
    return moved


HYBRID: dict[str, Callable[[Tables, Any], Explanation]] = {
    "flow": explain_flow,
    "subscriber": explain_subscriber,
    "group": explain_group,
    "session": explain_session,
    "channel": explain_session,
}
