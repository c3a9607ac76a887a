"""`narrowcast demo`: the main job, on data that comes with the package."""

from __future__ import annotations


def demo() -> None:
    """Show what narrowcast does, on built-in data, in about a minute."""
