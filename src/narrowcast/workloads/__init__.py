"""Generators of realistic inputs: the published workloads and clearer ones, each from a seed."""

from collections.abc import Callable
from typing import Any

from narrowcast.workloads.commuter import Commuter, commuter
from narrowcast.workloads.market import market
from narrowcast.workloads.mechanical import mechanical
from narrowcast.workloads.network import network
from narrowcast.workloads.overlay import overlay
from narrowcast.workloads.overlay_clients import OverlayClients, overlay_clients
from narrowcast.workloads.random import random
from narrowcast.workloads.random_tree import random_tree
from narrowcast.workloads.rectangles import rectangles
from narrowcast.workloads.statistics import InterestStatistics, statistics
from narrowcast.workloads.tables import WrittenTable, write
from narrowcast.workloads.tree_demand import TreeWorkload, complete_tree, tree_demand

#: Every workload by name; `write` takes the same names.
WORKLOADS: dict[str, Callable[..., Any]] = {
    "market": market,
    "random": random,
    "mechanical": mechanical,
    "tree_demand": tree_demand,
    "overlay": overlay,
    "rectangles": rectangles,
    "commuter": commuter,
    "network": network,
}

__all__ = [
    "WORKLOADS",
    "Commuter",
    "InterestStatistics",
    "OverlayClients",
    "TreeWorkload",
    "WrittenTable",
    "commuter",
    "complete_tree",
    "market",
    "mechanical",
    "network",
    "overlay",
    "overlay_clients",
    "random",
    "random_tree",
    "rectangles",
    "statistics",
    "tree_demand",
    "write",
]
