"""Channels: flows to sessions to multicast groups, with hybrid unicast."""

from narrowcast.plans.channels.aggregation import Aggregation, calibrate
from narrowcast.plans.channels.baselines import Baseline
from narrowcast.plans.channels.cost import Cost, cost, illegal
from narrowcast.plans.channels.hybrid import CHANNELIZERS, UNICAST, HybridPlan, hybrid
from narrowcast.plans.channels.limits import Limits
from narrowcast.plans.channels.methods.search import Progress
from narrowcast.plans.channels.plan import METHODS, ChannelPlan, plan

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
