"""The optimal curve three times: every placement tried, the paper's recurrence as printed, and the same with counts
bounded by the subtrees' hosts."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import narrowcast as nc
from naive.filter_cost import traffic


def placements(tree: nc.Tree):
    hosts = [v for v in range(tree.n) if tree.can_filter[v]]
    for size in range(len(hosts) + 1):
        yield from (set(P) for P in combinations(hosts, size))


def exhaustive_curve(tree: nc.Tree, f, k: int) -> list[float]:
    best = [float("inf")] * (k + 1)
    for P in placements(tree):
        value = traffic(tree, f, P)
        for j in range(len(P), k + 1):
            best[j] = min(best[j], value)
    return best


def printed_curve(tree: nc.Tree, f, k: int) -> list[float]:
    """T(v, i, p) as the paper prints it, for every ancestor p and i = 0..k, one child after the other."""
    offsets, below = tree.children
    T: dict[tuple[int, int, int], float] = {}

    def best_split(v: int, p: int | None) -> list[float]:
        best = [0.0] * (k + 1)
        for ch in below[offsets[v] : offsets[v + 1]].tolist():
            q = ch if p is None else p
            link = f[q] * tree.link_cost[ch]
            best = [link + min(best[i - j] + T[ch, j, q] for j in range(i + 1)) for i in range(k + 1)]
        return best

    for v in reversed(tree.order.tolist()):
        filtered = best_split(v, None)
        p = v
        while p >= 0:
            plain = best_split(v, p)
            for i in range(k + 1):
                T[v, i, p] = min(plain[i], filtered[i - 1]) if i > 0 and tree.can_filter[v] else plain[i]
            p = int(tree.parents[p])
    return [T[tree.root, i, tree.root] for i in range(k + 1)]


def recurrence_curve(tree: nc.Tree, f, k: int) -> list[float]:
    """The same with no more filters than a subtree has hosts: O(k n²), still in plain Python."""
    offsets, below = tree.children
    parents, cost, can = tree.parents.tolist(), tree.link_cost.tolist(), tree.can_filter.tolist()
    f = [float(x) for x in f]
    T: dict[tuple[int, int], list[float]] = {}
    hosts = [0] * tree.n

    def combined(v: int, p: int | None) -> list[float]:
        """The best split over v's children; p is None under a filter at v."""
        row = [0.0]
        for c in below[offsets[v] : offsets[v + 1]].tolist():
            q = c if p is None else p
            table, link = T[c, q], f[q] * cost[c]
            new = [float("inf")] * min(k + 1, len(row) + len(table) - 1)
            for a, x in enumerate(row):
                for b, y in enumerate(table):
                    if a + b > k:
                        break
                    value = x + y + link
                    if value < new[a + b]:
                        new[a + b] = value
            row = new
        return row

    for v in reversed(tree.order.tolist()):
        hosts[v] += can[v]
        ancestors, p = [], v
        while p >= 0:
            ancestors.append(p)
            p = parents[p]
        with_filter = combined(v, None) if can[v] else []
        for p in ancestors:
            row = combined(v, p)
            if can[v]:
                row = [*row, row[-1]][: k + 1]
                for i in range(1, len(row)):
                    row[i] = min(row[i], with_filter[min(i - 1, len(with_filter) - 1)])
            T[v, p] = row
        for c in below[offsets[v] : offsets[v + 1]].tolist():
            for p in [c, *ancestors]:
                del T[c, p]
    row = T[tree.root, tree.root]
    return row + [row[-1]] * (k + 1 - len(row))


def recurrence_delay(tree: nc.Tree, f, F: float, c: float) -> float:
    """D(v, p) as the paper prints it, for any number of children."""
    offsets, below = tree.children

    def children(v: int) -> list[int]:
        return below[offsets[v] : offsets[v + 1]].tolist()

    @cache
    def s(v: int) -> float:
        return tree.users[v] + sum(s(ch) for ch in children(v))

    @cache
    def D(v: int, p: int) -> float:  # noqa: N802
        without = sum(c * f[p] * s(ch) + D(ch, p) for ch in children(v))
        if not tree.can_filter[v]:
            return without
        return min(without, s(v) * F + sum(c * f[ch] * s(ch) + D(ch, ch) for ch in children(v)))

    return D(tree.root, tree.root)
