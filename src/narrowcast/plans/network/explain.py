"""Network plans explained: where a flow goes, why somebody has unicast, and what one more of a budget would save.

Every choice is the cost of the whole plan with that one thing changed, recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from narrowcast.evaluate.explanation import Choice, Explanation, Unwanted, place_of, ranked, several, worst
from narrowcast.model.plan import Tables
from narrowcast.model.quantity import quantity
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.decisions import Decisions, Site, SitePlan
from narrowcast.plans.network.methods.joint import forced_flows, forced_sites
from narrowcast.plans.network.methods.previous import carried_over
from narrowcast.plans.network.methods.sites import improved_site, settled, site_terms, site_total, solved_site
from narrowcast.plans.network.queries import with_answers
from narrowcast.plans.network.result import NetworkPlan

MEASURE = "cost per hour"


def explained(plan: Tables) -> Mapping[str, Callable[[Tables, Any], Explanation]]:
    """What can be asked about."""
    return {"flow": explain_flow, "subscriber": explain_subscriber, "site": explain_site, "node": explain_broker}


def explain_flow(plan: Tables, name: str) -> Explanation:
    """The channel of a flow, how it is served in each site, and what other ways would cost."""
    read = NetworkPlan.from_tables(plan)
    d, made = read.demand, read.decisions
    k = place_of("flow", name, d.interest.flow_names or ())
    c, cost = int(made.channel_of[k]), read.priced.total
    sites = [_served(read, k, s) for s in np.flatnonzero(read.problem.wanted[k]).tolist()]
    facts: dict[str, Any] = {
        "enters at": d.sites[d.source[k]], "rate": float(d.interest.rates[k]), "bytes a second": float(d.bytes_s[k]),
        "channel": c if c >= 0 else None, "links of its tree": len(made.trees[c]) if c >= 0 else 0, "in sites": sites,
    }  # fmt: skip
    facts |= _answer_facts(read, k)
    by = f"goes from {d.sites[d.source[k]]} in channel {c}" if c >= 0 else f"enters at {d.sites[d.source[k]]}"
    headline = (
        f"{name} {by}; {'; '.join(sites[:3])}{' …' if len(sites) > 3 else ''}" if sites else f"nobody wants {name}"
    )
    choices = []
    for s in np.flatnonzero(read.problem.remote[k]).tolist():
        code = k * d.n_sites + s
        here = code in made.direct
        if not here:
            direct = np.union1d(made.direct, [code])
            tried = replace(made, direct=direct, sites=forced_sites(read.problem, made.sites, direct))
            choices.append(_choice(read, f"straight from its source to {d.sites[s]}", tried, cost))
    for other in range(len(made.trees)):
        if c >= 0 and other != c and _reaches(read, k, other):
            channel_of = made.channel_of.copy()
            channel_of[k] = other
            choices.append(_choice(read, f"in channel {other}", replace(made, channel_of=channel_of), cost))
    choices += _apart(read, k, cost)
    return Explanation("network", f"flow {name}", headline, facts, MEASURE, cost, (), ranked(choices))


def _answer_facts(read: NetworkPlan, k: int) -> dict[str, Any]:
    """Of a flow that is an answer: whose queries it serves, and what they throw away of it."""
    queries, number = read.demand.queries, read.answer_of(k)
    if queries is None or number < 0:
        return {}
    members = queries.sets[number]
    return {
        "queries": [queries.asked.full_names[q] for q in members], "rows a second": queries.flow(members).rows_s,
        "rows a second thrown away": float(queries.thrown(members).sum()),
    }  # fmt: skip


def _apart(read: NetworkPlan, k: int, cost: float) -> Iterator[Choice]:
    """A merged answer apart again, each query by the cheapest channel there is and by unicast."""
    queries, number = read.demand.queries, read.answer_of(k)
    if queries is None or number < 0 or len(queries.sets[number]) < 2:
        return
    rest = [s for at, s in enumerate(queries.sets) if at != number]
    other = replace(read.problem, demand=with_answers(read.demand, [*rest, *((q,) for q in queries.sets[number])]))
    found = priced(other, carried_over(other, read.problem, read.decisions))
    yield Choice("each of its queries by itself", found.total, found.total - cost, "" if found.legal else "a limit")


def explain_subscriber(plan: Tables, name: str) -> Explanation:
    """How a subscriber gets each flow, why some come by unicast, and what it receives unasked."""
    read = NetworkPlan.from_tables(plan)
    d, made, cost = read.demand, read.decisions, read.priced.total
    u = place_of("subscriber", name, d.interest.user_names or ())
    s, host = int(d.site_of[u]), int(d.host[u])
    site, its = read.problem.sites[s], made.sites[s]
    mine = np.flatnonzero(site.users[site.user] == u)
    alone = mine[its.alone[mine]]
    straight = int(np.isin(site.flows[site.flow[mine]] * d.n_sites + s, made.direct).sum())
    why = _why(read, site, its, host)
    facts = {
        "site": d.sites[s], "host": d.hosts[host], "flows": mine.size, "by multicast": mine.size - alone.size,
        "by unicast": alone.size, "straight from the source": straight,
        "host can do multicast": bool(d.multicast[host]),
        "latency bound in ms": float(d.bound[u]) if np.isfinite(d.bound[u]) else None,
    }  # fmt: skip
    reason = f", because {why}" if alone.size and why else ""
    headline = f"{name} in {d.sites[s]} gets {several(int(mine.size - alone.size), 'flow')} by multicast and "
    headline += f"{several(int(alone.size), 'flow')} by unicast{reason}"
    choices = []
    if alone.size < mine.size:
        lone = its.alone.copy()
        lone[mine] = True
        tried = _with_site(made, s, _dropped(site, SitePlan(its.session_of, its.group_of, lone)))
        choices.append(_choice(read, "everything by unicast", tried, cost))
    if alone.size and d.multicast[host] and its.group_of.size:
        taken = its.alone.copy()
        can = alone[its.session_of[site.flow[alone]] >= 0]
        taken[can] = False
        if can.size:
            tried = _with_site(made, s, SitePlan(its.session_of, its.group_of, taken))
            choices.append(_choice(read, f"{several(int(can.size), 'flow')} from groups of the site too", tried, cost))
    return Explanation(
        "network", f"subscriber {name}", headline, facts, MEASURE, cost, worst(_unasked(site, its, u)), ranked(choices)
    )


def explain_site(plan: Tables, name: str) -> Explanation:
    """What a site does with its groups, and the shadow prices of its budgets: what one more or fewer would change."""
    read = NetworkPlan.from_tables(plan)
    d, made, cost = read.demand, read.decisions, read.priced.total
    s = place_of("site", name, d.sites)
    site, its = read.problem.sites[s], made.sites[s]
    terms = site_terms(site, its)
    lone = float(its.alone.mean()) if its.alone.size else 0.0
    facts = {
        "gateway": (d.topology.names or tuple(map(str, range(d.topology.n_brokers))))[d.gateway[s]],
        "subscribers": site.users.size, "flows": site.flows.size, "groups used": int(terms["groups"]),
        "groups allowed": site.groups, "sessions used": its.group_of.size, "sessions allowed": site.sessions,
        "wishes by unicast": float(lone), "cost in the site": float(read.site_costs[s].sum()),
    }  # fmt: skip
    choices = list(_site_choices(read, s, cost))
    more = next((c for c in choices if c.what == "one more group"), None)
    saves = "" if more is None else f"; one more group would save {quantity(max(-more.change, 0.0))} an hour"
    headline = (
        f"{name} serves {lone:.0%} of its wishes by unicast and uses {int(terms['groups'])} of {site.groups} groups"
    )
    return Explanation("network", f"site {name}", headline + saves, facts, MEASURE, cost, (), ranked(choices))


def explain_broker(plan: Tables, name: str) -> Explanation:
    """What the links of a broker carry, and what a filter there is worth."""
    read = NetworkPlan.from_tables(plan)
    d, made, cost = read.demand, read.decisions, read.priced.total
    names = list(d.topology.names or map(str, range(d.topology.n_brokers)))
    v = place_of("node", name, names)
    at = np.flatnonzero((d.topology.edges == v).any(axis=1))
    here = v in made.filters
    load = float(read.loads[at].sum())
    facts = {"filter": here, "able to filter": bool(d.can_filter[v]), "links": at.size, "bytes a second": load}
    full = (
        f"all {several(read.problem.filters, 'filter')} are placed" if made.filters.size >= read.problem.filters else ""
    )
    choices = []
    if here:
        without = replace(made, filters=made.filters[made.filters != v])
        choices.append(_choice(read, "no filter here", without, cost))
    elif d.can_filter[v]:
        tried = replace(made, filters=np.sort(np.append(made.filters, v)))
        choices.append(_choice(read, "a filter here too", tried, cost, full))
    told = "filters" if here else "does not filter" if d.can_filter[v] else "cannot filter"
    return Explanation(
        "network", f"node {name}",
        f"{name} {told}; its {several(int(at.size), 'link')} carry {quantity(load)} bytes a second",
        facts, MEASURE, cost, (), ranked(choices),
    )  # fmt: skip


def _choice(read: NetworkPlan, what: str, tried: Decisions, cost: float, barred: str = "") -> Choice:
    found = priced(read.problem, tried)
    limit = "a capacity" if found.over > 0 else "a latency bound" if not found.in_time else ""
    return Choice(what, found.total, found.total - cost, barred or limit)


def _reaches(read: NetworkPlan, k: int, channel: int) -> bool:
    d, made = read.demand, read.decisions
    needs = read.problem.remote[k].copy()
    needs[made.direct[made.direct // d.n_sites == k] % d.n_sites] = False
    ends = {int(g) for g in d.gateway[np.append(np.flatnonzero(needs), d.source[k])]}
    return ends <= set(d.topology.edges[made.trees[channel]].ravel().tolist())


def _served(read: NetworkPlan, k: int, s: int) -> str:
    d, its, site = read.demand, read.decisions.sites[s], read.problem.sites[s]
    local = int(np.searchsorted(site.flows, k))
    pairs = np.flatnonzero(site.flow == local)
    l, alone = int(its.session_of[local]), int(its.alone[pairs].sum())
    if k * d.n_sites + s in read.decisions.direct:
        return f"{d.sites[s]}: straight to {several(alone, 'subscriber')} by unicast"
    by = [f"session {l} of group {int(its.group_of[l])} for {pairs.size - alone}"] if l >= 0 else []
    by += [f"unicast to {alone}"] if alone else []
    return f"{d.sites[s]}: {' and '.join(by)}"


def _why(read: NetworkPlan, site: Site, its: SitePlan, host: int) -> str:
    d = read.demand
    if not d.multicast[host]:
        return f"host {d.hosts[host]} cannot do multicast"
    if site.groups == 0 or site.sessions == 0:
        return f"{d.sites[site.index]} has no multicast"
    if its.group_of.size == 0:
        return "no group there is worth its price"
    return "copies cost less than what a group would bring unasked"


def _unasked(site: Site, its: SitePlan, user: int) -> Iterator[Unwanted]:
    u = int(np.searchsorted(site.users, user))
    mine = np.flatnonzero((site.user == u) & ~its.alone)
    sessions = np.unique(its.session_of[site.flow[mine]])
    for g in np.unique(its.group_of[sessions]).tolist():
        inside = its.group_of[its.session_of] == g
        held = float(site.rates[inside & (its.session_of >= 0)].sum())
        wanted = float(site.rates[site.flow[mine[its.group_of[its.session_of[site.flow[mine]]] == g]]].sum())
        yield Unwanted(f"group {g}", held - wanted, "messages a second in it that it did not ask for")


def _with_site(made: Decisions, s: int, plan: SitePlan) -> Decisions:
    sites = list(made.sites)
    sites[s] = plan
    return replace(made, sites=tuple(sites))


def _dropped(site: Site, plan: SitePlan) -> SitePlan:
    """Without flows that nobody takes any more."""
    taken = np.zeros(site.flows.size, np.bool_)
    taken[site.flow[~plan.alone]] = True
    session = np.where(taken, plan.session_of, -1)
    used, number = np.unique(session[session >= 0], return_inverse=True)
    session[session >= 0] = number.ravel()
    return SitePlan(session, np.unique(plan.group_of[used], return_inverse=True)[1].astype(np.int64), plan.alone)


def _site_choices(read: NetworkPlan, s: int, cost: float) -> Iterator[Choice]:
    made, site = read.decisions, read.problem.sites[s]
    its, out = made.sites[s], forced_flows(read.problem, made.direct)[s]
    now = site_total(site, its)
    used = int(site_terms(site, its)["groups"])
    if used:
        none = settled(site, np.full(site.flows.size, -1), np.zeros(0, np.int64))
        yield Choice("no multicast at all", cost + site_total(site, none) - now, site_total(site, none) - now)
    for what, groups, sessions, barred in (
        ("one more group", site.groups + 1, max(site.sessions, 1), f"it may use {site.groups}"),
        ("one more session", max(site.groups, 1), site.sessions + 1, f"it may use {site.sessions}"),
        ("one group fewer", used - 1, site.sessions, ""),
    ):
        if groups < 0 or (what == "one group fewer" and used == 0):
            continue
        able = read.demand.multicast[np.unique(read.demand.host[site.users])] & (groups > 0)
        most = int(read.demand.joins_per_host[s])
        limit = np.where(able, groups if most < 0 else most, 0)
        other = replace(site, groups=groups, sessions=sessions, can=able & (limit > 0), limit=limit)
        found = improved_site(other, solved_site(other, out, read.seed), out, read.seed)
        value = site_total(site, found)
        value = min(value, now) if groups >= site.groups else value
        yield Choice(what, cost + value - now, value - now, barred)
