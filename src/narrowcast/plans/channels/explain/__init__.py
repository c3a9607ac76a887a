"""Channels plans explained: a flow, a session, a group, a subscriber; each choice priced from the definition."""

from collections.abc import Callable, Mapping
from typing import Any

from narrowcast.evaluate.explanation import Explanation
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.explain.groups import CHANNELS
from narrowcast.plans.channels.explain.unicast import HYBRID
from narrowcast.plans.channels.judge.delivery import may_unicast


def explained(plan: Tables) -> Mapping[str, Callable[[Tables, Any], Explanation]]:
    """What can be asked about."""
    return HYBRID if may_unicast(plan) else CHANNELS
