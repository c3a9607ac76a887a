"""Profiles from their text, each parsed once."""

from __future__ import annotations

from functools import lru_cache

from narrowcast.profiles import Profile


@lru_cache(maxsize=65_536)
def parsed(text: str) -> Profile:
    """The profile of a text that has been accepted before: no limits apply."""
    return Profile.parse(text, limits=None)
