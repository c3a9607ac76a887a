"""The search under limits: from plans that keep them, by moves that keep them."""

from __future__ import annotations

import numpy as np

from narrowcast.channels.groups_first import groups_first
from narrowcast.channels.limits import HUGE, REASONS
from narrowcast.channels.points import Points
from narrowcast.channels.state import NOISE, pack, state_cost
from narrowcast.errors import InfeasibleError
from narrowcast.kernels import limited as kernel
from narrowcast.kernels.limited import Fences
from narrowcast.kernels.two_level import Prices, State
from narrowcast.model._arrays import Ints

SWEEPS, COOLING = 30, 60


def limited_search(
    points: Points,
    groups: int,
    sessions: int,
    prices: Prices,
    fences: Fences,
    previous: tuple[Ints, Ints] | None,
    seed: int,
) -> tuple[Ints, Ints]:
    """The best plan found that keeps every limit; InfeasibleError names the limit that binds if none is found."""
    rng = np.random.default_rng([seed, 5])
    best: tuple[float, State] | None = None
    fewest, reasons = points.n + 1, np.zeros(len(REASONS), np.int64)
    for target, group_of in _targets(points, groups, sessions, fences, previous, rng):
        state, mine, lost, blocked = _start(points, target, group_of, groups, prices, fences, rng)
        if lost:
            if lost < fewest:
                fewest, reasons = lost, blocked
            continue
        state = _improve(points, state, mine, prices, rng)
        cost = state_cost(points, state, prices)
        if best is None or cost < best[0]:
            best = cost, state
    if best is None:
        raise _infeasible(fewest, reasons, fences)
    return best[1].session_of, best[1].group_of


def _targets(
    points: Points,
    groups: int,
    sessions: int,
    fences: Fences,
    previous: tuple[Ints, Ints] | None,
    rng: np.random.Generator,
) -> list[tuple[Ints, Ints]]:
    """Plans to begin from: the previous one, clustered ones, and with few joins those of few groups."""
    targets = []
    if previous is not None:
        group_of = np.zeros(sessions, np.int64)
        group_of[: previous[1].size] = previous[1]
        targets.append((fences.home, group_of))
    if fences.moves >= points.n:
        sizes = {groups}
        while fences.joins < min(sizes):
            sizes.add(max(fences.joins, min(sizes) // 2))
        for n in sorted(sizes):
            session_of, group_of = groups_first(points, n, sessions, rng)
            targets.append((session_of, np.concatenate([group_of, np.zeros(sessions - group_of.size, np.int64)])))
        targets.append((np.full(points.n, -1), np.zeros(sessions, np.int64)))
    return targets


def _start(
    points: Points,
    target: Ints,
    group_of: Ints,
    groups: int,
    prices: Prices,
    fences: Fences,
    rng: np.random.Generator,
) -> tuple[State, Fences, int, Ints]:
    """As much of the target as the limits allow, the rest where there is room: hard cases first."""
    state = pack(points, np.full(points.n, -1), group_of, groups)
    mine = _copied(fences)
    bound = (fences.pin >= 0) | (np.diff(fences.apart_offsets) > 0)
    order = np.lexsort((-points.rates * points.sizes, fences.home < 0, ~bound))
    kernel.settle(points.offsets, points.users, points.rates, order, target, state, mine)
    left = order[state.session_of[order] < 0]
    blocked = np.zeros(len(REASONS), np.int64)
    lost = left.size
    for _ in range(3):
        blocked[:] = 0
        if left.size:
            _, lost = _sweep(points, state, mine, prices, left, 0.0, rng, blocked)
            left = left[state.session_of[left] < 0]
    return state, mine, int(lost), blocked


def _improve(points: Points, state: State, fences: Fences, prices: Prices, rng: np.random.Generator) -> State:
    """Mere descent, and without a migration budget also a cooling from a mild heat: the better of both."""
    cooled, its = State(*(array.copy() for array in state)), _copied(fences)
    _descend(points, state, fences, prices, rng)
    if fences.moves < HUGE or fences.new_joins < HUGE:
        return state
    mean = state_cost(points, state, prices) / max(points.n, 1)
    nowhere = np.zeros(len(REASONS), np.int64)
    for i in range(COOLING):
        heat = 0.1 * mean * 0.1 ** (i / COOLING)
        _sweep(points, cooled, its, prices, rng.permutation(points.n), heat, rng, nowhere)
    _descend(points, cooled, its, prices, rng)
    return min(state, cooled, key=lambda s: state_cost(points, s, prices))


def _descend(points: Points, state: State, fences: Fences, prices: Prices, rng: np.random.Generator) -> None:
    """Only moves that lower the cost, until a sweep finds none."""
    nowhere = np.zeros(len(REASONS), np.int64)
    for _ in range(SWEEPS):
        if _sweep(points, state, fences, prices, rng.permutation(points.n), 0.0, rng, nowhere)[0] == 0:
            return


def _copied(fences: Fences) -> Fences:
    return fences._replace(joined=fences.joined.copy(), used=fences.used.copy())


def _sweep(
    points: Points,
    state: State,
    fences: Fences,
    prices: Prices,
    order: Ints,
    heat: float,
    rng: np.random.Generator,
    blocked: Ints,
) -> tuple[int, int]:
    starts = rng.integers(0, NOISE.size - state.theta.size, order.size)
    moves, lost = kernel.limited_sweep(
        points.offsets, points.users, points.rates, order, state, prices, fences, heat, NOISE, starts, blocked
    )
    return int(moves), int(lost)


def _infeasible(lost: int, blocked: Ints, fences: Fences) -> InfeasibleError:
    budget = REASONS[int(np.argmax(blocked))] or "sessions"
    given = {"joins_per_user": fences.joins, "rate_per_group": fences.rate, "moves": fences.moves}
    given["new_joins"] = fences.new_joins
    value = f" of {given[budget]:g}" if budget in given else ""
    return InfeasibleError(
        f"no plan found that keeps {budget}{value}: {lost} flows found no group, most groups being closed by it",
        budget=budget,
    )
