"""The profile language: what a subscriber wants."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from narrowcast.profiles.profile import Profile

if TYPE_CHECKING:
    from narrowcast.profiles.match.matcher import Matcher

__all__ = ["Matcher", "Profile"]


def __getattr__(name: str) -> object:
    """The Matcher loads on first use: a profile needs neither NumPy nor numba."""
    if name == "Matcher":
        return import_module("narrowcast.profiles.match.matcher").Matcher
    raise AttributeError(f"module 'narrowcast.profiles' has no attribute {name!r}")
