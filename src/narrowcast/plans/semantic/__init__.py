"""Semantic channels on an overlay of brokers (SemCast, and a search of our own)."""

from narrowcast.plans.semantic.baseline import SCHEMES, Baseline, baseline
from narrowcast.plans.semantic.live.plan import LivePlan, Subscribed
from narrowcast.plans.semantic.plan import VARIANTS, plan
from narrowcast.plans.semantic.reasons import ChannelReason, channel_reasons
from narrowcast.plans.semantic.result import Channel, SemanticPlan, bandwidth
from narrowcast.plans.semantic.statistics import Statistics

__all__ = [
    "SCHEMES",
    "VARIANTS",
    "Baseline",
    "Channel",
    "ChannelReason",
    "LivePlan",
    "SemanticPlan",
    "Statistics",
    "Subscribed",
    "bandwidth",
    "baseline",
    "channel_reasons",
    "plan",
]
