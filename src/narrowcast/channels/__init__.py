"""Channels: flows to sessions to multicast groups, with hybrid unicast."""

from narrowcast.channels.cost import Cost, cost, illegal
from narrowcast.channels.plan import METHODS, ChannelPlan, plan

__all__ = ["METHODS", "ChannelPlan", "Cost", "cost", "illegal", "plan"]
