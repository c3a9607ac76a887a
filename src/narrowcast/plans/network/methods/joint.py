"""All pieces together: stitched from each piece's own plan first, then improved as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from time import monotonic

import numpy as np

from narrowcast.errors import InfeasibleError
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.channels.methods.search import Clock
from narrowcast.plans.network.cost import PricedNetwork, classes_in, priced
from narrowcast.plans.network.decisions import Decisions, NetworkProblem, SitePlan
from narrowcast.plans.network.methods.backbone import BackboneTrees, Classes, Filters, classes_of
from narrowcast.plans.network.methods.channels import Channels, channelized
from narrowcast.plans.network.methods.filters import placed_filters
from narrowcast.plans.network.methods.sites import improved_site, settled, site_total, solved_site
from narrowcast.plans.network.prices import GB, HOUR

NO_FILTER: Filters = frozenset()
#: (flow, site) pairs up to which every direct way is tried with everything else planned again.
FEW_PAIRS = 24
FEW_FILTERS = 40  # sets of filters that are all tried
CAPACITY_ROUNDS = 14
MOST_TURNS = 4
SITE_WORK = 3e9  # of all sites together, without a time limit
SITE_SHARE = 0.5  # of the time limit

Told = Callable[[str, float], None]


class Timer:
    """When to stop; `limit` seconds from now, or never."""

    def __init__(self, limit: float | None) -> None:
        self.began, self.limit = monotonic(), limit

    def left(self) -> float:
        return np.inf if self.limit is None else self.limit - (monotonic() - self.began)

    def over(self) -> bool:
        return self.left() <= 0


def stitched(problem: NetworkProblem, seed: int, timer: Timer) -> Decisions:
    """Each piece by its own planner, put together: sites alone, channels without filters, filters on their trees."""
    sites = _sites_alone(problem, seed, timer)
    direct = np.zeros(0, np.int64)
    backbone = BackboneTrees(problem)
    found, classes, direct = _carried(backbone, direct, NO_FILTER, timer)
    carried = [backbone.carried(classes, np.flatnonzero(found.channel_of == c), t) for c, t in enumerate(found.trees)]
    filters = placed_filters(backbone, carried, problem.filters, problem.prices.price_filter, NO_FILTER)
    return _packed(problem, found, classes, filters, direct, forced_sites(problem, sites, direct))


def improved(problem: NetworkProblem, start: Decisions, seed: int, timer: Timer, told: Told) -> Decisions:
    """Pieces in turn, each with the others as they are; what lowers the whole is kept. Never above `start`."""
    backbone = BackboneTrees(problem)
    best, cost = start, priced(problem, start, backbone)
    forced = forced_flows(problem, best.direct)
    sites = [improved_site(s, p, forced[s.index], seed) for s, p in zip(problem.sites, best.sites, strict=True)]
    best, cost = _better(problem, best, cost, replace(best, sites=tuple(sites)), backbone)
    told("sites", cost.total)
    for turn in range(MOST_TURNS):
        before = cost.total
        for step in (_rebuilt, _straight):
            if timer.over():
                break
            for tried in step(problem, best, backbone, seed, timer, turn == 0):
                best, cost = _better(problem, best, cost, tried, backbone)
            told(step.__name__[1:], cost.total)
        if timer.over() or cost.total >= before * (1 - 1e-9):
            break
    if not cost.legal and cost.over > 0:
        best, cost = _within_capacity(problem, best, cost, timer)
    if not cost.legal:
        _refuse(problem, cost)
    return best


def _sites_alone(problem: NetworkProblem, seed: int, timer: Timer) -> tuple[SitePlan, ...]:
    """Every site by the search of channels plans; time and work are shared by how much there is to search."""
    weight = np.array([s.flow.size * max(min(s.sessions, s.flows.size), 1) for s in problem.sites], float)
    weight /= max(weight.sum(), 1.0)
    found = []
    for site, part in zip(problem.sites, weight.tolist(), strict=True):
        limit = None if timer.limit is None else max(SITE_SHARE * timer.limit * part, 0.05)
        forced = np.zeros(site.flows.size, np.bool_)
        found.append(solved_site(site, forced, seed, SITE_WORK * part, Clock(monotonic(), limit)))
    return tuple(found)


def _better(
    problem: NetworkProblem, best: Decisions, cost: PricedNetwork, tried: Decisions, backbone: BackboneTrees
) -> tuple[Decisions, PricedNetwork]:
    """The better of two: legal before illegal, less above capacity before more, then cheaper."""
    found = priced(problem, tried, backbone)
    now, then = ((not c.in_time, max(c.over, 0.0), c.total * (1 + 1e-12 * (c is found))) for c in (found, cost))
    return (tried, found) if now < then else (best, cost)


def _carried(
    backbone: BackboneTrees, direct: Ints, filters: Filters, timer: Timer, start: Sequence[Ints] = ()
) -> tuple[Channels, Classes, Ints]:
    """Channels for what is not direct; what none can carry in time goes straight too."""
    problem = backbone.problem
    while True:
        classes = classes_of(problem, direct)
        found = channelized(backbone, classes, filters, problem.channels, timer.over, start)
        stuck = np.flatnonzero(found.channel_of < 0)
        if stuck.size == 0:
            break
        needs = problem.remote & np.isin(classes.of_flow, stuck)[:, None]
        direct = np.union1d(direct, np.flatnonzero(needs.ravel()))
    return found, classes, direct


def _packed(
    problem: NetworkProblem, found: Channels, classes: Classes, filters: Filters, direct: Ints,
    sites: tuple[SitePlan, ...],
) -> Decisions:  # fmt: skip
    channel_of = np.where(classes.of_flow >= 0, np.append(found.channel_of, -1)[classes.of_flow], -1)
    return Decisions(channel_of, found.trees, np.array(sorted(filters), np.int64), direct, sites)


def forced_flows(problem: NetworkProblem, direct: Ints) -> list[Bools]:
    """Per site, which of its flows come by unicast straight from their source."""
    flow, at = np.divmod(direct, problem.demand.n_sites)
    return [np.isin(site.flows, flow[at == site.index]) for site in problem.sites]


def forced_sites(problem: NetworkProblem, sites: tuple[SitePlan, ...], direct: Ints) -> tuple[SitePlan, ...]:
    """The sites with what comes straight taken out of multicast."""
    if direct.size == 0:
        return sites
    forced = forced_flows(problem, direct)
    return tuple(
        settled(site, np.where(out, -1, plan.session_of), plan.group_of)
        if plan.session_of[out].max(initial=-1) >= 0
        else plan
        for site, plan, out in zip(problem.sites, sites, forced, strict=True)
    )


def _filter_sets(problem: NetworkProblem, now: Filters, backbone: BackboneTrees, first: bool) -> list[Filters]:
    """Sets of filters to plan channels under: all of them if they are few, else, at first, three likely ones."""
    able = np.flatnonzero(problem.demand.can_filter).tolist()
    most = min(problem.filters, len(able))
    count = sum(1 for n in range(most + 1) for _ in zip(combinations(able, n), range(FEW_FILTERS + 1), strict=False))
    if count <= FEW_FILTERS:
        return [frozenset(each) for n in range(most + 1) for each in combinations(able, n)]
    return list(dict.fromkeys([now, NO_FILTER, _on_one_tree(problem, backbone, most)])) if first else [now]


def _on_one_tree(problem: NetworkProblem, backbone: BackboneTrees, most: int) -> Filters:
    """The filters that pay if everything shares one tree."""
    classes = classes_of(problem, np.zeros(0, np.int64))
    if classes.n == 0:
        return NO_FILTER
    everything = np.arange(classes.n)
    links = backbone.trees(backbone.ends(classes, everything))[0][1]
    free = [(tree, f, np.full_like(f, np.inf)) for tree, f, _ in backbone.carried(classes, everything, links)]
    return placed_filters(backbone, [free], most, problem.prices.price_filter, NO_FILTER)


def _rebuilt(
    problem: NetworkProblem, now: Decisions, backbone: BackboneTrees, seed: int, timer: Timer, first: bool = False
) -> list[Decisions]:
    """Channels again under each set of filters, then filters again on their trees."""
    tried, price = [], problem.prices.price_filter
    for filters in _filter_sets(problem, frozenset(now.filters.tolist()), backbone, first):
        if timer.over():
            break
        found, classes, direct = _carried(backbone, now.direct, filters, timer, () if first else now.trees)
        carried = [
            backbone.carried(classes, np.flatnonzero(found.channel_of == c), t) for c, t in enumerate(found.trees)
        ]
        sites = forced_sites(problem, now.sites, direct)
        tried.append(_packed(problem, found, classes, filters, direct, sites))
        again = placed_filters(backbone, carried, problem.filters, price, filters)
        if again != filters:
            tried.append(_packed(problem, found, classes, again, direct, sites))
    return tried


def _straight(
    problem: NetworkProblem, now: Decisions, backbone: BackboneTrees, seed: int, timer: Timer, first: bool = False
) -> list[Decisions]:
    """Some (flow, site) straight from the source instead of by a channel, or back to a channel."""
    pairs = np.flatnonzero(problem.remote.ravel())
    if pairs.size <= FEW_PAIRS:
        return _toggled(problem, now, backbone, seed, pairs, timer, first)
    return _straight_many(problem, now, backbone)


def _toggled(
    problem: NetworkProblem, now: Decisions, backbone: BackboneTrees, seed: int, pairs: Ints, timer: Timer, first: bool
) -> list[Decisions]:
    """For each set of filters one pair after another, with its channels and its site planned again; the best of all.

    Filters and direct ways do each other's work, so each set of filters has a search of its own.
    """
    found = []
    for filters in _filter_sets(problem, frozenset(now.filters.tolist()), backbone, first):
        best = _under(problem, now, backbone, filters, timer)
        cost = priced(problem, best, backbone)
        before = np.inf
        while cost.total < before * (1 - 1e-12) and not timer.over():
            before = cost.total
            for code in _promising(problem, pairs):
                if timer.over():
                    break
                site = problem.sites[code % problem.demand.n_sites]
                direct, sites = np.setxor1d(best.direct, [code]), list(best.sites)
                out = forced_flows(problem, direct)[site.index]
                sites[site.index] = improved_site(site, sites[site.index], out, seed)
                rise = site_total(site, sites[site.index]) - site_total(site, best.sites[site.index])
                if rise < cost.terms["links"]:
                    base = replace(best, direct=direct, sites=tuple(sites))
                    tried = _under(problem, base, backbone, filters, timer)
                    best, cost = _better(problem, best, cost, tried, backbone)
        found.append(best)
    return found


def _under(
    problem: NetworkProblem, now: Decisions, backbone: BackboneTrees, filters: Filters, timer: Timer
) -> Decisions:
    """Channels planned again under these filters, the rest as it is."""
    found, classes, direct = _carried(backbone, now.direct, filters, timer)
    return _packed(problem, found, classes, filters, direct, forced_sites(problem, now.sites, direct))


def _promising(problem: NetworkProblem, pairs: Ints) -> list[int]:
    """Pairs with few subscribers first: their copies cost least on the links."""
    copies = problem.demand.wishes.toarray().ravel()[pairs]
    chosen = pairs[np.argsort(copies, kind="stable")]
    return [int(code) for code in chosen]


def _straight_many(problem: NetworkProblem, now: Decisions, backbone: BackboneTrees) -> list[Decisions]:
    """All pairs whose subscribers have unicast anyway and whose flow then fits a cheaper channel, at once."""
    d, n_sites, filters = problem.demand, problem.demand.n_sites, frozenset(now.filters.tolist())
    if not now.trees:
        return []
    lone = np.zeros(problem.remote.size, np.bool_)
    for local, plan in zip(problem.sites, now.sites, strict=True):
        by = np.bincount(local.flow[~plan.alone], minlength=local.flows.size) == 0
        lone[local.flows[by] * n_sites + local.index] = True
    codes = np.flatnonzero(lone & problem.remote.ravel())
    codes = codes[~np.isin(codes, now.direct) & (now.channel_of[codes // n_sites] >= 0)]
    if codes.size == 0:
        return []
    flow, site = np.divmod(codes, n_sites)
    needs = problem.remote.copy()
    needs.ravel()[now.direct] = False
    reduced = needs[flow]
    before = _cheapest(problem, now, backbone, filters, flow, needs[flow])
    reduced[np.arange(flow.size), site] = False
    after = np.where(reduced.any(axis=1), _cheapest(problem, now, backbone, filters, flow, reduced), 0.0)
    copies = np.asarray(d.wishes[flow, site]).ravel()
    way = problem.by_cost.cost[d.gateway[d.source[flow]], d.gateway[site]] * (HOUR / GB)
    gain = d.bytes_s[flow] * (before - after - copies * way)
    # One pair of each flow at a time: gains of two do not add up.
    order = np.argsort(-gain, kind="stable")
    first = np.unique(flow[order], return_index=True)[1]
    chosen = order[first]
    chosen = chosen[gain[chosen] > 0]
    if chosen.size == 0:
        return []
    direct = np.union1d(now.direct, codes[chosen])
    rest = problem.remote.copy()
    rest.ravel()[direct] = False
    channel_of = now.channel_of.copy()
    changed = np.unique(flow[chosen])
    channel_of[changed] = _cheapest_channel(problem, now, backbone, filters, changed, rest[changed])[0]
    channel_of[changed[~rest[changed].any(axis=1)]] = -1
    return [compacted(problem, replace(now, channel_of=channel_of, direct=direct), backbone)]


def _cheapest(
    problem: NetworkProblem, now: Decisions, backbone: BackboneTrees, filters: Filters, flow: Ints, needs: Bools
) -> Floats:
    return _cheapest_channel(problem, now, backbone, filters, flow, needs)[1]


def _cheapest_channel(
    problem: NetworkProblem, now: Decisions, backbone: BackboneTrees, filters: Filters, flow: Ints, needs: Bools
) -> tuple[Ints, Floats]:
    """The channel that carries each flow to these sites for least, and its price per byte a second."""
    bound = np.where(needs, problem.tightest[flow], np.inf)
    rows = np.column_stack((problem.demand.source[flow], np.where(needs, bound, -1.0)))
    _, first, at = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    source, none = problem.demand.source[flow[first]], np.zeros(0, np.int64)
    classes = Classes(source, needs[first], np.ones(first.size), bound[first], none)
    price = np.column_stack([backbone.marginal(classes, links, filters) for links in now.trees])
    return price.argmin(axis=1)[at.ravel()], price.min(axis=1)[at.ravel()]


def compacted(problem: NetworkProblem, made: Decisions, backbone: BackboneTrees) -> Decisions:
    """The same with channels numbered without gaps, each on the best tree for what it still carries."""
    filters = frozenset(made.filters.tolist())
    classes, channel_of = classes_in(problem, made)
    trees: list[Ints] = []
    number = np.full(len(made.trees) + 1, -1)
    for c in np.unique(channel_of).tolist():
        number[c] = len(trees)
        cost, links = backbone.channel(classes, np.flatnonzero(channel_of == c), filters, made.trees[c])
        trees.append(links if np.isfinite(cost) else made.trees[c])
    return replace(made, channel_of=np.where(made.channel_of >= 0, number[made.channel_of], -1), trees=tuple(trees))


def _within_capacity(
    problem: NetworkProblem, best: Decisions, cost: PricedNetwork, timer: Timer
) -> tuple[Decisions, PricedNetwork]:
    """Prices on links that bear too much, raised until they bear it; the cheapest plan that fits is kept."""
    plain, extra = BackboneTrees(problem), np.zeros(problem.link_price.size)
    capacity = problem.demand.capacity
    loads, scale = cost.loads, float(problem.link_price.mean())
    for _ in range(CAPACITY_ROUNDS):
        extra += np.where(np.isfinite(capacity), scale * np.maximum(loads / capacity - 1, 0.0), 0.0)
        extra[loads > capacity] += 0.25 * scale
        dear = BackboneTrees(problem, extra)
        made = None
        for filters in dict.fromkeys([frozenset(best.filters.tolist()), NO_FILTER]):
            found, classes, direct = _carried(dear, best.direct, filters, timer)
            made = _packed(problem, found, classes, filters, direct, forced_sites(problem, best.sites, direct))
            best, cost = _better(problem, best, cost, made, plain)
        if cost.legal and timer.over():
            break
        assert made is not None
        loads = priced(problem, made, plain).loads
        if (loads <= capacity).all():
            break
    return best, cost


def _refuse(problem: NetworkProblem, cost: PricedNetwork) -> None:
    d = problem.demand
    names = d.topology.names or tuple(map(str, range(d.topology.n_brokers)))
    if not cost.in_time:
        raise InfeasibleError(
            "latency_bound must be longer: no way through the backbone is quick enough for some subscriber",
            budget="latency_bound",
        )
    at = int(np.argmax(cost.loads - d.capacity))
    u, v = (names[w] for w in d.topology.edges[at].tolist())
    raise InfeasibleError(
        f"capacity of the link {u} to {v} must be larger, got {d.capacity[at]:g} bytes/s; the best plan found needs "
        f"{cost.loads[at]:g}",
        budget="capacity",
        smallest=float(cost.loads[at]),
    )
