"""How far below stitched, and below each paper's own method, a joint plan of a generated bank is; and the time.

    python benchmarks/quality/network.py [--sites 3,10,30] [--users 500] [--symbols 20000] [--seeds 10]
    python benchmarks/quality/network.py --quick | --growth

A line per number of sites: means over seeds of each way's cost over this plan's. `--quick` takes two seeds of small
banks. `--growth` prints CPU seconds as
sites, subscribers and flows each grow ten times.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import narrowcast as nc
from narrowcast.plans.network.plan import make


def below(sites: int, users: int, symbols: int, seeds: int) -> dict[str, float]:
    """Mean over seeds of each way's cost over the joint plan's."""
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        plan = make(nc.workloads.network(sites=sites, users=users, symbols=symbols, seed=seed), seed=seed)
        for name, cost in plan.cost.baselines.items():
            found.setdefault(name, []).append(float(cost) / plan.cost.total)
        found.setdefault("lower bound", []).append((plan.cost.lower_bound or 0.0) / plan.cost.total)
    return {name: float(np.mean(values)) for name, values in found.items()}


def growth(users: int, symbols: int) -> None:
    for name, size in (
        ("start", (3, users, symbols)),
        ("sites ×10", (30, users, symbols)),
        ("subscribers ×10", (3, 10 * users, symbols)),
        ("flows ×10", (3, users, 10 * symbols)),
    ):
        demand = nc.workloads.network(sites=size[0], users=size[1], symbols=size[2])
        began = time.process_time()
        make(demand)
        print(f"{name:<16} {demand}  {time.process_time() - began:6.1f} CPU s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", default="3,10,30")
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--symbols", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.quick:
        given.sites, given.users, given.symbols, given.seeds = "3,10", 60, 400, 2
    make(nc.workloads.network(sites=2, users=6, symbols=20))  # compiled
    if given.growth:
        growth(given.users, given.symbols)
        return
    for sites in map(int, given.sites.split(",")):
        shares = below(sites, given.users, given.symbols, given.seeds)
        told = ", ".join(f"{name} {share:.3f}" for name, share in sorted(shares.items(), key=lambda item: item[1]))
        print(f"{sites} sites: {told}", flush=True)


if __name__ == "__main__":
    main()
