"""Directed search: the best of all merges and single-query splits, until none gains (Crespo et al., §6.3).

Up to the constant −K_U·Σ size(q), a plan costs Σ over its sets of w(set) = K_M + (K_T + K_U·queries)·size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.queries.kernels.box_sizes import AREA, box_size, box_sizes
from narrowcast.plans.queries.kernels.box_tree import SetBoxes, union_sizes


class _Board(NamedTuple):
    """One start's state: the sets, where each query is, and what every move would gain."""

    sets: Any
    worth: Any  # w of each set
    home: Any  # the set of each query
    table: Any  # gain of merging each two sets
    row_best: Any  # per set, its best partner
    sizes: Any  # scratch: the union of one set with each
    split: Any  # per query, the gain of taking it out of its set


@jit
def _w(k: Any, size: float, count: int) -> Any:
    return k[0] + (k[1] + k[2] * count) * size


@jit
def _reset_set(board: Any, low: Any, high: Any, k: Any, measure: Any, a: int) -> None:
    """Box, size and worth of set a from its queries."""
    sets, home = board.sets, board.home
    sets.low[a], sets.high[a], sets.count[a] = np.inf, -np.inf, 0
    for q in range(home.size):
        if home[q] == a:
            sets.count[a] += 1
            for j in range(low.shape[1]):
                sets.low[a, j] = min(sets.low[a, j], low[q, j])
                sets.high[a, j] = max(sets.high[a, j], high[q, j])
    sets.alive[a] = sets.count[a] > 0
    if sets.alive[a]:
        sets.size[a] = box_size(sets.low[a], sets.high[a], measure)
        board.worth[a] = _w(k, sets.size[a], sets.count[a])


@jit
def _split_gains(board: Any, low: Any, high: Any, k: Any, measure: Any, a: int, alone: Any) -> None:
    """What taking each query out of set a gains: the box of the rest from the two outermost bounds per side."""
    d = low.shape[1]
    outer = np.empty((d, 4))
    outer[:, :2], outer[:, 2:] = np.inf, -np.inf  # lowest, second lowest, highest, second highest
    home = board.home
    for q in range(home.size):
        if home[q] == a:
            for j in range(d):
                if low[q, j] < outer[j, 0]:
                    outer[j, 1], outer[j, 0] = outer[j, 0], low[q, j]
                elif low[q, j] < outer[j, 1]:
                    outer[j, 1] = low[q, j]
                if high[q, j] > outer[j, 2]:
                    outer[j, 3], outer[j, 2] = outer[j, 2], high[q, j]
                elif high[q, j] > outer[j, 3]:
                    outer[j, 3] = high[q, j]
    rest_low, rest_high = np.empty(d), np.empty(d)
    split, worth, count = board.split, board.worth[a], board.sets.count[a]
    for q in range(home.size):
        if home[q] != a:
            continue
        split[q] = -np.inf
        if count > 1:
            rest = 1.0
            for j in range(d):
                rest_low[j] = outer[j, 1] if low[q, j] == outer[j, 0] else outer[j, 0]
                rest_high[j] = outer[j, 3] if high[q, j] == outer[j, 2] else outer[j, 2]
                rest *= rest_high[j] - rest_low[j]
            if measure.kind != AREA:
                rest = box_size(rest_low, rest_high, measure)
            split[q] = worth - _w(k, rest, count - 1) - _w(k, alone[q], 1)


@jit
def _best_partner(gains: Any, alive: Any, a: int) -> int:
    """Where merging set a gains most, from its row of the table; -1 if nothing else lives."""
    best, partner = -np.inf, -1
    for b in range(gains.size):
        if b != a and alive[b] and gains[b] > best:
            best, partner = gains[b], b
    return partner


@jit
def _row(board: Any, k: Any, measure: Any, a: int, low: Any, high: Any) -> None:
    """What merging set a with every other living set gains, into the table."""
    alive, count, worth, table, sizes = board.sets.alive, board.sets.count, board.worth, board.table, board.sizes
    km, kt, ku = k[0], k[1], k[2]
    if alive[a]:
        union_sizes(board.sets, a, measure, low, high, sizes)
    for b in range(alive.size):
        if b != a and alive[b]:
            together = km + (kt + ku * (count[a] + count[b])) * sizes[b]
            table[a, b] = table[b, a] = worth[a] + worth[b] - together if alive[a] else -np.inf


@jit
def _renew(board: Any, k: Any, measure: Any, a: int, low: Any, high: Any) -> None:
    """Set a has changed: its row of the table, and the best partner of every other row."""
    alive, table, row_best = board.sets.alive, board.table, board.row_best
    _row(board, k, measure, a, low, high)
    for b in range(alive.size):
        if b == a or not alive[b]:
            continue
        if row_best[b] == a:
            row_best[b] = _best_partner(table[b], alive, b)
        elif alive[a] and (row_best[b] < 0 or table[b, a] > table[b, row_best[b]]):
            row_best[b] = a
    if alive[a]:
        row_best[a] = _best_partner(table[a], alive, a)


@jit
def _best_merge(board: Any) -> Any:
    best, first = 0.0, -1
    for a in range(board.home.size):
        b = board.row_best[a]
        if board.sets.alive[a] and b >= 0 and board.table[a, b] > best:
            best, first = board.table[a, b], a
    return best, first


@jit
def _best_split(board: Any) -> Any:
    best, query = 0.0, -1
    for q in range(board.home.size):
        if board.split[q] > best:
            best, query = board.split[q], q
    return best, query


@jit
def directed(low: Any, high: Any, k: Any, measure: Any, start: Any) -> Any:
    """The set of each query after descending from `start` (a set number below n for each query), and its cost.

    A move must gain more than rounding can: merges and splits undo each other.
    """
    n, d = low.shape
    alone = box_sizes(low, high, measure)
    sets = SetBoxes(np.empty((n, d)), np.empty((n, d)), np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.bool_))
    table, row_best = np.full((n, n), -np.inf), np.full(n, -1)
    board = _Board(sets, np.zeros(n), start.copy(), table, row_best, np.zeros(n), np.full(n, -np.inf))
    scratch_low, scratch_high = np.empty(d), np.empty(d)
    total = 0.0
    for a in range(n):
        _reset_set(board, low, high, k, measure, a)
        if sets.alive[a]:
            total += board.worth[a]
            _split_gains(board, low, high, k, measure, a, alone)
    for a in range(n):
        if sets.alive[a]:
            _row(board, k, measure, a, scratch_low, scratch_high)
    for a in range(n):
        board.row_best[a] = _best_partner(board.table[a], sets.alive, a)
    rounding = 1e-12 * total
    while True:
        merge_gain, a = _best_merge(board)
        split_gain, q = _best_split(board)
        if max(merge_gain, split_gain) <= rounding:
            cost = -k[2] * alone.sum()
            for at in range(n):
                cost += board.worth[at] if sets.alive[at] else 0.0
            return board.home, cost
        if merge_gain >= split_gain:
            b = board.row_best[a]
            for i in range(n):
                if board.home[i] == b:
                    board.home[i] = a
        else:
            a, b = board.home[q], 0
            while sets.alive[b]:
                b += 1
            board.home[q] = b
        for changed in (a, b):
            _reset_set(board, low, high, k, measure, changed)
            if sets.alive[changed]:
                _split_gains(board, low, high, k, measure, changed, alone)
        _renew(board, k, measure, a, scratch_low, scratch_high)
        _renew(board, k, measure, b, scratch_low, scratch_high)
