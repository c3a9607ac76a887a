"""What may be seen, asked message by message: the definition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from narrowcast.deliver.routing.routing import Routing
from narrowcast.profiles import Profile


def may_hold(routing: Routing, channel: int, entitled: str | None, messages: Iterable[Mapping[str, Any]]) -> bool:
    """Whether no message goes to a channel that somebody who has its key may not see."""
    limit = None if entitled is None else Profile.parse(entitled)
    return all(limit is None or limit.matches(each) for each in messages if channel in routing.route(each)[1])
