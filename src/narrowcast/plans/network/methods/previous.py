"""Going on from a plan that runs: its decisions under another demand, and no more changed than one may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.model.interest_tables import names_of
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.decisions import Decisions, NetworkProblem, Site, SitePlan
from narrowcast.plans.network.methods.backbone import BackboneTrees, classes_of
from narrowcast.plans.network.methods.joint import forced_sites
from narrowcast.plans.network.methods.sites import settled
from narrowcast.plans.numbers import agreed


def carried_over(problem: NetworkProblem, old_problem: NetworkProblem, old: Decisions) -> Decisions:
    """The old decisions for the demand of now, by names; what they do not know takes the channel that is cheapest
    for it, or goes straight, and in the sites by unicast.
    """
    d, before = problem.demand, old_problem.demand
    broker = _places(_broker_names(before), _broker_names(d))
    site = _places(before.sites, d.sites)
    flow_of = _places(_flow_names(d), _flow_names(before))
    trees = []
    for links in old.trees:
        ends = [(int(broker[u]), int(broker[v])) for u, v in before.topology.edges[links].tolist()]
        found = [problem.link_of.get(pair, -1) for pair in ends]
        trees.append(np.sort(np.array(found, np.int64)) if -1 not in found else np.zeros(0, np.int64))
    filters = [int(broker[v]) for v in old.filters if broker[v] >= 0 and d.can_filter[broker[v]]][: problem.filters]
    trees = trees[: problem.channels]
    known = _places(_flow_names(before), _flow_names(d))
    flow, at = np.divmod(old.direct, before.n_sites)
    kept = (known[flow] >= 0) & (site[at] >= 0)
    straight = known[flow[kept]] * d.n_sites + site[at[kept]]
    straight = np.unique(straight[problem.remote.ravel()[straight]])
    backbone, chosen = BackboneTrees(problem), frozenset(filters)
    classes = classes_of(problem, straight)
    channel_of = np.full(d.interest.n_flows, -1)
    if classes.n:
        prices = [backbone.marginal(classes, links, chosen) for links in trees]
        price = np.column_stack([*prices, np.full(classes.n, np.inf)])
        needs = np.flatnonzero(classes.of_flow >= 0)
        of = classes.of_flow[needs]
        was = np.where(flow_of[needs] >= 0, old.channel_of[np.maximum(flow_of[needs], 0)], -1)
        was = np.where((was >= 0) & (was < len(trees)), was, len(trees))
        cheapest = price.argmin(axis=1)[of]
        channel_of[needs] = np.where(np.isfinite(price[of, was]), was, cheapest)
        stuck = needs[~np.isfinite(price[of, channel_of[needs]])]
        channel_of[stuck] = -1
        left = problem.remote & np.isin(np.arange(d.interest.n_flows), stuck)[:, None]
        straight = np.union1d(straight, np.flatnonzero(left.ravel()))
    sites = []
    for now in problem.sites:
        place = before.sites.index(d.sites[now.index]) if d.sites[now.index] in before.sites else -1
        sites.append(_site_over(now, old_problem.sites[place] if place >= 0 else None,
                                old.sites[place] if place >= 0 else None, flow_of))  # fmt: skip
    made = Decisions(channel_of, tuple(trees), np.array(sorted(filters), np.int64), straight, tuple(sites))
    return replace(made, sites=forced_sites(problem, made.sites, straight))


def _site_over(now: Site, before: Site | None, plan: SitePlan | None, flow_of: Ints) -> SitePlan:
    session = np.full(now.flows.size, -1)
    if before is None or plan is None:
        return settled(now, session, np.zeros(0, np.int64))
    was = flow_of[now.flows]
    at = np.searchsorted(before.flows, was)
    same = (
        (was >= 0) & (at < before.flows.size) & (np.append(before.flows, -1)[np.minimum(at, before.flows.size)] == was)
    )
    session[same] = plan.session_of[at[same]]
    group = plan.group_of
    out = (session >= now.sessions) | ((session >= 0) & (np.append(group, 0)[session] >= now.groups))
    return settled(now, np.where(out, -1, session), group)


def within_moves(problem: NetworkProblem, old: Decisions, new: Decisions, moves: int) -> Decisions:
    """As much of the way from old to new as so many changed ways allow: the backbone and each site are taken whole,
    those that save most per change first.
    """
    backbone, best = BackboneTrees(problem), old
    pieces = [-1, *range(problem.demand.n_sites)]
    spent = 0
    while pieces:
        now = priced(problem, best, backbone)
        tried = []
        for piece in pieces:
            made = _with_piece(problem, best, new, piece)
            n = count_moves(problem, best, made)
            cost = priced(problem, made, backbone)
            if n and spent + n <= moves and (cost.legal or not now.legal) and cost.total < now.total:
                tried.append(((now.total - cost.total) / n, -piece, piece, made, n))
        if not tried:
            break
        _, _, piece, best, n = max(tried, key=lambda each: each[:2])
        spent += n
        pieces.remove(piece)
    return best


def _with_piece(problem: NetworkProblem, now: Decisions, new: Decisions, piece: int) -> Decisions:
    if piece < 0:
        made = replace(new, sites=now.sites)
        return replace(made, sites=forced_sites(problem, made.sites, made.direct))
    sites = list(now.sites)
    sites[piece] = new.sites[piece]
    return replace(now, sites=forced_sites(problem, tuple(sites), now.direct))


def count_moves(problem: NetworkProblem, old: Decisions, new: Decisions) -> int:
    """Flows whose tree or direct ways change, and (flow, site) whose session changes, sessions matched by content."""
    tree = [{c: links.tobytes() for c, links in enumerate(made.trees)} for made in (old, new)]
    way = [[ways.get(c, b"") for c in made.channel_of.tolist()] for ways, made in zip(tree, (old, new), strict=True)]
    changed = np.array([a != b for a, b in zip(*way, strict=True)], np.bool_)
    changed[np.setxor1d(old.direct, new.direct) // problem.demand.n_sites] = True
    total = int(changed.sum()) + len(set(old.filters.tolist()) ^ set(new.filters.tolist()))
    for before, after in zip(old.sites, new.sites, strict=True):
        n = max(before.group_of.size, after.group_of.size, 1)
        label = np.append(agreed(after.session_of, before.session_of, n), -1)[after.session_of]
        total += int((label != before.session_of).sum())
    return total


def _broker_names(demand: NetworkDemand) -> list[str]:
    topology = demand.topology
    found: list[str] = names_of(topology.names, range(topology.n_brokers)).to_pylist()
    return found


def _flow_names(demand: NetworkDemand) -> list[str]:
    interest = demand.interest
    found: list[str] = names_of(interest.flow_names, range(interest.n_flows)).to_pylist()
    return found


def _places(names: Sequence[str], among: Sequence[str]) -> Ints:
    """Where each name stands among others; −1 for none."""
    place = {name: at for at, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], np.int64)
