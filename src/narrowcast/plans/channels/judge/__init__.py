"""Channels plans judged from their tables alone: what is wrong with one, and what it costs."""

from collections.abc import Mapping, Sequence

from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.delivery import may_unicast
from narrowcast.plans.channels.judge.faults import channels_cost as cost
from narrowcast.plans.channels.judge.faults import channels_faults as faults
from narrowcast.plans.channels.judge.messages import message_faults

COLUMNS: Mapping[str, Sequence[str]] = {
    "flow_session": ("flow", "session"),
    "session_group": ("session", "group"),
    "subscriber_group": ("subscriber", "group"),
    "unicast": ("flow", "subscriber"),
    "flows": ("flow", "rate"),
    "interest": ("flow", "subscriber"),
}
OPTIONAL = ("unicast",)
BOUNDED = "excess"


def checked(plan: Tables) -> Sequence[str]:
    """What was looked at, in words."""
    if may_unicast(plan):
        return (
            "everyone who wants a flow is in its group or gets it by unicast",
            "every join, unicast copy and flow sent serves somebody",
            "groups, limits and the unicast cap are kept",
        )
    return (
        "everyone who wants a flow is in its group",
        "every join, session and flow sent serves somebody",
        "groups, sessions and limits are kept",
    )


__all__ = ["BOUNDED", "COLUMNS", "OPTIONAL", "checked", "cost", "faults", "message_faults"]
