"""The study of semantic channels: every variant against shortest path trees, on average over seeds.

    python benchmarks/quality/semantic.py [--brokers 600] [--clients 7000] [--seeds 3] [--workers 2]

Two counts, both over shortest path trees' (SPT): `tree` counts only the tree below the rendezvous, as published;
`full` counts the way from source to rendezvous too. `search` is run without a cap and at the channel
count of each published variant. `later` is `full` of as many messages that come after the window. Under each table
stand the published relations and what came out here.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

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
    unicast = nc.semantic.baseline(*args, window, now, "unicast").cost / spt
    result = {"unicast": (unicast, unicast, np.nan, 0, 0.0)}
    capped: dict[int, tuple] = {}

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
        name = f"search at {variant}'s channels"
        if n not in capped:
            run(name, max_channels=n)
            capped[n] = result[name]
        result[name] = capped[n]
    return result


def one(job: tuple) -> dict:
    brokers, cost, clients, n_messages, overlap, selectivity, seed, variants = job
    topology = nc.workloads.overlay(brokers, cost=cost, seed=seed)
    return study(topology, clients, n_messages, overlap, selectivity, seed, variants)


def relations(mean: dict[str, np.ndarray], overlap: float) -> list[str]:
    """What the paper and the specification say, and what came out."""
    told = []

    def say(claim: str, value: float, holds: bool) -> None:
        told.append(f"  {'yes' if holds else 'NO ':3} {value:7.3f}  {claim}")

    say("search / SPT in full, at most 1", mean["search"][0], mean["search"][0] <= 1)
    say("search / SPT in full after the window, at most 1", mean["search"][2], mean["search"][2] <= 1)
    for variant in PUBLISHED:
        if variant in mean:
            ratio = mean[f"search at {variant}'s channels"][0] / mean[variant][0]
            say(f"search / {variant} in full at equal channels, at most 1", ratio, ratio <= 1 + 1e-12)
    tree = {name: row[1] for name, row in mean.items()}
    if "central, random" in tree and "semcast, random" in tree:
        ratio = tree["semcast, random"] / tree["central, random"]
        say("semcast / central, trees below a random rendezvous, at most about 1.06", ratio, ratio <= 1.08)
    if "central, random" in tree and overlap == 0:
        say("SPT / central, published 1.23", 1 / tree["central, random"], 1.1 < 1 / tree["central, random"] < 1.4)
        ratio = tree["unicast"] / tree["central, random"]
        say("unicast / central, published 1.41", ratio, 1.2 < ratio < 2)
    if "semcast, random" in tree:
        say(
            "semcast / SPT, trees below a random rendezvous, at most 1",
            tree["semcast, random"],
            tree["semcast, random"] <= 1,
        )
    for variant in ("merge", "noise-merge"):
        if f"{variant}, random" in tree and overlap >= 0.25:
            ratio = tree[f"{variant}, random"] / tree["semcast, random"]
            say(f"{variant} / semcast, published above 1", ratio, ratio > 1)
    return told


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
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--overlaps", type=float, nargs="+", default=[0.0, 0.005, 0.02, 0.1, 0.5])
    parser.add_argument("--selectivities", type=float, nargs="+", default=[16.0, 4.0, 2.0])
    parser.add_argument("--variants", nargs="+", default=list(PUBLISHED))
    parser.add_argument("--cost", choices=["distance", "unit"], default="distance")
    parser.add_argument("--latency", action="store_true", help="only what latency bounds cost, and how deep trees are")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if args.latency:
        latency(args.brokers, args.cost, args.seeds)
        return
    cells = [(overlap, selectivity) for selectivity in args.selectivities for overlap in args.overlaps]
    jobs = [
        (args.brokers, args.cost, args.clients, args.messages, overlap, selectivity, seed, tuple(args.variants))
        for overlap, selectivity in cells
        for seed in range(args.seeds)
    ]
    start = time.perf_counter()
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
        results = pool.map(one, jobs)
        for overlap, selectivity in cells:
            found = [next(results) for _ in range(args.seeds)]
            mean = {name: np.mean([each[name] for each in found], axis=0) for name in found[0]}
            print(f"\noverlap {overlap}, selectivity {selectivity}, mean of {args.seeds} (shortest path trees = 1)")
            print(f"{'plan':36} {'full':>7} {'tree':>7} {'later':>7} {'channels':>9} {'s':>6}")
            for name, (full, below, later, channels, seconds) in mean.items():
                print(f"{name:36} {full:7.3f} {below:7.3f} {later:7.3f} {channels:9.0f} {seconds:6.1f}")
            print("\n".join(relations(mean, overlap)), flush=True)
    print(f"\n{len(jobs)} systems in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
