"""Semantic channels on an overlay of brokers (SemCast, and a search of our own)."""

from narrowcast.semantic.baseline import SCHEMES, Baseline, baseline
from narrowcast.semantic.explain import ChannelReason, explain
from narrowcast.semantic.live import LivePlan, Subscribed
from narrowcast.semantic.plan_result import Channel, SemanticPlan, bandwidth
from narrowcast.semantic.planner import VARIANTS, plan
from narrowcast.semantic.statistics import Statistics

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
    "explain",
    "plan",
]
