"""Planning a whole network: the planner, its prices, and reading one from a folder."""

from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.intake import read_network
from narrowcast.plans.network.plan import NetworkProgress, make
from narrowcast.plans.network.prices import NetworkPrices
from narrowcast.plans.network.queries import AskedQueries
from narrowcast.plans.network.result import NetworkPlan

__all__ = ["AskedQueries", "NetworkDemand", "NetworkPlan", "NetworkPrices", "NetworkProgress", "make", "read_network"]
