"""The nouns that stages pass to each other: frozen, validated once."""

from narrowcast.model.interest import Interest
from narrowcast.model.topology import Topology
from narrowcast.model.tree import Tree

__all__ = ["Interest", "Topology", "Tree"]
