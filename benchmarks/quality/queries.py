"""The study of query merging (Crespo et al., §7.3) on fewer samples: how good the heuristics are.

    python benchmarks/quality/queries.py [--samples N]

`distance` is 100·(heuristic − optimal)/(initial − optimal). Base values of figure 8; the optimum is
the best partition. Exit code 1 if a claim of the study does not hold.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import narrowcast as nc

console = Console(width=110)
SAME = 1 + 1e-9


def distance(plan: Any, optimum: Any) -> float:
    room = optimum.baseline - optimum.cost
    return 100 * (plan.cost - optimum.cost) / room if room > 0 else 0.0


def figures_11_to_13(samples: int) -> bool:
    table = Table("queries", "pair optimal %", "directed optimal %", "pair distance", "directed distance",
                  "distance where pair missed", title="Against the best partition (figures 11–13)")  # fmt: skip
    good = True
    for n in (3, 5, 7, 9, 12):
        far: dict[str, list[float]] = {"pair": [], "directed": []}
        for seed in range(samples):
            boxes = nc.workloads.rectangles(n=n, seed=seed)
            optimum = nc.queries.merge(boxes, "partition")
            for method, found in far.items():
                found.append(distance(nc.queries.merge(boxes, method, seed=seed), optimum))
        pair, directed = np.array(far["pair"]), np.array(far["directed"])
        missed = pair[pair > 1e-6]
        table.add_row(str(n), f"{100 * (pair < 1e-6).mean():.1f}", f"{100 * (directed < 1e-6).mean():.1f}",
                      f"{pair.mean():.3f}", f"{directed.mean():.3f}",
                      f"{missed.mean():.2f}" if missed.size else "-")  # fmt: skip
        good &= bool((directed <= pair + 1e-6).all()) and pair.mean() < 5 and directed.mean() < 1
    console.print(table)
    return good


def figures_10_and_14(samples: int) -> bool:
    names = ("queries", "directed better %", "directed dearer", "pair", "directed", "cluster", "by gain", "no merging")
    table = Table(*names, title="At the study's sizes, 50 starts, mean cost (figures 10 and 14)")
    good = True
    for n in (12, 25, 50, 100):
        costs = {name: np.empty(samples) for name in ("pair", "directed", "cluster", "gain clusters", "apart")}
        for seed in range(samples):
            boxes = nc.workloads.rectangles(n=n, seed=seed)
            for method in ("pair", "directed", "cluster"):
                plan = nc.queries.merge(boxes, method, seed=seed)
                costs[method][seed] = plan.cost
            costs["gain clusters"][seed] = nc.queries.merge(boxes, "cluster", metric="gain").cost
            costs["apart"][seed] = plan.baseline
        better = 100 * (costs["directed"] * SAME < costs["pair"]).mean()
        dearer = int((costs["directed"] > costs["pair"] * SAME).sum())
        table.add_row(str(n), f"{better:.1f}", str(dearer), *(f"{costs[c].mean():.4f}" for c in costs))
        good &= dearer == 0 and costs["cluster"].mean() < 1.01 * costs["pair"].mean()
    console.print(table)
    return good


def figure_16(samples: int) -> bool:
    table = Table("cf", "no merging", "pair", "saved", "saved %", title="100 queries, share in clusters (figure 16)")
    saved = []
    for cf in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        plans = [nc.queries.merge(nc.workloads.rectangles(n=100, cf=cf, seed=seed)) for seed in range(samples)]
        apart, pair = np.mean([p.baseline for p in plans]), np.mean([p.cost for p in plans])
        saved.append(apart - pair)
        table.add_row(
            f"{cf:.1f}", f"{apart:.3f}", f"{pair:.3f}", f"{apart - pair:.3f}", f"{100 * (1 - pair / apart):.1f}"
        )
    console.print(table)
    return bool(saved[0] > 0 and saved[-1] > saved[0])


def figure_9(samples: int) -> bool:
    factors = (0.25, 0.5, 1.0, 1.5, 2.0)
    table = Table("constant", *(f"×{f}" for f in factors), title="Merged queries as a constant changes (figure 9)")
    base = {"km": 365e-5, "kt": 3.25e-5, "ku": 0.16e-5}
    sets = {}
    for name in base:
        sets[name] = [
            float(np.mean([len(nc.queries.merge(nc.workloads.rectangles(n=100, seed=seed),
                                                **(base | {name: f * base[name]})).sets) for seed in range(samples)]))
            for f in factors
        ]  # fmt: skip
        table.add_row(name, *(f"{value:.1f}" for value in sets[name]))
    console.print(table)
    return sets["km"][0] > sets["km"][-1] and sets["ku"][0] < sets["ku"][-1]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=200)
    samples = parser.parse_args().samples
    holds = [figures_11_to_13(samples), figures_10_and_14(max(20, samples // 2)), figure_16(max(20, samples // 4)),
             figure_9(max(10, samples // 10))]  # fmt: skip
    return int(not all(holds))


if __name__ == "__main__":
    sys.exit(main())
