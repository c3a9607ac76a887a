"""Semantic plans judged from their tables alone: what is wrong with one, and what it costs."""

from collections.abc import Mapping, Sequence

from narrowcast.model.plan import Tables
from narrowcast.plans.semantic.judge.faults import semantic_cost as cost
from narrowcast.plans.semantic.judge.faults import semantic_faults as faults
from narrowcast.plans.semantic.judge.messages import message_faults

COLUMNS: Mapping[str, Sequence[str]] = {
    "channels": ("channel", "expression", "rendezvous", "rate", "kind", "content"),
    "channel_members": ("channel", "gateway", "core"),
    "trees": ("channel", "u", "v"),
    "contents": ("part", "operation", "operands"),
    "profiles": ("profile", "text"),
    "clients": ("client", "profile", "gateway", "latency_bound"),
    "topology": ("u", "v", "cost", "delay"),
    "nodes": ("node", "role"),
    "window": ("profiles", "source", "weight", "channels"),
    "sample": ("_broker", "_channels"),
}
OPTIONAL = ()
BOUNDED = "total"


def checked(plan: Tables) -> Sequence[str]:
    """What was looked at, in words."""
    return (
        "every message that a subscriber wants reaches its gateway, also messages never seen before",
        "every tree is in the overlay and reaches its members in time",
        "the rate of every channel",
    )


__all__ = ["BOUNDED", "COLUMNS", "OPTIONAL", "checked", "cost", "faults", "message_faults"]
