"""The search under limits: from plans that keep them, by moves that keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from narrowcast.errors import InfeasibleError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.channels.kernels import limited as kernel
from narrowcast.plans.channels.kernels.limited import Fences
from narrowcast.plans.channels.kernels.two_level import Prices, TwoLevelState
from narrowcast.plans.channels.limits import HUGE, REASONS
from narrowcast.plans.channels.methods.groups_first import groups_first
from narrowcast.plans.channels.methods.search import Clock
from narrowcast.plans.channels.methods.state import NOISE, pack, state_cost
from narrowcast.plans.channels.points import Points

SWEEPS, COOLING, MILD = 30, 60, 0.05
PIN_FIRST = 1e6  # a pinned flow weighs so much more than one that would merely stay at home
LAST = 0.9  # the part of the time limit after which nothing new is begun
NO_GAINS: Floats = np.zeros(0)


def limited_search(
    points: Points,
    groups: int,
    sessions: int,
    prices: Prices,
    fences: Fences,
    previous: tuple[Ints, Ints] | None,
    seed: int,
    clock: Clock,
    free: Callable[[], tuple[Ints, Ints]],
) -> tuple[Ints, Ints]:
    """The best plan found that keeps every limit; InfeasibleError names the limit that binds if none is found.

    `free` makes a plan without limits: what of it the limits allow is the best start where they are loose.
    """
    rng = np.random.default_rng([seed, 5])
    best: tuple[float, TwoLevelState] | None = None
    fewest, reasons = points.n + 1, np.zeros(len(REASONS), np.int64)
    for target, group_of in _targets(points, groups, sessions, fences, previous, rng, free):
        if clock.spent >= 1 and best is not None:
            break
        state, mine, lost, blocked = _start(points, target, group_of, groups, prices, fences, rng)
        if lost:
            if lost < fewest:
                fewest, reasons = lost, blocked
            continue
        state = _improve(points, state, mine, prices, rng, clock)
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
    free: Callable[[], tuple[Ints, Ints]],
) -> Iterator[tuple[Ints, Ints]]:
    """Plans to begin from: the previous one, one without limits, and with few joins those of few groups."""
    if previous is not None:
        yield fences.home, _padded(previous[1], sessions)
    if fences.moves >= points.n:
        session_of, group_of = free()
        yield relabelled(session_of, group_of, groups, sessions, fences, points.rates)
        sizes = {groups}
        while fences.joins < min(sizes):
            sizes.add(max(fences.joins, min(sizes) // 2))
        for n in sorted(sizes):
            session_of, group_of = groups_first(points, n, sessions, rng)
            yield session_of, _padded(group_of, sessions)
        yield np.full(points.n, -1), np.zeros(sessions, np.int64)


def relabelled(
    session_of: Ints, group_of: Ints, groups: int, sessions: int, fences: Fences, rates: Floats
) -> tuple[Ints, Ints]:
    """The same plan under other numbers: pinned flows where they must be, then most of the rate at home."""
    group = group_of[session_of]
    overlap = PIN_FIRST * _shared(group, fences.pin, groups, rates) + _shared(group, fences.home_group, groups, rates)
    new_group = matched(overlap)
    new_session = matched(_shared(session_of, fences.home, sessions, rates))
    result = np.zeros(sessions, np.int64)
    result[new_session[: group_of.size]] = new_group[group_of]
    return new_session[session_of], result


def _shared(one: Ints, two: Ints, n: int, rates: Floats) -> Floats:
    """How much rate is in i of the one labelling and in j of the other; −1 counts nowhere."""
    both = (one >= 0) & (two >= 0)
    # A flow without any rate is better at home too.
    flat = np.bincount(one[both] * n + two[both], rates[both] + 1e-300, minlength=n * n)
    shared: Floats = flat.reshape(n, n).astype(np.float64)
    return shared


def matched(weight: Floats) -> Ints:
    """A new number for each row, all different: pairs of the largest weight first, the rest in order."""
    n = weight.shape[0]
    number, left = np.full(n, -1), np.ones(n, np.bool_)
    row, column = np.nonzero(weight)
    for at in np.argsort(-weight[row, column], kind="stable"):
        if number[row[at]] < 0 and left[column[at]]:
            number[row[at]], left[column[at]] = column[at], False
    number[number < 0] = np.flatnonzero(left)
    return number


def _padded(group_of: Ints, sessions: int) -> Ints:
    """Room for all sessions: the spare ones are empty."""
    return np.concatenate([group_of, np.zeros(sessions - group_of.size, np.int64)])


def _start(
    points: Points, target: Ints, group_of: Ints, groups: int, prices: Prices, fences: Fences, rng: np.random.Generator
) -> tuple[TwoLevelState, Fences, int, Ints]:
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


def _improve(
    points: Points, state: TwoLevelState, fences: Fences, prices: Prices, rng: np.random.Generator, clock: Clock
) -> TwoLevelState:
    """Descent from the start, a cooling from a mild heat, and that cooling's descent: the better of both."""
    cooled, its = TwoLevelState(*(array.copy() for array in state)), _copied(fences)
    if fences.moves < HUGE or fences.new_joins < HUGE:
        _spend(points, state, fences, prices, rng, clock)
    else:
        _descend(points, state, fences, prices, rng, clock)
    mean = state_cost(points, state, prices) / max(points.n, 1)
    nowhere = np.zeros(len(REASONS), np.int64)
    for i in range(COOLING):
        if clock.spent >= LAST:
            break
        heat = MILD * mean * 0.2 ** (i / COOLING)
        _sweep(points, cooled, its, prices, rng.permutation(points.n), heat, rng, nowhere)
    _descend(points, cooled, its, prices, rng, clock)
    return min(state, cooled, key=lambda s: state_cost(points, s, prices))


