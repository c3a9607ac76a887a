"""Filters: I can afford filters on 15 of these routers. Which, and what does it save?"""

import narrowcast as nc

demand = nc.workloads.tree_demand(kind="uniform", p=0.1, seed=1)
best = nc.filters.place(demand.tree, demand.flow, k=15)

print("filters at:", *best.filters)
print(f"traffic: {best.curve[0]:.0f} without, {best.traffic:.0f} with ({best.method}, gap {best.gap:.1%})")
for k in (1, 3, 7, 15):
    print(f"{k:3} filters save {1 - best.curve[k] / best.curve[0]:.0%}")

# Interest drifts. One move a batch keeps the placement close to the best.
later = demand.redraw(0.2, seed=2)
moved = nc.filters.improve(later.tree, later.flow, best.filters, moves=1)
fresh = nc.filters.place(later.tree, later.flow, k=15)
print(f"after the drift: {nc.filters.traffic(later.tree, later.flow, moved.filters):.0f}, best {fresh.traffic:.0f}")
