"""Channel plans explained: a flow, a session, a group, a subscriber; each choice priced from the definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.columns import constant
from narrowcast.evaluate.explanation import Choice, Explanation, Unwanted, place_of, ranked, several, worst
from narrowcast.model.arrays import Ints
from narrowcast.model.plan import Tables
from narrowcast.model.quantity import quantity
from narrowcast.plans.channels.explain.placements import Block, members, taken_out
from narrowcast.plans.channels.explain.room import Room
from narrowcast.plans.channels.judge.delivery import Delivery, delivery
from narrowcast.plans.channels.judge.faults import two_level_cost

MEASURE = "excess cost at subscribers"


class _Case:
    """A plan with all that its explanations share."""

    def __init__(self, plan: Tables) -> None:
        self.plan, self.read = plan, delivery(plan)
        self.alpha, self.beta = constant(plan, "alpha", 1.0), constant(plan, "beta", 1.0)
        self.cost = two_level_cost(plan, self.read)

    def excess(self, c1: float, c2: float) -> float:
        return self.alpha * c1 + self.beta * c2 - (self.alpha + self.beta) * self.cost["useful"]

    def choice(self, what: str, c1: float, c2: float, barred: str = "") -> Choice:
        cost = float(self.excess(c1, c2))
        return Choice(what, cost, cost - self.cost["excess"], barred)

    def explained(self, subject: str, headline: str, facts: dict[str, Any], unwanted: Any, choices: Any) -> Explanation:
        found = ranked(choices)
        return Explanation("channels", subject, headline, facts, MEASURE, self.cost["excess"], worst(unwanted), found)

    def group(self, g: int) -> int:
        return int(self.read.groups[g])

    def session(self, l: int) -> int:
        return int(self.read.sessions[l])


def explain_flow(plan: Tables, name: str) -> Explanation:
    """Where a flow goes, who must throw it away, and every other session it could be in."""
    case = _Case(plan)
    read = case.read
    k = place_of("flow", name, read.flow_names)
    l, g, rate = int(read.session_of_flow[k]), int(read.group_of_flow[k]), float(read.rates[k])
    if l < 0:
        return case.explained(f"flow {name}", f"{name} is not sent: nobody wants it", {"rate": rate}, (), ())
    wants, hears = _wanting(read, k), read.member[read.joined == g]
    takes = read.subscribed[1][read.subscribed[0] == l]
    facts = {
        "rate": rate, "session": case.session(l), "group": case.group(g), "wanted by": wants.size,
        "received by": hears.size, "beside it in its session": int((read.session_of_flow == l).sum()) - 1,
    }  # fmt: skip
    unwanted = [
        Unwanted(read.user_names[u], rate, "after its session filter" if u in takes else "before its session filter")
        for u in np.setdiff1d(hears, wants)
    ]
    headline = (
        f"{name} goes in session {case.session(l)} of group {case.group(g)}: {several(wants.size, 'subscriber')} "
        f"of the {hears.size:,} in the group want it"
    )
    block = taken_out(read, np.array([k]))
    return case.explained(f"flow {name}", headline, facts, unwanted, _other_sessions(case, block, l))


def explain_session(plan: Tables, number: int) -> Explanation:
    """What a session holds, who takes it, and every other group or session it could go to."""
    case = _Case(plan)
    read = case.read
    l = _numbered("session", number, read.sessions)
    g, flows = int(read.group_of_session[l]), np.flatnonzero(read.session_of_flow == l)
    takes = read.subscribed[1][read.subscribed[0] == l]
    rate = float(read.session_rates[l])
    own = {u: float(read.rates[flows][_wants(read, flows, u)].sum()) for u in takes.tolist()}
    outside = np.setdiff1d(read.member[read.joined == g], takes)
    unwanted = [Unwanted(read.user_names[u], rate - wanted, "after its session filter") for u, wanted in own.items()]
    unwanted += [Unwanted(read.user_names[u], rate, "before its session filter") for u in outside]
    facts = {
        "flows": _some(read.flow_names, flows, read.rates), "n_flows": flows.size, "rate": rate, "group": case.group(g),
        "subscribers": takes.size, "members of its group": takes.size + outside.size,
    }  # fmt: skip
    headline = (
        f"session {number} carries {several(flows.size, 'flow')} to {several(takes.size, 'subscriber')} in group "
        f"{case.group(g)}, where {outside.size:,} more members do not take it"
    )
    block = taken_out(read, flows)
    room = Room(case.plan, read, block)
    choices = [
        case.choice(
            f"the whole session in group {case.group(h)}",
            block.groups.rest + block.groups.added[h],
            block.sessions.rest + block.alone,
            room.barred(h),
        )
        for h in range(read.groups.size)
        if h != g
    ]
    if (read.group_of_session == g).sum() > 1:
        c1, c2 = block.groups.rest + block.alone, block.sessions.rest + block.alone
        choices.append(case.choice("the whole session in a group of its own", c1, c2, room.barred(-1) or room.no_group))
    choices += _other_sessions(case, block, l, new=False)
    return case.explained(f"session {number}", headline, facts, unwanted, choices)


def explain_group(plan: Tables, number: int) -> Explanation:
    """What a group carries, what each member throws away, and what merging it or sending a session off would cost."""
    case = _Case(plan)
    read = case.read
    g = _numbered("group", number, read.groups)
    flows, rate = np.flatnonzero(read.group_of_flow == g), float(read.group_rates[g])
    hears = read.member[read.joined == g]
    wanted = np.bincount(read.want_user, np.where(np.isin(read.want_flow, flows), read.rates[read.want_flow], 0.0),
                         minlength=read.n_users)  # fmt: skip
    unwanted = [Unwanted(read.user_names[u], rate - float(wanted[u]), f"{wanted[u] / rate:.0%} of it wanted"
                         if rate else "") for u in hears.tolist()]  # fmt: skip
    sessions = np.flatnonzero(read.group_of_session == g)
    useful = float(wanted[hears].sum())
    facts = {
        "sessions": [case.session(l) for l in sessions.tolist()[:20]], "n_sessions": sessions.size,
        "n_flows": flows.size, "flows": _some(read.flow_names, flows, read.rates), "rate": rate, "members": hears.size,
        "delivered": rate * hears.size, "of it wanted": useful,
    }  # fmt: skip
    share = useful / (rate * hears.size) if rate and hears.size else 1.0
    headline = (
        f"group {number} carries {several(flows.size, 'flow')} in {several(sessions.size, 'session')} to "
        f"{several(hears.size, 'member')}; {share:.0%} of what they get they want"
    )
    return case.explained(f"group {number}", headline, facts, unwanted, _regrouped(case, g, flows, sessions))


def explain_subscriber(plan: Tables, name: str) -> Explanation:
    """What a subscriber joins, wants and throws away, and what it would cost to spare it each of its groups."""
    case = _Case(plan)
    read = case.read
    u = place_of("subscriber", name, read.user_names)
    mine = read.want_flow[read.want_user == u]
    joined, takes = read.joined[read.member == u], read.subscribed[0][read.subscribed[1] == u]
    wanted = float(read.rates[mine].sum())
    received, filtered = float(read.group_rates[joined].sum()), float(read.session_rates[takes].sum())
    foreign = np.setdiff1d(np.flatnonzero(np.isin(read.group_of_flow, joined)), mine)
    unwanted = [
        Unwanted(name, float(read.rates[k]), f"flow {read.flow_names[k]} in group {case.group(read.group_of_flow[k])}")
        for k in foreign
    ]
    facts = {
        "flows wanted": mine.size, "rate wanted": wanted, "groups joined": [case.group(g) for g in joined.tolist()],
        "rate received": received, "rate after its session filter": filtered, "sessions taken": takes.size,
        "thrown away": float(read.rates[foreign].sum()), "unicast would send": wanted,
    }  # fmt: skip
    share = wanted / received if received else 1.0
    headline = (
        f"{name} joins {several(joined.size, 'group')} and gets {quantity(received)} a second, of which it wants "
        f"{quantity(wanted)} ({share:.0%})"
    )
    choices = []
    for g in joined.tolist():
        block = taken_out(read, mine[read.group_of_flow[mine] == g])
        others = ranked(choice for choice in _other_sessions(case, block, -1, leave=g))
        best = next((choice for choice in others if not choice.barred), None)
        if best is not None:
            what = f"without group {case.group(g)}: its {several(block.flows.size, 'flow')} there {best.what}"
            choices.append(Choice(what, best.cost, best.change))
    return case.explained(f"subscriber {name}", headline, facts, unwanted, choices)


def _other_sessions(case: _Case, block: Block, present: int, *, new: bool = True, leave: int = -1) -> Iterator[Choice]:
    """The block in every other session, in a new session of every group, and in a new group."""
    read = case.read
    room = Room(case.plan, read, block)
    # A session that only the block is in is there no more once it is taken out.
    stays = read.session_of_flow >= 0
    stays[block.flows] = False
    others = np.unique(read.session_of_flow[stays])
    for l in others.tolist():
        h = int(read.group_of_session[l])
        if l != present and h != leave:
            yield case.choice(
                f"in session {case.session(l)} of group {case.group(h)}",
                block.groups.rest + block.groups.added[h],
                block.sessions.rest + block.sessions.added[l],
                room.barred(h),
            )
    if not new:
        return
    alone = present >= 0 and not np.isin(present, others)
    home = int(read.group_of_session[present]) if present >= 0 else -1
    for h in range(read.groups.size):
        if h != leave and not (alone and h == home):
            yield case.choice(
                f"in a session of its own in group {case.group(h)}",
                block.groups.rest + block.groups.added[h],
                block.sessions.rest + block.alone,
                room.barred(h) or room.no_session,
            )
    if not (alone and not np.isin(home, read.group_of_flow[stays])):
        barred = room.barred(-1) or room.no_session or room.no_group
        yield case.choice(
            "in a group of its own", block.groups.rest + block.alone, block.sessions.rest + block.alone, barred
        )


def _regrouped(case: _Case, g: int, flows: Ints, sessions: Ints) -> Iterator[Choice]:
    read = case.read
    c2 = case.cost["c2"] / case.beta if case.beta else _sessions_cost(read)
    whole = taken_out(read, flows)
    room = Room(case.plan, read, whole)
    for h in range(read.groups.size):
        if h != g:
            c1 = whole.groups.rest + whole.groups.added[h]
            yield case.choice(f"all of it in group {case.group(h)}", c1, c2, room.barred(h))
    for l in sessions.tolist() if sessions.size > 1 else ():
        block = taken_out(read, np.flatnonzero(read.session_of_flow == l))
        room = Room(case.plan, read, block)
        for h in range(read.groups.size):
            if h != g:
                c1 = block.groups.rest + block.groups.added[h]
                yield case.choice(f"session {case.session(l)} in group {case.group(h)}", c1, c2, room.barred(h))


def _sessions_cost(read: Delivery) -> float:
    cluster, _ = members(read, read.session_of_flow, read.session_of_flow >= 0)
    return float(read.session_rates[cluster].sum())


def _wanting(read: Delivery, k: int) -> Ints:
    return np.unique(read.want_user[read.want_flow == k])


def _wants(read: Delivery, flows: Ints, user: int) -> Any:
    return np.isin(flows, read.want_flow[read.want_user == user])


def _numbered(what: str, number: int, numbers: Ints) -> int:
    at = int(np.searchsorted(numbers, number))
    if at == numbers.size or numbers[at] != number:
        raise InputError(f"the plan has no {what} {number}", name=what, got=number, allowed=numbers.tolist())
    return at


def _some(names: list[str], flows: Ints, rates: Any, most: int = 10) -> list[str]:
    """The fastest of some flows by name."""
    order = flows[np.argsort(-rates[flows], kind="stable")]
    return [names[k] for k in order[:most].tolist()]


CHANNELS: dict[str, Callable[[Tables, Any], Explanation]] = {
    "flow": explain_flow,
    "subscriber": explain_subscriber,
    "session": explain_session,
    "channel": explain_session,
    "group": explain_group,
}
