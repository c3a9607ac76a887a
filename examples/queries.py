"""Queries: many overlapping range queries answered by few merged ones."""

import narrowcast as nc

boxes = nc.workloads.rectangles(n=60, seed=1)
apart = nc.queries.cost(boxes, [(i,) for i in range(len(boxes))])
for method in ("cluster", "pair", "directed"):
    merged = nc.queries.merge(boxes, method=method)
    print(f"{method:9} {len(merged.sets):3} merged queries")
