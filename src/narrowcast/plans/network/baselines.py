"""The same network served in well-known ways, in the same cost: what a plan is held against.

None of them need keep capacities, latency bounds or joins per host.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.methods.groups_first import groups_first
from narrowcast.plans.channels.points import collapse
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.decisions import Decisions, NetworkProblem, Site, SitePlan
from narrowcast.plans.network.methods.backbone import BackboneTrees, classes_of
from narrowcast.plans.network.methods.filters import placed_filters

NONE: Ints = np.zeros(0, np.int64)


def network_baselines(problem: NetworkProblem, made: Decisions, stitched: Decisions) -> dict[str, float]:
    """Costs by name; `stitched` is each piece by its own planner, put together.

    flooding: everything to everybody. unicast: each subscriber by itself from the source. one tree: all content on
    one tree, sites as in the plan. hashed groups: the plan's backbone, flows in groups by their number. channels,
    hybrid, semantic, filters: each paper's method on its piece, the rest as plain as the paper leaves it (one tree
    for the site papers, unicast in the sites for the backbone papers).
    """
    backbone = BackboneTrees(problem)
    one = _one_tree(problem, backbone)
    copies = tuple(_all_alone(site) for site in problem.sites)
    ways = {
        "one tree": replace(one, sites=made.sites),
        "hashed groups": replace(made, sites=tuple(_hashed(site) for site in problem.sites)),
        "unicast": Decisions(
            np.full(one.channel_of.size, -1), (), NONE, np.flatnonzero(problem.remote.ravel()), copies
        ),
        "channels (Tock et al.)": replace(one, sites=tuple(_groups_first(site) for site in problem.sites)),
        "hybrid": replace(one, sites=stitched.sites),
        "semantic (SemCast)": replace(stitched, filters=NONE, sites=copies),
        "filters (CBM)": replace(one, filters=_filters(problem, backbone), sites=copies),
    }
    found = {
        "flooding": _flooding(problem, backbone),
        **{n: priced(problem, w, backbone).total for n, w in ways.items()},
    }
    kept = priced(problem, stitched, backbone)
    return found | ({"stitched": kept.total} if kept.legal else {})


def _one_tree(problem: NetworkProblem, backbone: BackboneTrees) -> Decisions:
    needed = problem.remote.any(axis=1)
    links = backbone.trees(_ends(problem))[0][1]
    return Decisions(np.where(needed, 0, -1), (links,), NONE, NONE, ())


def _ends(problem: NetworkProblem) -> frozenset[int]:
    d = problem.demand
    sites = np.union1d(np.flatnonzero(problem.wanted.any(axis=0)), d.source[problem.wanted.any(axis=1)])
    return frozenset(d.gateway[sites].tolist())


def _filters(problem: NetworkProblem, backbone: BackboneTrees) -> Ints:
    classes = classes_of(problem, NONE)
    if not classes.n:
        return NONE
    carried = backbone.carried(classes, np.arange(classes.n), backbone.trees(_ends(problem))[0][1])
    free = [(tree, f, np.full_like(f, np.inf)) for tree, f, _ in carried]
    chosen = placed_filters(backbone, [free], problem.filters, problem.prices.price_filter, frozenset())
    return np.array(sorted(chosen), np.int64)


def _all_alone(site: Site) -> SitePlan:
    return SitePlan(np.full(site.flows.size, -1), NONE, np.ones(site.flow.size, np.bool_))


def _hashed(site: Site) -> SitePlan:
    if site.groups == 0 or site.sessions == 0:
        return _all_alone(site)
    return _by_groups(site, site.flows % site.sessions, np.arange(site.sessions) % site.groups)


def _groups_first(site: Site) -> SitePlan:
    by = site.can[site.host[site.user]]
    if not by.any():
        return _all_alone(site)
    wants = Interest.from_pairs(site.flow[by], site.user[by], site.rates, n_users=site.users.size)
    points, point_of = collapse(wants)
    sessions = min(site.sessions, points.n)
    rng = np.random.default_rng(site.index)
    session, group = groups_first(points, min(site.groups, sessions), sessions, rng)
    return _by_groups(site, np.where(point_of >= 0, session[point_of], -1), group)


def _by_groups(site: Site, session: Ints, group: Ints) -> SitePlan:
    """Every wish of a host with multicast by its group, the others by unicast."""
    alone = ~site.can[site.host[site.user]]
    sent = np.zeros(site.flows.size, np.bool_)
    sent[site.flow[~alone]] = True
    session = np.where(sent, session, -1)
    used, number = np.unique(session[session >= 0], return_inverse=True)
    compact = np.full(site.flows.size, -1)
    compact[session >= 0] = number.ravel()
    return SitePlan(compact, np.unique(group[used], return_inverse=True)[1].astype(np.int64), alone)


def _flooding(problem: NetworkProblem, backbone: BackboneTrees) -> float:
    """Everything that anybody wants over one tree to all sites, and there to every receiver in one group."""
    d = problem.demand
    wanted = problem.wanted.any(axis=1)
    total = float(d.bytes_s[wanted].sum()) * backbone.trees(_ends(problem))[0][0]
    rate = float(d.interest.rates[wanted].sum())
    for site in problem.sites:
        able = site.can[site.host]
        lone = ~able[site.user]
        total += site.send * float(site.rates[site.flow[lone]].sum()) + float(problem.extraction[site.index])
        if able.any():
            total += (site.alpha + site.beta) * rate * int(able.sum()) + site.send * rate + site.group
    return total
