"""The optimal traffic for every number of filters up to k, and a placement that reaches it.

The paper's T(v, i, p), over the pairs (v, ancestor of v) that exist, for trees of any arity. Only
f(p) matters, so ancestors with equal flow, and those whose parent cannot host a filter, share one
state; the states of a child are those of its parent plus at most one. Tables sit on one stack in
the walk order of `tree_walk` and are gone as soon as the parent has taken them up; what stays is
one threshold per (vertex, count) and the splits where a vertex has two or more subtrees with
hosts. `layout` measures time and memory beforehand and fixes every offset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.plans.filters.kernels.core import Core

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


# What a row of a table costs beside its cells, in cells.
ROW = 8


class Layout(NamedTuple):
    """Where everything goes. Counts are in cells: 8 bytes on the stack, 4 for splits and thresholds."""

    states: Ints  # how many different flows can arrive at v
    owner: Ints  # the vertex whose flow is the last (least) of them
    below: Ints  # the most filters that v's children can share
    split_at: Ints  # −1 for the child taken up first
    split_width: Ints
    threshold_at: Ints
    most_states: int
    stack_cells: int
    split_cells: int
    threshold_cells: int
    work: float  # table updates


@jit
def layout(core: Core, k: int) -> Layout:
    """Run through the walk without the numbers. O(n)."""
    parent, flow, can = core.parent, core.flow, core.can
    n = parent.size
    states = np.ones(n, np.int64)
    owner = np.zeros(n, np.int64)
    most = 1
    for v in range(1, n):
        u = parent[v]
        new = can[u] and flow[v] < flow[owner[u]]
        owner[v] = v if new else owner[u]
        states[v] = states[u] + (1 if new else 0)
        most = max(most, states[v])
    below = np.full(n, -1, np.int64)
    base = np.zeros(n, np.int64)
    split_at = np.full(n, -1, np.int64)
    split_width = np.zeros(n, np.int64)
    threshold_at = np.zeros(n, np.int64)
    top, peak, n_split, n_threshold, work = 0, 0, 0, 0, 0.0
    for v in range(n - 1, -1, -1):
        if below[v] < 0:
            below[v], base[v] = 0, top
        width = min(k, below[v] + (1 if can[v] else 0)) + 1
        threshold_at[v] = n_threshold
        n_threshold += width
        top = base[v] + (states[v] + 1) * width
        peak = max(peak, top)
        work += states[v] * (width + ROW)
        if v == 0:
            break
        u = parent[v]
        rows = states[u] + 1
        if below[u] < 0:
            below[u], base[u] = width - 1, base[v]
        else:
            work += rows * (float(width) * (below[u] + 1) + ROW)
            below[u] = min(k, below[u] + width - 1)
            split_at[v], split_width[v] = n_split, below[u] + 1
            n_split += rows * (below[u] + 1)
            peak = max(peak, top + rows * (below[u] + 1))
        top = base[u] + rows * (below[u] + 1)
    return Layout(states, owner, below, split_at, split_width, threshold_at, most, peak, n_split, n_threshold, work)


@jit
def _arriving(core: Core, owner: Ints, v: int, last: int, out: Floats) -> None:
    """The flows that can arrive at v, falling: state 0 is the root's."""
    o = owner[v]
    for s in range(last, -1, -1):
        out[s] = core.flow[o]
        if s > 0:
            o = owner[core.parent[o]]


# Tables are rows of the stack, found by unsigned offsets: slices cost more than short rows, and a
# signed index is checked for counting from the end, which keeps the compiler from wide registers.
U = np.uint64


@jit
def _close(
    stack: Floats, at: int, m: int, old: int, width: int, bare: Floats, filtered: Floats, row: Floats,
    threshold: NDArray[np.int32], t: int,
) -> None:  # fmt: skip
    """T[s, i] = least of given[s, i] + bare[s] and filtered[i], in place.

    The last row comes first, since the new rows may be one cell longer. The threshold of i becomes
    the number of states for which the filter is better: those with the most flow.
    """
    limits = U(t)
    for r in range(m):
        s = m - 1 - r
        given, table, more = U(at + s * old), U(at + s * width), bare[s]
        for i in range(U(old)):
            row[i] = stack[given + U(i)] + more
        if width > old:
            row[old] = row[old - 1]
        for i in range(U(width)):
            better = filtered[i] < row[i]
            stack[table + U(i)] = filtered[i] if better else row[i]
            threshold[limits + U(i)] = max(threshold[limits + U(i)], s + 1 if better else 0)


@jit
def _add_link(stack: Floats, at: int, rows: int, width: int, weight: float, arriving: Floats) -> None:
    """The link into v carries the flow that arrives, in every state."""
    for s in range(rows):
        table, more = U(at + s * width), weight * arriving[s]
        for i in range(U(width)):
            stack[table + U(i)] += more


@jit
def _is_convex(stack: Floats, a: int, n: int) -> bool:
    """Whether each filter saves no more than the one before it. Rows of infinities are not."""
    drop = np.inf
    if stack[a] == np.inf:
        return False
    for i in range(U(a), U(a + n - 1)):
        now = stack[i] - stack[U(i) + U(1)]
        if now > drop:
            return False
        drop = now
    return True


