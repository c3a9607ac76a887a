"""Filter placement on a multicast tree: which vertices should filter, and what that saves.

`place` and `place_for_delay` are optimal, `place_weighted` weighs both and a price per filter,
`improve` is one batch of the fast heuristic.
"""

from narrowcast.filters.cost import delay, traffic
from narrowcast.filters.weighted import DelayPlacement, WeightedPlacement, place_for_delay, place_weighted
from narrowcast.filters.demand import flow_from_demand
from narrowcast.filters.optimum import Placement, place

__all__ = [
    "DelayPlacement",
    "Placement",
    "WeightedPlacement",
    "delay",
    "flow_from_demand",
    "place",
    "place_for_delay",
    "place_weighted",
    "traffic",
]
