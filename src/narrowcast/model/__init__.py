"""The nouns that stages pass to each other: frozen, validated once."""

from narrowcast.model.cost import Cost
from narrowcast.model.demand import Demand
from narrowcast.model.interest import Interest
from narrowcast.model.plan import Plan, Tables
from narrowcast.model.topology import Topology
from narrowcast.model.tree import Tree

__all__ = ["Cost", "Demand", "Interest", "Plan", "Tables", "Topology", "Tree"]
