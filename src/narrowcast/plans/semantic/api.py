"""`narrowcast.semantic`: Semantic channels on an overlay of brokers (SemCast, and a search of our own)."""

from narrowcast.plans.semantic.baseline import SchemeCost, baseline
from narrowcast.plans.semantic.channel import Channel
from narrowcast.plans.semantic.cost import SCHEMES
from narrowcast.plans.semantic.demand import OverlayDemand
from narrowcast.plans.semantic.live.plan import LiveChannels, NewClient
from narrowcast.plans.semantic.plan import METHODS, make, plan
from narrowcast.plans.semantic.reasons import ChannelReason, channel_reasons
from narrowcast.plans.semantic.result import SemanticPlan, bandwidth
from narrowcast.plans.semantic.statistics import Statistics

__all__ = [
    "METHODS",
    "SCHEMES",
    "Channel",
    "ChannelReason",
    "LiveChannels",
    "NewClient",
    "OverlayDemand",
    "SchemeCost",
    "SemanticPlan",
    "Statistics",
    "bandwidth",
    "baseline",
    "channel_reasons",
    "make",
    "plan",
]
