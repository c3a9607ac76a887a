"""`narrowcast.channels`: flows to sessions to multicast groups, with hybrid unicast."""

from narrowcast.plans.channels.aggregation import Aggregation, calibrate
from narrowcast.plans.channels.choices import CHANNELIZERS, UNICAST
from narrowcast.plans.channels.cost import cost, illegal
from narrowcast.plans.channels.hybrid import hybrid
from narrowcast.plans.channels.limits import Limits
from narrowcast.plans.channels.methods.search import Progress
from narrowcast.plans.channels.plan import METHODS, plan
from narrowcast.plans.channels.result import ChannelsPlan

__all__ = [
    "CHANNELIZERS",
    "METHODS",
    "UNICAST",
    "Aggregation",
    "ChannelsPlan",
    "Limits",
    "Progress",
    "calibrate",
    "cost",
    "hybrid",
    "illegal",
    "plan",
]
