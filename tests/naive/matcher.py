"""Matching by its definition: every profile on every message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from narrowcast.profiles.profile import Profile


def match(profiles: Sequence[Profile], messages: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """(message index, profile index) of every match, sorted."""
    return [(i, k) for i, message in enumerate(messages) for k, p in enumerate(profiles) if p.matches(message)]
