"""What a network plan costs in an hour: the one cost, term by term, and whether it keeps its limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.network.decisions import Decisions, NetworkProblem
from narrowcast.plans.network.methods.backbone import BackboneTrees, Classes
from narrowcast.plans.network.methods.sites import site_terms

TERMS = ("links", "session_filtering", "flow_filtering", "sending", "filters", "groups")


class PricedNetwork(NamedTuple):
    """The terms, the bytes a second on each link, how much is above capacity, and whether nobody gets it late."""

    terms: dict[str, float]
    loads: Floats
    over: float
    in_time: bool

    @property
    def total(self) -> float:
        return sum(self.terms.values())

    @property
    def legal(self) -> bool:
        return self.over <= 0 and self.in_time


def priced(problem: NetworkProblem, made: Decisions, backbone: BackboneTrees | None = None) -> PricedNetwork:
    """The cost of decisions from its definition. O(wishes + classes · brokers)."""
    loads, in_time = link_loads(problem, made, backbone or BackboneTrees(problem))
    capacity = problem.demand.capacity
    over = float(np.maximum(loads - capacity * (1 + 1e-9), 0.0).sum())
    sites = site_costs(problem, made)
    terms = {
        "links": float(loads @ problem.link_price),
        "session_filtering": float(sites[:, 0].sum()),
        "flow_filtering": float(sites[:, 1].sum()),
        "sending": float(sites[:, 2].sum()),
        "filters": problem.prices.price_filter * made.filters.size,
        "groups": float(sites[:, 3].sum()),
    }
    return PricedNetwork(terms, loads, over, in_time)


def site_costs(problem: NetworkProblem, made: Decisions) -> Floats:
    """Sites × (session filtering, flow filtering, sending, groups)."""
    rows = []
    for site, plan in zip(problem.sites, made.sites, strict=True):
        t = site_terms(site, plan)
        filtering = site.beta * t["c2"] + float(problem.extraction[site.index])
        rows.append((site.alpha * t["c1"], filtering, site.send * t["copies"], site.group * t["groups"]))
    return np.array(rows)


def link_loads(problem: NetworkProblem, made: Decisions, backbone: BackboneTrees) -> tuple[Floats, bool]:
    """Bytes a second on every link by channels and direct ways, and whether every bound is kept."""
    needs = problem.remote.copy()
    needs.ravel()[made.direct] = False
    # What has neither a channel nor a direct way never comes.
    loads, in_time = np.zeros(problem.link_price.size), not (needs.any(axis=1) & (made.channel_of < 0)).any()
    classes, channel_of = classes_in(problem, made)
    filters = frozenset(made.filters.tolist())
    for c, links in enumerate(made.trees):
        members = np.flatnonzero(channel_of == c)
        if members.size:
            found, kept = backbone.loads(backbone.carried(classes, members, links), filters)
            loads, in_time = loads + found, in_time and kept
    for (_, site), (flows, way, late) in direct_ways(problem, made.direct).items():
        copies = problem.demand.wishes[flows, [site] * flows.size]
        loads[way] += float(problem.demand.bytes_s[flows] @ np.asarray(copies).ravel())
        in_time = in_time and not late
    return loads, in_time


def classes_in(problem: NetworkProblem, made: Decisions) -> tuple[Classes, Ints]:
    """What each channel carries, flows alike in the same channel taken together, and the channel of each class."""
    d = problem.demand
    needs = problem.remote.copy()
    needs.ravel()[made.direct] = False
    some = np.flatnonzero(needs.any(axis=1) & (made.channel_of >= 0))
    bound = np.where(needs[some], problem.tightest[some], -1.0)
    rows = np.column_stack((d.source[some], made.channel_of[some], bound))
    _, first, at = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    chosen, of_flow = some[first], np.full(d.interest.n_flows, -1)
    of_flow[some] = at.ravel()
    total: Floats = np.bincount(at.ravel(), d.bytes_s[some], minlength=first.size).astype(np.float64)
    least = np.where(needs[chosen], problem.tightest[chosen], np.inf)
    return Classes(d.source[chosen], needs[chosen], total, least, of_flow), made.channel_of[chosen]


def direct_ways(problem: NetworkProblem, direct: Ints) -> dict[tuple[int, int], tuple[Ints, list[int], bool]]:
    """For each pair of sites: the flows that go straight, the links they take, and whether any of them is late.

    The cheapest way, or the quickest where the cheapest is too slow for one of them.
    """
    d, found = problem.demand, {}
    flow, site = np.divmod(direct, d.n_sites)
    code = d.source[flow] * d.n_sites + site
    for pair in np.unique(code).tolist():
        source, to = divmod(pair, d.n_sites)
        flows = flow[code == pair]
        bound = float(problem.tightest[flows, to].min()) * (1 + 1e-9)
        u, v = int(d.gateway[source]), int(d.gateway[to])
        quick = float(problem.by_cost.delay[u, v]) > bound
        late = float(problem.by_delay.delay[u, v]) > bound
        found[source, to] = flows, problem.path(u, v, quick), late
    return found
