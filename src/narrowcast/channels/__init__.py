"""Channels: flows to sessions to multicast groups, with hybrid unicast."""

from narrowcast.channels.cost import Cost, cost, illegal
from narrowcast.channels.hybrid import CHANNELIZERS, UNICAST, HybridPlan, hybrid
from narrowcast.channels.plan import METHODS, ChannelPlan, plan
from narrowcast.channels.search import Progress

__all__ = [
    "CHANNELIZERS",
    "METHODS",
    "UNICAST",
    "ChannelPlan",
    "Cost",
    "HybridPlan",
    "Progress",
    "cost",
    "hybrid",
    "illegal",
    "plan",
]
