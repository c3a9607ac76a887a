"""Merged queries in generated banks: what deciding them under the one cost saves against each piece planned alone.

python benchmarks/quality/network_queries.py [SITES] [QUERIES] [SEEDS]
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

import narrowcast as nc
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.queries import AskedQueries, with_answers
from narrowcast.plans.queries.result import QueryDemand


def bank(sites: int, queries: int, seed: int) -> NetworkDemand:
    """A bank whose people ask ranges of two numbers, a few popular places of the table most of all."""
    demand = nc.workloads.network(sites=sites, users=120, symbols=1000, seed=seed)
    rng = np.random.default_rng([seed, 7])
    centre = rng.uniform(0, 1000, (6, 2))[rng.choice(6, queries, p=np.array([8, 4, 3, 2, 2, 1]) / 20)]
    low = centre + rng.normal(0, 15, (queries, 2))
    boxes = np.stack([low, low + rng.uniform(40, 120, (queries, 2))], axis=-1)
    clients = tuple(f"user{u}" for u in rng.integers(120, size=queries))
    asked = QueryDemand(boxes, ("x", "y"), tuple(f"q{i}" for i in range(queries)), clients)
    return replace(demand, queries=AskedQueries(asked, demand.sites[0], rng.choice([1, 1, 5], queries), period_s=1.0))


def main(sites: int = 5, queries: int = 40, seeds: int = 10) -> None:
    print("seed  queries  sets alone  sets  cost  stitched/cost  joint with sets alone/cost  apart/cost  CPU s")
    for seed in range(seeds):
        demand, begun = bank(sites, queries, seed), time.process_time()
        plan = make(demand)
        spent = time.process_time() - begun
        stitched = make(demand, method="stitched").demand.queries
        assert stitched is not None
        assert plan.demand.queries is not None
        ratios = [float(plan.cost.baselines["stitched"]) / plan.cost.total]
        for sets in (stitched.sets, tuple((q,) for q in range(queries))):
            fixed = with_answers(demand, sets)
            thrown = sum(float(demand.beta[0]) * float(stitched.thrown(members).sum()) for members in sets)
            ratios.append((make(replace(fixed, queries=None)).cost.total + 0.05 * thrown) / plan.cost.total)
        told = "  ".join(f"{ratio:.4f}" for ratio in ratios)
        sets = f"{len(stitched.sets)}  {len(plan.demand.queries.sets)}"
        print(f"{seed}  {queries}  {sets}  {plan.cost.total:.4g}  {told}  {spent:.1f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
