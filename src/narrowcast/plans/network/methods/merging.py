"""Which queries are merged: first by the queries planner alone, then under the prices of the network around them.

A search over sets takes the network as it is planned and asks what a set's answer adds to it; what it finds is
planned as a whole, and kept if the whole costs less. Small networks also try every neighbour as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from narrowcast.errors import InfeasibleError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.decisions import Decisions, NetworkProblem
from narrowcast.plans.network.methods.backbone import BackboneTrees, Classes
from narrowcast.plans.network.methods.joint import Timer
from narrowcast.plans.network.prices import GB, HOUR
from narrowcast.plans.network.queries import AskedQueries, with_answers
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.methods.directed import Directed
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.problem import BoxProblem, MergeAmounts, MergeProblem, Set, united
from narrowcast.plans.queries.procedures import Rectangle
from narrowcast.plans.queries.service.messages import PART_BYTES

Sets = tuple[Set, ...]
ROUNDS = 3  # of prices and sets in turn
STARTS = 8  # of a search over sets
#: Queries and wishes up to which neighbours are planned as a whole, and how many of them.
FEW_QUERIES, FEW_WISHES, MOST_NEIGHBOURS = 12, 400, 80


@dataclass(frozen=True, eq=False)
class MergedNetwork:
    """A network with its queries merged in some way: the problem, its plan, the plan it began with, and the cost."""

    problem: NetworkProblem
    made: Decisions
    start: Decisions
    cost: float

    @property
    def sets(self) -> Sets:
        assert self.problem.demand.queries is not None
        return self.problem.demand.queries.sets


Outcome = MergedNetwork | InfeasibleError
Decide = Callable[[NetworkProblem, Timer], tuple[Decisions, Decisions]]


def merged_networks(
    problem: NetworkProblem, start: Sets, decide: Decide, timer: Timer, seed: int
) -> tuple[MergedNetwork, MergedNetwork | None]:
    """The best way found to merge queries, and that of `start` if it can be; `decide` plans the network for any."""
    tried: dict[Sets, Outcome] = {}

    def whole(sets: Sets) -> Outcome:
        if sets not in tried:
            posed = replace(problem, demand=with_answers(problem.demand, sets))
            try:
                made, begun = decide(posed, Timer(None if timer.limit is None else max(timer.left() / 2, 0.1)))
                tried[sets] = MergedNetwork(posed, made, begun, priced(posed, made).total)
            except InfeasibleError as error:
                tried[sets] = error
        return tried[sets]

    best = first = whole(start)
    for _ in range(ROUNDS):
        if timer.over():
            break
        best, before = _cheaper(best, whole(searched(problem, best, seed))), best
        if best is before:
            break
    n = len(problem.demand.queries.asked.boxes) if problem.demand.queries is not None else 0
    if n <= FEW_QUERIES and problem.demand.interest.n_pairs <= FEW_WISHES:
        best = _with_neighbours(best, whole, timer)
    if isinstance(best, InfeasibleError):
        raise best
    return best, first if isinstance(first, MergedNetwork) else None


def _cheaper(now: Outcome, then: Outcome) -> Outcome:
    if isinstance(then, InfeasibleError):
        return now
    return then if isinstance(now, InfeasibleError) or then.cost < now.cost * (1 - 1e-12) else now


def _with_neighbours(best: Outcome, whole: Callable[[Sets], Outcome], timer: Timer) -> Outcome:
    """The first neighbour that costs less as a whole, again and again."""
    left, before = MOST_NEIGHBOURS, None
    while best is not before and isinstance(best, MergedNetwork):
        before = best
        assert best.problem.demand.queries is not None
        for sets in neighbours(best.problem.demand.queries, best.sets):
            if left == 0 or timer.over():
                return best
            left -= 1
            best = _cheaper(best, whole(sets))
            if best is not before:
                break
    return best


def neighbours(queries: AskedQueries, sets: Sets) -> Iterator[Sets]:
    """Two sets as one, one query by itself, one query in another set; sets keep to one frequency."""
    for a, b in combinations(sets, 2):
        if queries.every[a[0]] == queries.every[b[0]]:
            yield tuple(sorted([*(s for s in sets if s not in (a, b)), united(a, b)]))
    for a in sets:
        for q in a if len(a) > 1 else ():
            rest, others = tuple(i for i in a if i != q), [s for s in sets if s != a]
            yield tuple(sorted([*others, rest, (q,)]))
            for b in others:
                if queries.every[q] == queries.every[b[0]]:
                    yield tuple(sorted([*(s for s in others if s != b), rest, united(b, (q,))]))


def alone(problem: NetworkProblem, queries: AskedQueries) -> Sets:
    """The sets that the queries planner makes by itself, at the network's mean prices."""
    d = problem.demand
    site, at = d.site_of[queries.clients_in(d)], queries.site_in(d)
    way = problem.by_cost.cost[d.gateway[at], d.gateway[site]] * (HOUR / GB)
    far = float(way[np.isfinite(way)].mean()) if np.isfinite(way).any() else 0.0
    a_row = queries.row_bytes * (far + problem.send_price / PART_BYTES)
    ku = float(d.beta[site].mean()) * problem.prices.price_cpu
    mean = BoxProblem(queries.asked.boxes, Constants(problem.send_price, a_row, ku), Rectangle(), queries.size)
    return _by_frequency(queries, mean, Pair())


