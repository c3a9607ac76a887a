"""`narrowcast.filters`: Filter placement on a multicast tree: which vertices should filter, and what that saves.

`place` and `place_for_delay` are optimal, `place_weighted` weighs both and a price per filter,
`improve` is one batch of the fast heuristic. `TreeWatch` keeps flow and importance up to date while
subscriptions change, `Batches` runs a tree batch after batch and says what the filters must do.
"""

from narrowcast.plans.filters.cost import delay, loads, traffic
from narrowcast.plans.filters.demand import flow_from_demand
from narrowcast.plans.filters.methods.flip import FlipMove, Improvement, importance, improve
from narrowcast.plans.filters.methods.optimum import place
from narrowcast.plans.filters.methods.weighted import place_for_delay, place_weighted
from narrowcast.plans.filters.mobile.batch import Batches, FilterBatch, orders
from narrowcast.plans.filters.mobile.fleet import Activate, FilterState, Fleet, Migrate, Passivate, Spawn
from narrowcast.plans.filters.mobile.watch import TreeWatch
from narrowcast.plans.filters.result import FiltersPlan, TreeDemand

__all__ = [
    "Activate",
    "Batches",
    "FilterBatch",
    "FilterState",
    "FiltersPlan",
    "Fleet",
    "FlipMove",
    "Improvement",
    "Migrate",
    "Passivate",
    "Spawn",
    "TreeDemand",
    "TreeWatch",
    "delay",
    "flow_from_demand",
    "importance",
    "improve",
    "loads",
    "orders",
    "place",
    "place_for_delay",
    "place_weighted",
    "traffic",
]
