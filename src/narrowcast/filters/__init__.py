"""Filter placement on a multicast tree: which vertices should filter, and what that saves.

`place` and `place_for_delay` are optimal, `place_weighted` weighs both and a price per filter,
`improve` is one batch of the fast heuristic. `Watch` keeps flow and importance up to date while
subscriptions change, `Batches` runs a tree batch after batch and says what the filters must do.
"""

from narrowcast.filters.batch import Batch, Batches, orders
from narrowcast.filters.cost import delay, loads, traffic
from narrowcast.filters.demand import flow_from_demand
from narrowcast.filters.fleet import Activate, FilterState, Fleet, Migrate, Passivate, Spawn
from narrowcast.filters.flip import Improvement, Move, importance, improve
from narrowcast.filters.optimum import Placement, place
from narrowcast.filters.table import Forward, SubscriptionTable, Withdraw
from narrowcast.filters.watch import Watch
from narrowcast.filters.weighted import DelayPlacement, WeightedPlacement, place_for_delay, place_weighted

__all__ = [
    "Activate",
    "Batch",
    "Batches",
    "DelayPlacement",
    "FilterState",
    "Fleet",
    "Forward",
    "Improvement",
    "Migrate",
    "Move",
    "Passivate",
    "Placement",
    "Spawn",
    "SubscriptionTable",
    "Watch",
    "WeightedPlacement",
    "Withdraw",
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
