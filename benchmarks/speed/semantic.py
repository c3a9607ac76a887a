"""Planning time of `search` as clients, profiles, brokers and messages grow, one at a time.

    python benchmarks/speed/semantic.py [--largest]

`--largest` plans 100,000 clients with 10,000 distinct profiles on 2,000 brokers.
"""

from __future__ import annotations

import argparse
import time

import narrowcast as nc

USUAL = {"brokers": 500, "clients": 10_000, "profiles": 1_000, "messages": 2_000}
GROWTH = {
    "brokers": (125, 250, 500, 1_000, 2_000),
    "clients": (2_500, 10_000, 40_000, 100_000),
    "profiles": (250, 1_000, 4_000, 10_000),
    "messages": (500, 2_000, 8_000),
}


def seconds(
    brokers: int, clients: int, profiles: int, messages: int, overlap: float = 0.01
) -> tuple[float, int, float]:
    topology = nc.workloads.overlay(brokers, seed=1)
    made = nc.workloads.overlay_clients(
        topology, clients=clients, messages=messages, overlap=overlap, selectivity=clients / profiles, seed=1
    )
    start = time.perf_counter()
    plan = nc.semantic.plan(topology, made.profiles, made.clients, made.messages, made.sources)
    taken = time.perf_counter() - start
    spt = nc.semantic.baseline(topology, made.profiles, made.clients, made.messages, made.sources).cost
    return taken, plan.n_channels, nc.semantic.bandwidth(plan, made.messages, made.sources) / spt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", action="store_true")
    args = parser.parse_args()
    seconds(60, 100, 20, 50)  # compile the kernels
    print(f"{'':>32} {'plan s':>8} {'channels':>9} {'of SPT':>7}")
    if args.largest:
        taken, channels, ratio = seconds(2_000, 100_000, 10_000, 10_000)
        print(f"{'100,000 clients, 2,000 brokers':>32} {taken:8.1f} {channels:9} {ratio:7.3f}")
        return
    for name, sizes in GROWTH.items():
        for size in sizes:
            taken, channels, ratio = seconds(**(USUAL | {name: size}))
            print(f"{name + ' ' + format(size, ','):>32} {taken:8.1f} {channels:9} {ratio:7.3f}", flush=True)


if __name__ == "__main__":
    main()
