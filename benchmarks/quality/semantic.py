"""The study of semantic channels: every variant against shortest path trees, on average over seeds.

    python benchmarks/quality/semantic.py [--brokers 600] [--clients 7000] [--seeds 3]

Two counts, both over the central variant's or SPT's: `tree` counts only the tree below a random rendezvous, as
published; `full` counts the way from source to rendezvous too. `search` is run without a cap and
at the channel count of each published variant. Held-out messages come after the window.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

import numpy as np

import narrowcast as nc

PUBLISHED = ("semcast", "central", "merge", "noise-merge")


def study(brokers: int, clients: int, n_messages: int, overlap: float, selectivity: float, seed: int, variants):
    """One system: costs over SPT's in full bandwidth, and tree costs over SPT's, per plan."""
    topology = nc.workloads.overlay(brokers, seed=seed)
    made = nc.workloads.overlay_clients(
        topology, clients=clients, messages=2 * n_messages, overlap=overlap, selectivity=selectivity, seed=seed
    )
    window, later = made.messages.slice(0, n_messages), made.messages.slice(n_messages)
    now, then = made.sources[:n_messages], made.sources[n_messages:]
    args = (topology, made.profiles, made.clients)
    spt = nc.semantic.baseline(*args, window, now, "spt").cost
    spt_later = nc.semantic.baseline(*args, later, then, "spt").cost
    result = {"unicast": (nc.semantic.baseline(*args, window, now, "unicast").cost / spt, np.nan, np.nan, 0, 0.0)}

    def run(name: str, **more) -> int:
        start = time.perf_counter()
        plan = nc.semantic.plan(*args, window, now, seed=seed, **more)
        seconds = time.perf_counter() - start
        full = nc.semantic.bandwidth(plan, window, now) / spt
        held_out = nc.semantic.bandwidth(plan, later, then) / spt_later
        result[name] = (full, plan.cost / spt, held_out, plan.n_channels, seconds)
        return plan.n_channels

    run("search")
    for variant in variants:
        n = run(variant, variant=variant)
        run(f"{variant}, random", variant=variant, rendezvous="random")
        run(f"search at {variant}'s channels", max_channels=n)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=600)
    parser.add_argument("--clients", type=int, default=7000)
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--overlaps", type=float, nargs="+", default=[0.0, 0.005, 0.02, 0.1])
    parser.add_argument("--selectivities", type=float, nargs="+", default=[2.0])
    parser.add_argument("--variants", nargs="+", default=list(PUBLISHED))
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    for selectivity in args.selectivities:
        for overlap in args.overlaps:
            rows = defaultdict(list)
            for seed in range(args.seeds):
                for name, row in study(
                    args.brokers, args.clients, args.messages, overlap, selectivity, seed, args.variants
                ).items():
                    rows[name].append(row)
            print(f"\noverlap {overlap}, selectivity {selectivity}, mean of {args.seeds} (shortest path trees = 1)")
            print(f"{'plan':36} {'full':>7} {'tree':>7} {'later':>7} {'channels':>9} {'s':>6}")
            for name, found in rows.items():
                full, tree, later, channels, seconds = np.mean(found, axis=0)
                print(f"{name:36} {full:7.3f} {tree:7.3f} {later:7.3f} {channels:9.0f} {seconds:6.1f}", flush=True)


if __name__ == "__main__":
    main()