def searched(problem: NetworkProblem, now: Outcome, seed: int) -> Sets:
    """The sets that cost least in the network as it is planned now."""
    queries = problem.demand.queries
    assert queries is not None
    made = now.made if isinstance(now, MergedNetwork) else None
    prices = AnswerPrices(problem, made, queries, tuple(range(len(queries.asked.boxes))))
    found = _by_frequency(queries, prices, Directed(STARTS), seed)
    if isinstance(now, MergedNetwork):
        back = prices.total(now.sets)
        return found if prices.total(found) < back else now.sets
    return found


def _by_frequency(queries: AskedQueries, problem: MergeProblem, method: Pair | Directed, seed: int = 0) -> Sets:
    found: list[Set] = []
    for often in np.unique(queries.every).tolist():
        mine = np.flatnonzero(queries.every == often).tolist()
        found += [tuple(mine[i] for i in members) for members in method(problem.subset(mine), seed=seed)]
    return tuple(sorted(found))


@dataclass(eq=False)
class AnswerPrices:
    """What the answer of a set adds in an hour to a network that stays as it is: a problem for the queries' methods.

    On the links it takes the cheapest of the channels there are, a tree of its own while the budget has room, or
    copies straight to its clients; in a site copies, or multicast where that costs less.
    """

    problem: NetworkProblem
    made: Decisions | None
    queries: AskedQueries
    ids: tuple[int, ...]
    constants: Constants = field(default_factory=lambda: Constants(km=0.0, kt=1.0, ku=0.0))
    known: dict[Set, float] = field(default_factory=dict, repr=False)
    ways: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.client = self.queries.clients_in(self.problem.demand)
        self.backbone = BackboneTrees(self.problem)
        self.source = self.queries.site_in(self.problem.demand)

    @property
    def n(self) -> int:
        return len(self.ids)

    def subset(self, members: Sequence[int]) -> AnswerPrices:
        return replace(self, ids=tuple(self.ids[i] for i in members))

    def total(self, sets: Sets) -> float:
        return sum(self._cost(members) for members in sets)

    def terms(self, members: Set) -> MergeAmounts:
        return MergeAmounts(1, self.cost(members), 0.0)

    def joined(self, members: Set, others: Sequence[Set]) -> Floats:
        return np.array([self.cost(united(members, other)) for other in others])

    def cost(self, members: Set) -> float:
        return self._cost(tuple(self.ids[i] for i in members))

    def _cost(self, members: Set) -> float:
        if members not in self.known:
            d, flow = self.problem.demand, self.queries.flow(members)
            users = np.unique(self.client[list(members)])
            copies = np.bincount(d.site_of[users], minlength=d.n_sites)
            shared = np.bincount(d.site_of[users], d.multicast[d.host[users]], minlength=d.n_sites)
            shared = np.where((d.groups > 0) & (d.sessions > 0), shared, 0)
            send, cpu = self.problem.send_price, self.problem.prices.price_cpu
            group = np.where(shared > 0, send * (1 + copies - shared) + cpu * (d.alpha + d.beta) * shared, np.inf)
            inside = flow.rate * float(np.minimum(send * copies, group).sum())
            site = d.site_of[self.client[list(members)]]
            thrown = cpu * float(d.beta[site] @ self.queries.thrown(members))
            self.known[members] = inside + thrown + flow.rate * flow.size * self._way(copies)
        return self.known[members]

    def _way(self, copies: Ints) -> float:
        """Per hour of one byte a second, from the table to these sites."""
        far = copies > 0
        far[self.source] = False
        if not far.any():
            return 0.0
        key = tuple(np.where(far, copies, 0).astype(np.int64).tolist())
        if key not in self.ways:
            d = self.problem.demand
            wanted = Classes(np.array([self.source]), far[None], np.ones(1), np.full((1, d.n_sites), np.inf),
                             np.zeros(0, np.int64))  # fmt: skip
            straight = self.problem.by_cost.cost[d.gateway[self.source], d.gateway[far]] * (HOUR / GB)
            found = [float(straight @ copies[far])]
            trees, filters = ((), ()) if self.made is None else (self.made.trees, self.made.filters.tolist())
            found += [float(self.backbone.marginal(wanted, links, frozenset(filters))[0]) for links in trees]
            if len(trees) < self.problem.channels:
                found.append(self.backbone.trees(self.backbone.ends(wanted, np.zeros(1, np.int64)))[0][0])
            self.ways[key] = min(found)
        return self.ways[key]


def previous_sets(queries: AskedQueries, before: NetworkDemand) -> Sets | None:
    """The sets of the plan that runs, for the queries of now; new ones by themselves. None if it has none."""
    old = before.queries
    if old is None:
        return None
    place = {name: at for at, name in enumerate(queries.asked.full_names)}
    names = old.asked.full_names
    sets = [[place[names[q]] for q in members if names[q] in place] for members in old.sets]
    known = {q for members in sets for q in members}
    return queries.by_frequency([s for s in sets if s] + [[q] for q in range(len(place)) if q not in known])
