"""Overlay graphs: shortest paths and dissemination trees."""

from narrowcast.network.paths import Paths, shortest_paths
from narrowcast.network.steiner import edges_cost, tree, tree_edges
from narrowcast.network.trees import DisseminationTree, Joined

__all__ = ["DisseminationTree", "Joined", "Paths", "edges_cost", "shortest_paths", "tree", "tree_edges"]
