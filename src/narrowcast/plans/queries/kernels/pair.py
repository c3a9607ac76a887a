"""Pair merging: always the merge with the greatest gain, until none gains (Crespo et al., §6.2).

Instead of a profit table of all pairs, every set remembers its best partner. Of two living sets the
younger looked for a partner when the elder was there, so the best of all remembered pairs is the best
of all pairs. A partner that has changed meanwhile is noticed when its pair comes up, and searched anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.queries.kernels.box_sizes import AREA, box_sizes
from narrowcast.plans.queries.kernels.box_tree import LEAF, SetBoxes, build, least_union, union_size, update


@jit
def _gain(km: float, kt: float, ku: float, size_a: float, p: int, grow_a: float, grow_b: float, r: int) -> float:
    """K_M + K_T(S_a + S_b − S_ab) + K_U(p·S_a + r·S_b − (p+r)·S_ab), written in grow_x = S_ab − S_x.

    Each operation is monotone also in floating point, so the same expression on bounds is a bound.
    """
    return km + (kt * (size_a - grow_b) - ku * (p * grow_a + r * grow_b))


@jit
def _best_of(
    sets: Any, those: Any, a: int, k: Any, measure: Any, low: Any, high: Any, best: float, partner: int
) -> Any:
    """The best partner of set a among those, if it gains more than the best so far, or as much with a smaller slot."""
    lows, highs, size, count, alive = sets.low, sets.high, sets.size, sets.count, sets.alive
    km, kt, ku, size_a, count_a = k[0], k[1], k[2], size[a], count[a]
    for b in those:
        if b == a or not alive[b]:
            continue
        if measure.kind == AREA:  # here and now: a call costs more than an area
            union = 1.0
            for j in range(low.size):
                union *= max(highs[a, j], highs[b, j]) - min(lows[a, j], lows[b, j])
        else:
            union = union_size(sets, a, b, measure, low, high)
        gain = _gain(km, kt, ku, size_a, count_a, union - size_a, union - size[b], count[b])
        if gain > best or (gain == best and b < partner):
            best, partner = gain, b
    return best, partner


@jit
def _ceiling(tree: Any, sets: Any, a: int, node: int, k: Any, measure: Any, low: Any, high: Any) -> float:
    """No set below the node gains more than this with set a; −inf if nothing lives there."""
    if tree.slot_min[node] < 0:
        return -np.inf
    union = least_union(tree, sets, a, node, measure, low, high)
    grow_b = max(0.0, union - tree.size_max[node])
    return _gain(k[0], k[1], k[2], sets.size[a], sets.count[a], union - sets.size[a], grow_b, tree.count_min[node])


@jit
def _best_nearby(tree: Any, sets: Any, a: int, k: Any, measure: Any, low: Any, high: Any) -> Any:
    """The best partner by branch and bound: the same answer as `_best_of` all."""
    best, partner = 0.0, -1
    span = np.empty((128, 3), np.int64)
    ceiling = np.empty(128)
    span[0, 0], span[0, 1], span[0, 2] = 0, 0, tree.order.size
    ceiling[0], top = np.inf, 1
    while top > 0:
        top -= 1
        node, s, e = span[top, 0], span[top, 1], span[top, 2]
        if ceiling[top] < best or (ceiling[top] == best and (partner < 0 or tree.slot_min[node] >= partner)):
            continue
        if e - s <= LEAF:
            best, partner = _best_of(sets, tree.order[s:e], a, k, measure, low, high, best, partner)
            continue
        mid = (s + e) // 2
        left, right = 2 * node + 1, 2 * node + 2
        left_ceiling = _ceiling(tree, sets, a, left, k, measure, low, high)
        right_ceiling = _ceiling(tree, sets, a, right, k, measure, low, high)
        # The more promising half goes on top of the stack; of equals, the one with the smaller slot.
        left_first = left_ceiling > right_ceiling or (
            left_ceiling == right_ceiling and tree.slot_min[left] < tree.slot_min[right]
        )
        for turn in range(2):
            if (turn == 1) == left_first:
                span[top, 0], span[top, 1], span[top, 2], ceiling[top] = left, s, mid, left_ceiling
            else:
                span[top, 0], span[top, 1], span[top, 2], ceiling[top] = right, mid, e, right_ceiling
            top += 1
    return best, partner


@jit
def _search(tree: Any, sets: Any, a: int, k: Any, measure: Any, low: Any, high: Any, nearby: bool) -> Any:
    if nearby:
        return _best_nearby(tree, sets, a, k, measure, low, high)
    return _best_of(sets, tree.order, a, k, measure, low, high, 0.0, -1)


@jit
def _beats(i: int, j: int, gain: Any, partner: Any) -> Any:
    """Whether the pair remembered by slot i comes before that of slot j: gain, then smaller slots."""
    if gain[i] != gain[j]:
        return gain[i] > gain[j]
    first_i, first_j = min(i, partner[i]), min(j, partner[j])
    if first_i != first_j:
        return first_i < first_j
    return max(i, partner[i]) < max(j, partner[j])


@jit
def _match(winner: Any, node: int, gain: Any, partner: Any) -> None:
    left, right = winner[2 * node], winner[2 * node + 1]
    winner[node] = right if left < 0 or (right >= 0 and _beats(right, left, gain, partner)) else left


@jit
def _replay(winner: Any, slot: int, gain: Any, partner: Any) -> None:
    """Play the tournament again from a slot to the top. O(log n)."""
    node = (winner.size // 2 + slot) // 2
    while node >= 1:
        _match(winner, node, gain, partner)
        node //= 2


@jit
def pair(low: Any, high: Any, k: Any, measure: Any, nearby: bool) -> Any:
    """The slot that each query ends in. `k` is (K_M, K_T, K_U); `nearby` prunes with the tree."""
    n, d = low.shape
    sets = SetBoxes(low.copy(), high.copy(), box_sizes(low, high, measure), np.ones(n, np.int64), np.ones(n, np.bool_))
    scratch_low, scratch_high = np.empty(d), np.empty(d)
    owner = np.arange(n)
    if n == 0:
        return owner
    tree = build(sets)
    gain, partner = np.full(n, -np.inf), np.full(n, -1)
    age, seen = np.zeros(n, np.int64), np.zeros(n, np.int64)  # `seen` is the partner's age when chosen
    leaves = 1
    while leaves < n:
        leaves *= 2
    winner = np.full(2 * leaves, -1)
    winner[leaves : leaves + n] = np.arange(n)
    for a in range(n):
        gain[a], partner[a] = _search(tree, sets, a, k, measure, scratch_low, scratch_high, nearby)
    for node in range(leaves - 1, 0, -1):
        _match(winner, node, gain, partner)
    living = n
    while True:
        a = winner[1]
        b = partner[a]
        if b < 0 or gain[a] <= 0.0:
            break
        if sets.alive[b] and age[b] == seen[a]:
            keep, drop = min(a, b), max(a, b)
            sets.size[keep] = union_size(sets, a, b, measure, scratch_low, scratch_high)
            sets.low[keep], sets.high[keep] = scratch_low, scratch_high
            sets.count[keep] += sets.count[drop]
            sets.alive[drop] = False
            owner[drop] = keep
            age[keep] += 1
            gain[drop], partner[drop] = -np.inf, -1
            _replay(winner, drop, gain, partner)
            living -= 1
            if nearby and living * 2 < tree.order.size:
                tree = build(sets)
            elif nearby:
                update(tree, sets, keep)
                update(tree, sets, drop)
            a = keep
        gain[a], partner[a] = _search(tree, sets, a, k, measure, scratch_low, scratch_high, nearby)
        if partner[a] >= 0:
            seen[a] = age[partner[a]]
        _replay(winner, a, gain, partner)
    for i in range(n):  # an owner is always a smaller slot, so its own owner is final already
        owner[i] = owner[owner[i]]
    return owner
