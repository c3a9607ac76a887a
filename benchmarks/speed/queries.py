"""How fast queries are merged: near candidates against all pairs, subsets against all partitions, in one run.

    python benchmarks/speed/queries.py [--quick]

Peers must find plans of the same cost. Times are the least CPU seconds of a few runs. Exit code 1 if a
target is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import narrowcast as nc
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.problem import BoxProblem, sets_of_labels
from narrowcast.plans.queries.procedures import Rectangle
from narrowcast.plans.queries.sizes import Area

console = Console(width=110)


def local(n: int, seed: int = 0) -> Any:
    """The study's density (a hundred queries in 400×400) and sides, in a space that grows with n."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 40 * n**0.5, (n, 2))
    return np.stack([low, low + rng.uniform(20, 40, (n, 2))], axis=-1)


def seconds(work: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    best, result = np.inf, None
    for _ in range(runs):
        begin = time.process_time()
        result = work()
        best = min(best, time.process_time() - begin)
    return best, result


def problem(boxes: Any) -> BoxProblem:
    return BoxProblem(boxes, nc.queries.Constants(), Rectangle(), Area())


def every_partition(boxes: Any) -> float:
    """The peer of subset programming: all partitions by restricted growth strings, set costs remembered."""
    given = problem(boxes)
    cost = lru_cache(None)(given.cost)
    best = np.inf
    labels = [0] * given.n
    tops = [0] * given.n
    while True:
        best = min(best, sum(cost(members) for members in sets_of_labels(labels)))
        i = given.n - 1
        while i > 0 and labels[i] > tops[i - 1]:
            i -= 1
        if i == 0:
            return float(best)
        labels[i] += 1
        tops[i] = max(tops[i - 1], labels[i])
        for j in range(i + 1, given.n):
            labels[j], tops[j] = 0, tops[i]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="small sizes")
    quick = parser.parse_args().quick
    table = Table("what", "ours", "peer", "ratio", "target", title="Query merging, CPU seconds")
    missed = 0

    def row(what: str, ours: float, peer: float | None, ratio: float | None, target: str, kept: bool) -> None:
        nonlocal missed
        missed += not kept
        cells = (f"{ours:.3f}", "" if peer is None else f"{peer:.3f}", "" if ratio is None else f"{ratio:.2f}")
        table.add_row(what, *cells, target if kept else f"[red]{target}[/red]")

    for method in nc.queries.METHODS:  # compile
        nc.queries.merge(local(4), method)

    n = 500 if quick else 2_000
    near, plan = seconds(lambda: Pair("near")(problem(local(n))))
    everyone, other = seconds(lambda: Pair("all")(problem(local(n))), runs=1)
    row(f"pair, {n:,}: near / all pairs", near, everyone, everyone / near, "same plan", plan == other)

    small, large = (1_000, 8_000) if quick else (10_000, 100_000)
    first, _ = seconds(lambda: nc.queries.merge(local(small)))
    last, plan = seconds(lambda: nc.queries.merge(local(large)), runs=1 if not quick else 3)
    growth = (last / first) / (large / small)
    row(f"pair, {large:,} / {small:,} per query", last, first, growth, "< 2", growth < 2)

    clustered, plan = seconds(
        lambda: nc.queries.merge(local(n), "cluster", inner="directed", metric="gain", starts=5), runs=1
    )
    whole, other = seconds(lambda: nc.queries.merge(local(n), "directed", starts=5), runs=1)
    row(f"directed, {n:,}: in clusters / whole", clustered, whole, whole / clustered, "> 1, dearer < 1 %",
        clustered < whole and plan.cost < 1.01 * other.cost)  # fmt: skip

    m = 8 if quick else 10
    subsets, plan = seconds(lambda: nc.queries.merge(local(m), "partition"))
    brute, least = seconds(lambda: every_partition(local(m)), runs=1)
    row(
        f"partition, {m}: subsets / partitions",
        subsets,
        brute,
        brute / subsets,
        "same cost",
        abs(plan.cost - least) < 1e-9,
    )
    m = 18 if quick else 22
    subsets, _ = seconds(lambda: nc.queries.merge(local(m), "partition"), runs=1)
    row(f"partition, {m} queries", subsets, None, None, "< 60 s", subsets < 60)

    boxes = local(n)
    live = nc.queries.LiveQueries(boxes[:-20])
    adding, _ = seconds(lambda: [live.add(box) for box in boxes[-20:]], runs=1)
    again, _ = seconds(lambda: nc.queries.merge(boxes))
    row(f"one more of {n:,}: live / start over", adding / 20, again, again * 20 / adding, "> 1", adding / 20 < again)
    console.print(table)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
