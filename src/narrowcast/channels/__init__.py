"""Channels: flows to sessions to multicast groups, with hybrid unicast."""

from narrowcast.channels.cost import Cost, cost, illegal
from narrowcast.channels.plan import METHODS, ChannelPlan, plan
from narrowcast.channels.search import Progress

__all__ = ["METHODS", "ChannelPlan", "Cost", "Progress", "cost", "illegal", "plan"]
