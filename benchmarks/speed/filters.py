"""Filters: the exact curve against the paper's recurrence in plain Python, and how everything scales.

    python benchmarks/speed/filters.py           ratios and moderate sizes
    python benchmarks/speed/filters.py --quick   without the slow Python peers
    python benchmarks/speed/filters.py --large   the price search on five million vertices

Times are the best of several runs after a first one that compiles; ratios are taken in this run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import narrowcast as nc
from naive.filter_optimum import printed_curve, recurrence_curve
from naive.filter_problems import complete_binary, random_parents, recursive_tree, some_flow

R = TypeVar("R")


def timed(run: Callable[[], R], times: int = 1) -> tuple[float, R]:
    """The least time of some runs, and the last result."""
    least = float("inf")
    for _ in range(times):
        start = perf_counter()
        result = run()
        least = min(least, perf_counter() - start)
    return least, result


def against_python() -> None:
    print("exact curve, k=50, against the paper's recurrence in Python (same answers)")
    rng = np.random.default_rng(0)
    trees = {
        "random, 2,000": recursive_tree(2_000, 0),
        "complete binary, 2,047": complete_binary(11),
        "deep random, 2,000": nc.Tree(random_parents(rng, 2_000, 40)),
    }
    for name, tree in trees.items():
        f = some_flow(tree, 0)
        fast, r = timed(lambda tree=tree, f=f: nc.filters.place(tree, f, 50), 20)
        assert r.method == "exact"
        print(f"  {name:23} depth {int(tree.depth.max()):3}  {1000 * fast:6.2f} ms", end="")
        for word, python in (("as printed", printed_curve), ("counts bounded", recurrence_curve)):
            slow, curve = timed(lambda tree=tree, f=f, python=python: python(tree, f, 50))
            np.testing.assert_allclose(r.curve, curve)
            print(f"   {word} {slow:6.2f} s = {slow / fast:6.0f}×", end="", flush=True)
        print()


def exact_at_scale() -> None:
    print("exact, k=100")
    for name, tree in {"random": recursive_tree(100_000, 0), "complete binary": complete_binary(17)}.items():
        f = some_flow(tree, 0)
        seconds, r = timed(lambda tree=tree, f=f: nc.filters.place(tree, f, 100), 3)
        print(f"  {name:16} {tree.n:8,} vertices  {seconds:6.2f} s  {r.method}")


def long_path() -> None:
    n = 20_000
    tree = nc.Tree(np.arange(-1, n - 1))
    f = np.sort(np.random.default_rng(0).integers(1, 10**6, n))[::-1]
    seconds, r = timed(lambda: nc.filters.place(tree, f, 100), 3)
    print(f"path of {n:,}, k=100: {seconds:.2f} s, {r.method}, gap {r.gap:.1e}")


def heuristic() -> None:
    print("heuristic from scratch, one move")
    for n in (10**3, 10**4, 10**5, 10**6):
        tree = recursive_tree(n, 0)
        f = some_flow(tree, 0)
        P = np.flatnonzero(tree.can_filter)[:: max(1, n // 60)]
        seconds, _ = timed(lambda tree=tree, f=f, P=P: nc.filters.improve(tree, f, P), 7)
        print(f"  {n:9,} vertices  {1000 * seconds:9.2f} ms  {1e9 * seconds / n:6.0f} ns per vertex")


def incremental() -> None:
    print("watch: a batch of 1,000 changed subscriptions, then one move")
    for n in (10**3, 10**4, 10**5, 10**6):
        tree, rng = recursive_tree(n, 0), np.random.default_rng(0)
        leaf = np.repeat(tree.leaves, 3)
        item = rng.integers(0, 500, leaf.size)
        start, watch = timed(
            lambda tree=tree, leaf=leaf, item=item: nc.filters.TreeWatch(tree, leaf, item, n_items=500)
        )
        some = rng.choice(leaf.size, min(1000, leaf.size), replace=False)

        def batch(watch=watch, leaf=leaf, item=item, some=some) -> int:
            return watch.change((leaf[some], (item[some] + 1) % 500), (leaf[some], item[some]))

        seconds, changed = timed(batch)
        watch.put(np.flatnonzero(tree.can_filter)[:: n // 60])
        moving, _ = timed(watch.improve, 7)
        print(
            f"  {n:9,} vertices  start {start:5.2f} s, batch {1000 * seconds:6.2f} ms (f changed {changed:,} times), "
            f"one move {1000 * moving:6.2f} ms = {1e9 * moving / n:.0f} ns per vertex"
        )


def price_at_scale(n: int) -> None:
    print(f"price search, k=100, random tree of {n:,} vertices")
    made, tree = timed(lambda: recursive_tree(n, 0))
    summed, f = timed(lambda: some_flow(tree, 0, items=2000))
    print(f"  tree {made:.1f} s, flow {summed:.1f} s")
    for k in (100, 5_000):
        seconds, r = timed(lambda k=k: nc.filters.place(tree, f, k, method="price"))
        print(f"  k={k:5}  {seconds:6.1f} s  gap {r.gap:.1e}  {r.filters.size} filters")
    seconds, d = timed(lambda: nc.filters.place_for_delay(tree, f, filter_delay=100, link_delay=1))
    print(f"  least delay  {seconds:6.1f} s  {d.filters.size} filters")


def main() -> None:
    for tree in (recursive_tree(300, 0), complete_binary(4)):  # compile
        f = some_flow(tree, 0)
        for method in ("exact", "price"):
            nc.filters.place(tree, f, 5, method=method)
        nc.filters.improve(tree, f, np.flatnonzero(tree.can_filter)[:3])
        nc.filters.place_for_delay(tree, f, filter_delay=1, link_delay=1)
        nc.filters.TreeWatch(tree, tree.leaves, np.zeros(tree.leaves.size, np.int64)).change(
            unsubscribe=(tree.leaves[:1], [0])
        )
    if "--quick" not in sys.argv:
        against_python()
    exact_at_scale()
    long_path()
    heuristic()
    incremental()
    price_at_scale(5_000_000 if "--large" in sys.argv else 300_000)


if __name__ == "__main__":
    main()
