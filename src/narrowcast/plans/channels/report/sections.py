"""The sections of a channels plan's report, with and without unicast."""

from __future__ import annotations

import numpy as np

from narrowcast.plans.channels.report.matrix import matrix_names
from narrowcast.plans.channels.report.mine import findable
from narrowcast.plans.channels.report.served import Served, served
from narrowcast.plans.channels.report.subscribers import matrix_section, worst_section
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.reports.build import OURS, Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.parts import Report, Section, Tile
from narrowcast.reports.text import number, percent, plural, times
from narrowcast.reports.whatif import Whatif


def channels_report(plan: ChannelsPlan, whatif: Whatif | None) -> Report:
    """Flows in sessions in groups: what subscribers throw away, and who pays for it."""
    read, waste = served(plan), plan.cost.relative
    sends = {name: found.sent / (read.sent or 1.0) for name, found in plan.baselines.items()} | {OURS: 1.0}
    ways = ways_section(
        {name: found.relative for name, found in plan.baselines.items()},
        waste,
        label="Waste by way of delivery",
        lead="What subscribers must throw away, as a share of flooding’s, and how often each message is sent. Unicast "
        "wastes nothing at subscribers and pays for it at the sender; perfect multicast needs a group per audience.",
        value=percent,
        note=lambda name, _: f"sends {times(sends[name])}",
    )
    copies = times(float(read.wanted.sum()) / read.sent if read.sent else 1.0)
    return assemble(
        plan,
        whatif,
        headline=[f"{percent(waste)} of flooding’s waste{_bound(plan)}", _relief(read)],
        summary=_summary(read, with_sessions=True),
        tiles=[
            Tile("Waste", percent(waste), "of what flooding throws away"),
            _wanted(read),
            Tile("Sent", "once", f"per message; unicast {copies}"),
        ],
        ways=ways,
        yardstick=Yardstick(plan.cost.excess, waste, "flooding’s waste", "excess cost"),
        sections=[matrix_section(read), _groups(read), worst_section(read)],
        find=findable(read),
        hover=matrix_names(read),
    )


def hybrid_report(plan: ChannelsPlan, whatif: Whatif | None) -> Report:
    """Groups for what many want, unicast for the rest: one cost for both."""
    read, cost, perfect = served(plan), plan.cost.total, plan.cost.perfect or 1.0
    costs = {name: float(value) for name, value in plan.baselines.items()}
    ways = ways_section(
        costs,
        cost,
        label="Cost by way of delivery",
        lead="What receiving, sending and unicast cost together. Perfect multicast, a group per audience, is 100 %.",
        value=lambda value: percent(value / perfect),
        note=lambda _, value: f"cost {number(value)}",
    )
    share = plan.unicast_share
    pairs = plural(int(read.unicast.sum()), "pair")
    return assemble(
        plan,
        whatif,
        headline=[f"{percent(cost / perfect)} of perfect multicast’s cost", _next_best(costs, cost), _relief(read)],
        summary=_summary(read, with_sessions=plan.sessions is not None),
        tiles=[
            Tile("Cost", percent(cost / perfect), "of perfect multicast’s"),
            Tile("By unicast", percent(share), f"of the cost, {pairs}"),
            _wanted(read),
        ],
        ways=ways,
        yardstick=Yardstick(cost, cost / perfect, "perfect multicast’s cost", "cost"),
        sections=[matrix_section(read), _groups(read), worst_section(read)],
        find=findable(read),
        hover=matrix_names(read),
    )


def _bound(plan: ChannelsPlan) -> str:
    """How far from the best possible, as far as is proven."""
    excess, bound, flooding = plan.cost.excess, plan.lower_bound or 0.0, plan.cost.flooding
    if excess <= 0:
        return ", the least possible"
    if bound <= 0 or not flooding:
        return ""
    if excess <= 2 * bound:
        return f", {percent(excess / bound - 1)} above the bound"
    return f" (the proven bound is {percent(bound / flooding)})"


def _next_best(costs: dict[str, float], ours: float) -> str:
    others = {name: value for name, value in costs.items() if name != "perfect multicast" and value > 0}
    if not others:
        return ""
    best = min(others, key=lambda name: others[name])
    change = 1 - ours / others[best]
    return f"{percent(abs(change))} {'below' if change >= 0 else 'above'} {best}, the next best way"


def _relief(read: Served) -> str:
    """What the plan does for subscribers, in the words that say most."""
    clean = int(read.filters_nothing.sum())
    if clean:
        return f"{clean:,} of {plural(read.interest.n_users, 'subscriber')} now filter nothing"
    return f"{percent(read.useful)} of what arrives is wanted, up from {percent(read.useful_flooded)}"


def _wanted(read: Served) -> Tile:
    return Tile("Wanted", percent(read.useful), f"of what arrives; flooding {percent(read.useful_flooded)}")


def _summary(read: Served, *, with_sessions: bool) -> str:
    interest = read.interest
    used, n_sessions = (np.unique(of[of >= 0]).size for of in (read.group, read.session))
    places = plural(used, "multicast group") + (f" and {plural(n_sessions, 'session')}" if with_sessions else "")
    demand = f"{plural(interest.n_flows, 'flow')}, {plural(interest.n_users, 'subscriber')}"
    return f"{demand} and {plural(interest.n_pairs, 'wish', 'wishes')} in {places}."


def _groups(read: Served) -> Section:
    rate, total = read.group_rate, float(read.group_rate.sum()) or 1.0
    members = np.asarray(read.joins.sum(axis=0)).ravel().astype(int)
    flows = np.bincount(read.group[read.group >= 0], minlength=read.n_groups)
    pairs = np.unique(np.stack([read.group, read.session])[:, read.group >= 0], axis=1)
    sessions = np.bincount(pairs[0], minlength=read.n_groups)
    columns = ("group", "messages/s", "share", "members", "sessions", "flows")
    loads = [
        Load(
            f"group {g}, {plural(int(members[g]), 'member')}",
            float(rate[g]),
            (g, number(rate[g]), percent(rate[g] / total), f"{members[g]:,}", f"{sessions[g]:,}", f"{flows[g]:,}"),
        )
        for g in np.flatnonzero(flows).tolist()
    ]
    lead = "Messages a second in each group, the heaviest first. Everybody in a group gets all of it."
    return Section("groups", "Load per group", load_chart(loads, columns, what="group"), lead)
