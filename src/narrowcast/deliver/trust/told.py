"""What processes tell about themselves, before anybody believes it: a subscriber may tell of itself alone.

NATS lets an account publish under its own name and a slash, and trusted roles under any. So a name with a slash is an
account's, and tells what an edge would tell.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from narrowcast.deliver.transport.nats.link import tokens

MOST_BYTES = 1 << 20
MOST_OF_ACCOUNT = 64 << 10
FIELDS = {"name", "role", "counts", "carried", "started", "at", "epoch", "groups", "subscriptions", "process", "cpu"}


def is_told_by(subject: str, data: bytes) -> bool:
    """Whether a snapshot is one, of whom the subject (`tokens` of a name) names.

    >>> whole = {"name": "a/1", "role": "edge", "counts": {"gaps": 1}, "carried": {}}
    >>> [is_told_by(tokens(name), json.dumps(whole).encode()) for name in ("a/1", "b/1")]
    [True, False]
    """
    if len(data) > MOST_BYTES:
        return False
    try:
        found = json.loads(data)
        return isinstance(found, dict) and _is_snapshot(found, subject, len(data))
    except (ValueError, RecursionError):
        return False


def _is_snapshot(found: dict[str, Any], subject: str, size: int) -> bool:
    name = found.get("name")
    if not isinstance(name, str) or tokens(name) != subject or not isinstance(found.get("role"), str):
        return False
    if not all(_are_numbers(found.get(part)) for part in ("counts", "carried")):
        return False
    return "/" not in name or (size <= MOST_OF_ACCOUNT and _is_edge(found))


def _is_edge(found: dict[str, Any]) -> bool:
    groups, subscriptions = found.get("groups", []), found.get("subscriptions", {})
    return (
        found.keys() <= FIELDS
        and found["role"] == "edge"
        and all(_is_number(found.get(name, 0)) for name in ("started", "at", "epoch", "cpu"))
        and isinstance(found.get("process", ""), str)
        and isinstance(groups, list)
        and all(type(group) is int for group in groups)
        and isinstance(subscriptions, dict)
        and all(
            isinstance(each, dict) and isinstance(each.get("profile"), str) and _is_number(each.get("lag"))
            for each in subscriptions.values()
        )
    )


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_number(value: Any) -> bool:
    """One that can be subtracted and shown."""
    return type(value) in (int, float) and abs(value) < 1e18 and isfinite(value)