def _spend(
    points: Points, state: TwoLevelState, fences: Fences, prices: Prices, rng: np.random.Generator, clock: Clock
) -> None:
    """A migration budget goes to the moves that save most: a part of it at a time, then look again."""
    nowhere = np.zeros(len(REASONS), np.int64)
    for _ in range(SWEEPS):
        gains = np.zeros(points.n)
        _sweep(points, state, fences, prices, np.arange(points.n), 0.0, rng, nowhere, gains)
        left = min(fences.moves, points.n) - int(fences.used[0])
        order = np.argsort(-gains, kind="stable")[: max(left // 4, np.count_nonzero(gains > 0) // 4, 8)]
        order = order[gains[order] > 0]
        if order.size == 0 or _sweep(points, state, fences, prices, order, 0.0, rng, nowhere)[0] == 0:
            return
        if clock.spent >= LAST:
            return


def _descend(
    points: Points, state: TwoLevelState, fences: Fences, prices: Prices, rng: np.random.Generator, clock: Clock
) -> None:
    """Only moves that lower the cost, until a sweep finds none."""
    nowhere = np.zeros(len(REASONS), np.int64)
    for _ in range(SWEEPS):
        if _sweep(points, state, fences, prices, rng.permutation(points.n), 0.0, rng, nowhere)[0] == 0:
            return
        if clock.spent >= LAST:
            return


def _copied(fences: Fences) -> Fences:
    return fences._replace(joined=fences.joined.copy(), used=fences.used.copy())


def _sweep(
    points: Points,
    state: TwoLevelState,
    fences: Fences,
    prices: Prices,
    order: Ints,
    heat: float,
    rng: np.random.Generator,
    blocked: Ints,
    gains: Floats = NO_GAINS,
) -> tuple[int, int]:
    starts = rng.integers(0, NOISE.size, order.size)
    moves, lost = kernel.limited_sweep(
        points.offsets, points.users, points.rates, order, state, prices, fences, heat, NOISE, starts, blocked, gains
    )
    return int(moves), int(lost)


def _infeasible(lost: int, blocked: Ints, fences: Fences) -> InfeasibleError:
    budget = REASONS[int(np.argmax(blocked))] or "sessions"
    given = {"joins_per_subscriber": fences.joins, "rate_per_group": fences.rate, "moves": fences.moves}
    given["new_joins"] = fences.new_joins
    value = f" of {given[budget]:g}" if budget in given else ""
    return InfeasibleError(
        f"no plan found within {budget}{value}: {lost} flows fit into no group, mostly because of this limit",
        budget=budget,
    )