@jit
def _merge(
    stack: Floats, a: int, n_a: int, b: int, n_b: int, out: int, n: int, split: NDArray[np.int32], to: int
) -> None:
    """The convolution of two convex rows: the next filter goes where it saves more. O(n)."""
    i, j = U(a), U(b)
    last_a, last_b = U(a + n_a - 1), U(b + n_b - 1)
    for t in range(U(n)):
        stack[U(out) + U(t)] = stack[i] + stack[j]
        split[U(to) + U(t)] = j - U(b)
        more_a = stack[i] - stack[i + U(1)] if i < last_a else -1.0
        more_b = stack[j] - stack[j + U(1)] if j < last_b else -1.0
        if more_a >= more_b:
            i += U(1)
        else:
            j += U(1)


@jit
def _convolve(
    stack: Floats, a: int, n_a: int, b: int, n_b: int, out: int, n: int, rows: int,
    split: NDArray[np.int32], to: int,
) -> None:  # fmt: skip
    """In each row out[i] = min over j of a[i − j] + b[j], and the j.

    Nearly every row is convex and merged; the others are tried out, by selects instead of branches.
    """
    for s in range(rows):
        given, other, least, at = U(a + s * n_a), U(b + s * n_b), U(out + s * n), U(to + s * n)
        if n_a > 2 and n_b > 2 and _is_convex(stack, a + s * n_a, n_a) and _is_convex(stack, b + s * n_b, n_b):
            _merge(stack, a + s * n_a, n_a, b + s * n_b, n_b, out + s * n, n, split, to + s * n)
            continue
        for i in range(U(n)):
            stack[least + U(i)] = np.inf
            split[at + U(i)] = 0
        for j in range(min(n_b, n)):
            y = stack[other + U(j)]
            for i in range(U(min(n_a, n - j))):
                x, t = stack[given + U(i)] + y, U(i) + U(j)
                less = x < stack[least + t]
                stack[least + t] = x if less else stack[least + t]
                split[at + t] = j if less else split[at + t]


@jit
def curve(core: Core, k: int, plan: Layout) -> tuple[Floats, NDArray[np.int32], NDArray[np.int32]]:
    """(T(w, 0..), thresholds, splits). O(k · Σ states) table updates."""
    parent, can = core.parent, core.can
    n = parent.size
    stack = np.empty(plan.stack_cells)
    split = np.empty(plan.split_cells, np.int32)
    threshold = np.zeros(plan.threshold_cells, np.int32)
    arriving, bare = np.empty(plan.most_states), np.empty(plan.most_states)
    filtered, row = np.empty(k + 2), np.empty(k + 2)
    taken = np.full(n, -1, np.int64)  # most filters in the subtrees taken up so far
    base = np.zeros(n, np.int64)
    top, width = 0, 1
    for v in range(n - 1, -1, -1):
        m = plan.states[v]
        _arriving(core, plan.owner, v, m - 1, arriving)
        # Close v: what its subtrees gave, plus the links into subtrees without hosts.
        if taken[v] < 0:
            taken[v], base[v] = 0, top
            for i in range(m + 1):
                stack[top + i] = 0.0
        at, old = base[v], taken[v] + 1
        filtered[0] = np.inf
        for i in range(old):
            filtered[i + 1] = stack[at + m * old + i] + core.bare_flow[v] if can[v] else np.inf
        for s in range(m):
            bare[s] = core.bare[v] * arriving[s]
        width = min(k, taken[v] + (1 if can[v] else 0)) + 1
        _close(stack, at, m, old, width, bare, filtered, row, threshold, plan.threshold_at[v])
        if v == 0:
            break
        # Hand it to the parent u: a row per state of u, and one for a filter at u.
        u = parent[v]
        rows = plan.states[u] + 1
        for i in range(width):
            link = core.weight[v] * core.flow[v]
            row[i] = stack[at + (m - 1) * width + i] + link if can[u] else np.inf
        _add_link(stack, at, rows - 1, width, core.weight[v], arriving)
        for i in range(width):
            stack[at + (rows - 1) * width + i] = row[i]
        top = at + rows * width
        if taken[u] < 0:
            taken[u], base[u] = width - 1, at
            continue
        wide = plan.split_width[v]
        _convolve(stack, base[u], taken[u] + 1, at, width, top, wide, rows, split, plan.split_at[v])
        for i in range(rows * wide):
            stack[base[u] + i] = stack[top + i]
        taken[u] = wide - 1
        top = base[u] + rows * wide
    values = np.empty(width)
    for i in range(width):
        values[i] = stack[base[0] + i]
    return values, threshold, split


@jit
def recover(core: Core, plan: Layout, threshold: NDArray[np.int32], split: NDArray[np.int32], i: int) -> Bools:
    """The placement behind T(w, i, w), from the root down: splits are undone in reverse order."""
    n = core.parent.size
    chosen = np.zeros(n, np.bool_)
    state = np.zeros(n, np.int64)
    left = np.zeros(n, np.int64)  # filters still to hand to v's children
    for v in range(n):
        if v > 0:
            u = core.parent[v]
            state[v] = plan.states[v] - 1 if chosen[u] else state[u]
            i = left[u]
            if plan.split_at[v] >= 0:
                row = plan.states[u] if chosen[u] else state[u]
                i = split[plan.split_at[v] + row * plan.split_width[v] + left[u]]
            left[u] -= i
        chosen[v] = core.can[v] and i > 0 and state[v] < threshold[plan.threshold_at[v] + i]
        left[v] = min(i - 1 if chosen[v] else i, plan.below[v])
    return chosen
