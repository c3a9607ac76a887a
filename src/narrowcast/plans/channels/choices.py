"""Channelizers and choices of unicast by name (the hybrid paper, §3–4), and the search that begins from them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Ints
from narrowcast.plans.channels.kernels.greedy_unicast import Mixed
from narrowcast.plans.channels.methods.bmd import bmd
from narrowcast.plans.channels.methods.flow_merge import LARGEST as LARGEST_MERGE
from narrowcast.plans.channels.methods.flow_merge import flow_merge
from narrowcast.plans.channels.methods.greedy_unicast import greedy_flow, greedy_pair, greedy_user
from narrowcast.plans.channels.methods.hybrid_search import hybrid_search
from narrowcast.plans.channels.methods.interior_point import interior_point
from narrowcast.plans.channels.methods.kmeans import kmeans
from narrowcast.plans.channels.methods.ordered_unicast import iterative_unicast, ordered_unicast
from narrowcast.plans.channels.methods.reverse import one_flow_per_group, reverse
from narrowcast.plans.channels.methods.two_phase import two_phase
from narrowcast.plans.channels.mixed import Weights, mixed, terms
from narrowcast.plans.channels.points import Points, collapse

# What the search spends on channelizers beside the one it was given: pairs × groups for those that cluster, points ×
# pairs for flow-merge (about ten seconds), unknowns for interior-point (below a second).
CLUSTER_WORK, MERGE_WORK, FEW_UNKNOWNS = 2e8, 5e9, 100
# Points × pairs × groups above which heuristics that channelize after each drop are left out; from interior-point,
# which is slow and the worst of all, they always are.
ITERATIVE_WORK = 1e7


def random_numbers(seed: int) -> np.random.Generator:
    """Those that a channelizer draws from."""
    return np.random.default_rng([seed, 3])


@dataclass(frozen=True, eq=False)
class Task:
    """All that a choice of unicast is told."""

    interest: Interest
    points: Points
    groups: int
    w: Weights
    channelizer: str
    rng: np.random.Generator
    seed: int

    def channelized(self) -> Ints:
        return CHANNELIZERS[self.channelizer](self)

    def again(self, thin: Points, start: Ints) -> Ints:
        """Channelize what is left: from where it was with K-means, afresh with the others."""
        if self.channelizer == "kmeans":
            return kmeans(thin, self.groups, self.rng, start)
        left = Interest(thin.offsets, thin.users, thin.rates, thin.n_users)
        return Task(left, thin, self.groups, self.w, self.channelizer, self.rng, self.seed).channelized()

    def with_channelizer(self, channelizer: str) -> Task:
        """The same with another channelizer, and random numbers from the beginning."""
        return replace(self, channelizer=channelizer, rng=random_numbers(self.seed))

    def plan(self) -> Mixed:
        return mixed(self.points, self.channelized(), None, self.groups)


Channelize = Callable[[Points, int, np.random.Generator], Ints]


def _classes(task: Task, channelize: Channelize) -> Ints:
    """Channelize audiences, each once, and give every flow the group of its audience."""
    points, point_of_flow = collapse(task.interest)
    group = channelize(points, task.groups, task.rng) if points.n else np.zeros(0, np.int64)
    return group[point_of_flow[point_of_flow >= 0]]


def _flows(task: Task, channelize: Channelize) -> Ints:
    return channelize(task.points, task.groups, task.rng) if task.points.n else np.zeros(0, np.int64)


CHANNELIZERS: dict[str, Callable[[Task], Ints]] = {
    "kmeans": partial(_classes, channelize=kmeans),
    "random": partial(_flows, channelize=lambda points, n, rng: rng.integers(0, n, points.n)),
    "two-phase": partial(_flows, channelize=two_phase),
    "bmd": partial(_flows, channelize=bmd),
    "interior-point": partial(_classes, channelize=interior_point),
    "flow-merge": partial(_classes, channelize=flow_merge),
}

Chosen = tuple[Ints, Bools]


def _none(task: Task) -> Chosen:
    plan = task.plan()
    return plan.group_of, plan.alone


def _greedy(task: Task, choose: Callable[[Points, Mixed, Weights], None]) -> Chosen:
    plan = task.plan()
    choose(task.points, plan, task.w)
    return plan.group_of, plan.alone


def _iterative(task: Task, *, heaviest: bool, by_user: bool) -> Chosen:
    plan = iterative_unicast(task.points, task.plan(), task.w, task.again, heaviest=heaviest, by_user=by_user)
    return plan.group_of, plan.alone


def _reverse(task: Task) -> Chosen:
    points, point_of_flow = collapse(task.interest)
    group = reverse(points, task.groups, task.w)[point_of_flow[point_of_flow >= 0]]
    return group, (group < 0)[task.points.point_of_pair]


def _search(task: Task) -> Chosen:
    """The best of every heuristic from every channelizer that the work allows, and of the search from the best of each.

    Never worse than any of them: they run as they would alone, each channelizer from the same random numbers.
    """
    points, w = task.points, task.w
    classes, point_of_flow = collapse(task.interest)
    class_of = point_of_flow[point_of_flow >= 0]
    found = [_reverse(task)]
    starts = [_of_classes(found[0][0], class_of, classes.n), one_flow_per_group(classes, task.groups, w)]
    for channelizer in dict.fromkeys((task.channelizer, *CHANNELIZERS)):
        if channelizer == task.channelizer or _work(task, channelizer) <= 1:
            found.append(min(_tried(task, channelizer), key=lambda plan: _rank(points, plan, w)))
            starts.append(_of_classes(found[-1][0], class_of, classes.n))
    for group, alone in hybrid_search(classes, task.groups, w, starts, task.seed):
        found.append((group[class_of], _pairs_of_classes(points, classes, class_of, alone)))
    return min(found, key=lambda plan: _rank(points, plan, w))


def _tried(task: Task, channelizer: str) -> list[Chosen]:
    """What each heuristic makes of a channelizer."""
    plan = task.with_channelizer(channelizer).plan()
    found = [(plan.group_of, plan.alone)]
    for choose in (*GREEDY.values(), *ORDERED.values()):
        trial = Mixed(*(array.copy() for array in plan))
        choose(task.points, trial, task.w)
        found.append((trial.group_of, trial.alone))
    work = task.points.n * task.points.users.size * task.groups
    if work <= ITERATIVE_WORK and channelizer != "interior-point":
        found += [again(task.with_channelizer(channelizer)) for again in ITERATIVE.values()]
    return found


def _work(task: Task, channelizer: str) -> float:
    """What a channelizer has to do, as a part of what the search may spend on it."""
    points = task.points
    if channelizer == "interior-point":
        return task.groups * (points.n + points.n_users) / FEW_UNKNOWNS
    if channelizer == "flow-merge":
        return max(points.n * points.users.size / MERGE_WORK, points.n * points.n_users / LARGEST_MERGE)
    return points.users.size * task.groups / CLUSTER_WORK


def _of_classes(group_of: Ints, class_of: Ints, n: int) -> Ints:
    """A group for each audience: that of its last flow (they mostly agree)."""
    group = np.full(n, -1)
    group[class_of] = group_of
    return group


def _pairs_of_classes(points: Points, classes: Points, class_of: Ints, alone: Bools) -> Bools:
    inner = np.arange(points.users.size) - np.repeat(points.offsets[:-1], points.sizes)
    result: Bools = alone[np.repeat(classes.offsets[class_of], points.sizes) + inner]
    return result


def _rank(points: Points, plan: Chosen, w: Weights) -> tuple[bool, float]:
    found = terms(points, *plan, w)
    return found.unicast_share > w.cap * (1 + 1e-9), found.total


GREEDY: dict[str, Callable[[Points, Mixed, Weights], None]] = {
    "greedy-flow": greedy_flow,
    "greedy-user": greedy_user,
    "greedy-pair": greedy_pair,
}
# Name, then heaviest first, then by user.
_KINDS = (
    ("lightest-flow", False, False),
    ("lightest-user", False, True),
    ("heaviest-flow", True, False),
    ("heaviest-user", True, True),
)
ORDERED: dict[str, Callable[[Points, Mixed, Weights], None]] = {
    name: partial(ordered_unicast, heaviest=heaviest, by_user=by_user) for name, heaviest, by_user in _KINDS
}
ITERATIVE: dict[str, Callable[[Task], Chosen]] = {
    f"{name}-iterative": partial(_iterative, heaviest=heaviest, by_user=by_user) for name, heaviest, by_user in _KINDS
}
UNICAST: dict[str, Callable[[Task], Chosen]] = {
    "none": _none,
    **{name: partial(_greedy, choose=choose) for name, choose in ORDERED.items()},
    **ITERATIVE,
    **{name: partial(_greedy, choose=choose) for name, choose in GREEDY.items()},
    "reverse": _reverse,
    "search": _search,
}
