"""The heuristic: one batch moves a few filters, each move only if it pays (content-based multicast, §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import UnsupportedError
from narrowcast.model import Tree
from narrowcast.plans.filters.kernels import flip as filter_flip
from narrowcast.plans.filters.kernels.cost import objective as cost
from narrowcast.plans.filters.kernels.cost import survey
from narrowcast.plans.filters.kernels.flip import FlipState
from narrowcast.plans.filters.kernels.state import toggle
from narrowcast.plans.filters.problem import (
    WeightedObjective,
    amount,
    count,
    delay_objective,
    filter_mask,
    flow_array,
    traffic_objective,
    walk_of,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Goal = Literal["traffic", "delay"]
KINDS = ("nothing", "importance", "parent-child", "add", "remove")

# A gain below this share of the objective is rounding.
NOISE = 1e-12


@dataclass(frozen=True, slots=True)
class FlipMove:
    """One filter goes from `source` to `target`; `None` where one is added or removed."""

    kind: str
    source: int | None
    target: int | None
    gain: float


@dataclass(frozen=True, eq=False, slots=True)
class Improvement:
    """The filters after a batch, the moves made, and the objective before and after.

    `traffic` or `delay`, whichever was the objective, is another name of `after`.
    """

    filters: Ints
    moves: tuple[FlipMove, ...]
    objective: str
    before: float
    after: float

    @property
    def traffic(self) -> float | None:
        """The traffic after the batch, where that was the objective."""
        return self.after if self.objective == "traffic" else None

    @property
    def delay(self) -> float | None:
        """The delay after the batch, where that was the objective."""
        return self.after if self.objective == "delay" else None


def improve(
    tree: Tree,
    flow: ArrayLike,
    filters: ArrayLike,
    objective: Goal = "traffic",
    moves: int = 1,
    *,
    migration_cost: float = 0.0,
    k: int | None = None,
    filter_delay: float = 0.0,
    link_delay: float = 1.0,
) -> Improvement:
    """One batch of the heuristic: at most `moves` filters move, each only if it pays.

    Each move is an importance flip (the least important filter goes to the most important vertex
    without one) if the objective falls by more than `migration_cost`, else the best move of a
    filter to a neighbour up or down the tree. For "delay" one may also be added or removed; for
    "traffic" one may be added while there are fewer than `k`. Good between runs of the optimum, when
    interest drifts; it can stop short of the optimum. O(moves · n). Content-based multicast, §6.

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0, 1, 1, 2, 2])
    >>> r = nc.filters.improve(tree, [4, 2, 3, 1, 1, 2, 2], filters=[2])
    >>> r.filters.tolist(), r.before, r.after, r.moves[0].kind
    ([0], 20.0, 15.0, 'importance')
    """
    f, mask = flow_array(tree, flow), filter_mask(tree, filters)
    form = goal(tree, objective, filter_delay, link_delay)
    fee, limit = amount("migration_cost", migration_cost), None if k is None else count("k", k)
    state = state_of(tree, f, form, mask)
    before = after = value_of(state)
    made: list[FlipMove] = []
    for _ in range(count("moves", moves)):
        move = next_move(tree, state, objective, after, fee, limit)
        if move is None:
            break
        make(tree, state, move)
        after = value_of(state)
        made.append(move)
    return Improvement(filters_of(tree, state), tuple(made), objective, before, after)


def importance(tree: Tree, flow: ArrayLike, filters: ArrayLike) -> Floats:
    """I(v) for traffic: what the filter at v saves, or would save, given the other filters. O(n).

    >>> import narrowcast as nc
    >>> nc.filters.importance(nc.Tree([-1, 0, 0, 1, 1]), [3, 2, 1, 1, 1], filters=[1]).tolist()
    [3.0, 4.0, 0.0, 0.0, 0.0]
    """
    f, mask = flow_array(tree, flow), filter_mask(tree, filters)
    return filter_flip.importance(state_of(tree, f, traffic_objective(tree), mask))[walk_of(tree).place]


def goal(tree: Tree, objective: str, filter_delay: float, link_delay: float) -> WeightedObjective:
    """The weights and prices of an objective by name."""
    if objective == "traffic":
        return traffic_objective(tree)
    if objective == "delay":
        return delay_objective(tree, filter_delay, link_delay)
    raise UnsupportedError(f"objective must be one of traffic, delay, got {objective!r}", works=("traffic", "delay"))


def state_of(tree: Tree, f: Floats, form: WeightedObjective, mask: Bools) -> FlipState:
    """The heuristic's state from scratch, in walk order. O(n)."""
    walk = walk_of(tree)
    v = walk.vertex
    flow, weight, price, chosen, can = f[v], form.weight[v], form.price[v], mask[v], tree.can_filter[v]
    tight, z, Z, C = survey(walk.order, walk.parent, flow, weight, chosen)
    return FlipState(walk.order, walk.parent, walk.size, can, flow, weight, price, chosen, tight, z, Z, C)


def value_of(state: FlipState) -> float:
    """The objective. O(n)."""
    return float(cost(state.order, state.parent, state.flow, state.weight, state.price, state.chosen))


def filters_of(tree: Tree, state: FlipState) -> Ints:
    """The vertices with a filter, ascending."""
    return np.sort(walk_of(tree).vertex[state.chosen])


def make(tree: Tree, state: FlipState, move: FlipMove) -> float:
    """Carry out a move; returns the change of the objective."""
    places = [int(walk_of(tree).place[v]) for v in (move.source, move.target) if v is not None]
    return sum(float(toggle(state, place)) for place in places)


def next_move(tree: Tree, state: FlipState, objective: str, value: float, fee: float, k: int | None) -> FlipMove | None:
    """The next move that pays more than the fee, or None."""
    free = objective == "delay"
    may_add = free or (k is not None and int(state.chosen.sum()) < k)
    kind, source, target, gain = filter_flip.step(state, max(fee, NOISE * value), may_add, free)
    if kind == filter_flip.NOTHING:
        return None
    vertex = walk_of(tree).vertex
    u, v = (None if place < 0 else int(vertex[place]) for place in (source, target))
    return FlipMove(KINDS[kind], u, v, float(gain))
