"""How fast channels are planned: K-means against plain NumPy, GF against scikit-learn, growth with size.

    python benchmarks/speed/channels.py [--scale]

Ratios in one run, least CPU seconds of a few. `--scale` plans 10⁵, 10⁶ and 10⁷ interest pairs with 200
groups × 2,000 sessions (minutes, up to 8 GB). Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import narrowcast as nc
from narrowcast.plans.channels.kernels.kmeans import kmeans
from narrowcast.plans.channels.points import plain

console = Console(width=110)


def seconds(work: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    best, result = np.inf, None
    for _ in range(runs):
        begin = time.process_time()
        result = work()
        best = min(best, time.process_time() - begin)
    return best, result


def numpy_visits(W: Any, rates: Any, cluster: Any, clusters: int, visits: Any) -> None:
    """The paper's step for some flows: centroids as rows of bits, distances by NumPy, the flow taken out."""
    C = np.array([W[cluster == c].any(axis=0) for c in range(clusters)])
    theta = np.bincount(cluster, rates, minlength=clusters)
    for k in visits:
        old = cluster[k]
        cluster[k] = -1
        C[old] = W[cluster == old].any(axis=0)
        theta[old] -= rates[k]
        both = (C & W[k]).sum(axis=1)
        d = rates[k] * (C.sum(axis=1) - both) + theta * (W[k].sum() - both)
        new = old if d[old] <= d.min() else int(np.argmin(d))
        cluster[k] = new
        C[new] |= W[k]
        theta[new] += rates[k]


def one_level() -> bool:
    """A visit of one flow to all clusters: the same work in both."""
    points, _ = plain(nc.workloads.market(seed=0))
    clusters, rng = 50, np.random.default_rng(0)
    start, order = rng.integers(0, clusters, points.n), rng.permutation(points.n)
    W = np.zeros((points.n, points.n_users), np.bool_)
    W[points.point_of_pair, points.users] = True
    few = order[:300]
    slow, _ = seconds(lambda: numpy_visits(W, points.rates, start.copy(), clusters, few))
    count = np.zeros((points.n_users, clusters), np.uint16)

    def run() -> int:
        return kmeans(points.offsets, points.users, points.rates, order, start.copy(), np.zeros_like(count), 5)

    run()
    fast, passes = seconds(run)
    ratio = (slow / few.size) / (fast / (passes * points.n))
    console.print(f"K-means per visit: NumPy {1e6 * slow / few.size:.0f} µs, "
                  f"here {1e6 * fast / (passes * points.n):.2f} µs, {ratio:.0f}× (target 50×)")  # fmt: skip
    return ratio >= 50


def against_scikit_learn() -> bool:
    from scipy.sparse import csr_matrix
    from sklearn.cluster import KMeans

    interest = nc.workloads.market(seed=0)
    W = csr_matrix(
        (np.ones(interest.n_pairs), interest.users, interest.offsets), shape=(interest.n_flows, interest.n_users)
    )[np.flatnonzero(interest.audience_sizes > 0)]
    nc.channels.plan(interest, 50, 300, method="gf")
    ours, plan = seconds(lambda: nc.channels.plan(interest, 50, 300, method="gf"))
    theirs, fit = seconds(lambda: KMeans(50, n_init=1, random_state=0).fit(W), runs=2)
    labels = np.full(interest.n_flows, -1)
    labels[interest.audience_sizes > 0] = fit.labels_
    peer = nc.channels.cost(interest, labels, np.arange(50))
    console.print(f"GF 50 × 300 in {ours:.2f} s at {100 * plan.cost.relative:.1f} %; "
                  f"one scikit-learn fit of 50 clusters {theirs:.2f} s at {100 * peer.relative:.1f} %")  # fmt: skip
    return ours < theirs and plan.cost.relative < 0.5 * peer.relative


def growth(methods: tuple[str, ...]) -> bool:
    table = Table("flows", "users", "pairs", "method", "wall s", "CPU s", "relative cost %", "peak GB",
                  title="200 groups × 2,000 sessions")  # fmt: skip
    good = True
    for method in methods:
        before = None
        for flows in (10_000, 100_000, 1_000_000):
            interest = nc.workloads.market(symbols=flows, users=flows // 10, share=298 / flows, seed=0)
            wall, cpu = time.perf_counter(), time.process_time()
            r = nc.channels.plan(interest, 200, 2000, method=method)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            table.add_row(f"{flows:,}", f"{interest.n_users:,}", f"{interest.n_pairs:,}", method, f"{wall:.1f}",
                          f"{cpu:.1f}", f"{100 * r.cost.relative:.2f}", f"{peak:.2f}")  # fmt: skip
            console.print(f"{method}, {flows:,} flows: {cpu:.1f} s of CPU, peak {peak:.2f} GB")
            if before is not None:
                good &= cpu / before[1] <= 1.2 * interest.n_pairs / before[0]
            before = interest.n_pairs, cpu
            good &= peak < 8
    console.print(table)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", action="store_true")
    options = parser.parse_args()
    good = one_level()
    good &= against_scikit_learn()
    if options.scale:
        good &= growth(("gf", "search"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
