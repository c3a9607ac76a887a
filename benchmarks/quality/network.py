"""How far below stitched, and below each paper's own method, a joint plan of a generated bank is; and the time.

    python benchmarks/quality/network.py [--sites 3,10,30] [--users 500] [--symbols 20000] [--seeds 10] [--time-limit S]
    python benchmarks/quality/network.py --quick | --growth | --large

Lines per number of sites: each way's cost over this plan's, the mean over seeds and the least, and the time of a plan.
A plan above stitched ends the run. `--time-limit` bounds the time of each plan. `--quick` takes two seeds of small
banks. `--growth` prints CPU seconds as sites, subscribers and flows each grow ten times; `--large` time and memory of
one plan of 30 sites, 10,000 subscribers and 100,000 flows.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

import narrowcast as nc
from narrowcast.plans.network.plan import make


def below(sites: int, users: int, symbols: int, seeds: int, time_limit: float | None) -> dict[str, list[float]]:
    """Of each seed: every way's cost over the joint plan's, and the CPU seconds of the plan."""
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        demand = nc.workloads.network(sites=sites, users=users, symbols=symbols, seed=seed)
        began = time.process_time()
        plan = make(demand, seed=seed, time_limit=time_limit)
        found.setdefault("CPU s", []).append(time.process_time() - began)
        for name, cost in plan.cost.baselines.items():
            found.setdefault(name, []).append(float(cost) / plan.cost.total)
        found.setdefault("lower bound", []).append((plan.cost.lower_bound or 0.0) / plan.cost.total)
        if found["stitched"][-1] < 1 - 1e-12:
            sys.exit(f"{sites} sites, seed {seed}: the plan is above stitched")
    return found


def told(name: str, values: list[float]) -> str:
    if name == "CPU s":
        return f"  {name:<24} {np.mean(values):7.1f}, at most {max(values):.1f}"
    return f"  {name:<24} {np.mean(values):7.3f}, at least {min(values):.3f}"


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


def large() -> None:
    demand = nc.workloads.network(sites=30, users=10_000, symbols=100_000, seed=1)
    began, cpu = time.monotonic(), time.process_time()
    plan = make(demand)
    took, used = time.monotonic() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    share = plan.cost.baselines["stitched"] / plan.cost.total
    print(f"{demand}: {took:.1f} s, {used:.1f} CPU s, peak {peak:.2f} GB, stitched {share:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", default="3,10,30")
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--symbols", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--time-limit", type=float, help="seconds for each plan")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.quick:
        given.sites, given.users, given.symbols, given.seeds = "3,10", 60, 400, 2
    make(nc.workloads.network(sites=2, users=6, symbols=20))  # compiled
    if given.growth:
        growth(given.users, given.symbols)
    elif given.large:
        large()
    else:
        for sites in map(int, given.sites.split(",")):
            found = below(sites, given.users, given.symbols, given.seeds, given.time_limit)
            print(f"{sites} sites, {given.seeds} seeds:")
            ordered = sorted(found.items(), key=lambda each: (each[0] == "CPU s", np.mean(each[1])))
            print("\n".join(told(*each) for each in ordered), flush=True)


if __name__ == "__main__":
    main()
