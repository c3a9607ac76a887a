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
from narrowcast.network import DisseminationTree, shortest_paths, tree

PUBLISHED = ("semcast", "central", "merge", "noise-merge")


def study(topology, clients: int, n_messages: int, overlap: float, selectivity: float, seed: int, variants):
    """One system: costs over SPT's in full bandwidth, and tree costs over SPT's, per plan."""
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


def latency(brokers: int, cost: str, seeds: int) -> None:
    """Trees for random gateways under bounds, as a multiple of the slowest quickest path (SemCast §5.2)."""
    rows = defaultdict(list)
    for seed in range(seeds):
        topology = nc.workloads.overlay(brokers, cost=cost, seed=seed)
        # Latency is counted in hops, as published.
        hops = nc.Topology(topology.edges, cost=topology.cost, delay=np.ones(topology.n_links))
        cheap, quick = shortest_paths(hops), shortest_paths(hops, "delay")
        gateways = np.flatnonzero(np.array(topology.roles) == "gateway")
        rng = np.random.default_rng(seed)
        for _ in range(20):
            members = rng.choice(gateways, rng.integers(2, gateways.size), replace=False).tolist()
            root = int(rng.integers(brokers))
            least = max(quick.delay[root, g] for g in members)
            free = DisseminationTree(cheap, root)
            for g in members:
                free.join(g)
            spt = tree(cheap, root, members, "spt")
            rows["SPT / unbounded cost"].append(spt[1] / free.cost)
            depth = np.mean([free.delay[g] for g in members])
            rows["hops deeper than SPT's"].append(depth - np.mean([cheap.delay[root, g] for g in members]))
            for slack in (1.0, 1.25, 1.5, 2.0):
                bounded = DisseminationTree(cheap, root)
                for g in members:
                    bounded.join_within(g, least * slack, quick, anyway=True)
                rows[f"bound {slack} / unbounded cost"].append(bounded.cost / free.cost)
    for name, values in rows.items():
        print(f"{name:32} {np.mean(values):7.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", type=int, default=600)
    parser.add_argument("--clients", type=int, default=7000)
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--overlaps", type=float, nargs="+", default=[0.0, 0.005, 0.02, 0.1])
    parser.add_argument("--selectivities", type=float, nargs="+", default=[2.0])
    parser.add_argument("--variants", nargs="+", default=list(PUBLISHED))
    parser.add_argument("--cost", choices=["distance", "unit"], default="distance")
    parser.add_argument("--latency", action="store_true", help="only what latency bounds cost, and how deep trees are")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if args.latency:
        latency(args.brokers, args.cost, args.seeds)
        return
    for selectivity in args.selectivities:
        for overlap in args.overlaps:
            rows = defaultdict(list)
            for seed in range(args.seeds):
                topology = nc.workloads.overlay(args.brokers, cost=args.cost, seed=seed)
                found = study(topology, args.clients, args.messages, overlap, selectivity, seed, args.variants)
                for name, row in found.items():
                    rows[name].append(row)
            print(f"\noverlap {overlap}, selectivity {selectivity}, mean of {args.seeds} (shortest path trees = 1)")
            print(f"{'plan':36} {'full':>7} {'tree':>7} {'later':>7} {'channels':>9} {'s':>6}")
            for name, each in rows.items():
                full, tree, later, channels, seconds = np.mean(each, axis=0)
                print(f"{name:36} {full:7.3f} {tree:7.3f} {later:7.3f} {channels:9.0f} {seconds:6.1f}", flush=True)


if __name__ == "__main__":
    main()
