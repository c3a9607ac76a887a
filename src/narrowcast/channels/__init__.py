"""Channels: flows to sessions to multicast groups, with hybrid unicast."""

from narrowcast.channels.aggregation import Aggregation, calibrate
from narrowcast.channels.baselines import Baseline
from narrowcast.channels.cost import Cost, cost, illegal
from narrowcast.channels.hybrid import CHANNELIZERS, UNICAST, HybridPlan, hybrid
from narrowcast.channels.limits import Limits
from narrowcast.channels.plan import METHODS, ChannelPlan, plan
from narrowcast.channels.search import Progress

__all__ = [
    "CHANNELIZERS",
    "METHODS",
    "UNICAST",
    "Aggregation",
    "Baseline",
    "ChannelPlan",
    "Cost",
    "HybridPlan",
    "Limits",
    "Progress",
    "calibrate",
    "cost",
    "hybrid",
    "illegal",
    "plan",
]
