"""Parameters that every planner has by name, and that not every method can use: refused, never ignored."""

from __future__ import annotations

from narrowcast.errors import InputError


def refuse_unused(method: str, **given: object) -> None:
    """Refuse whatever is given to a method that does not use it.

    >>> refuse_unused("method 'gf'", time_limit=None)
    >>> refuse_unused("method 'gf'", time_limit=5)
    Traceback (most recent call last):
    narrowcast.errors.InputError: time_limit must be left out for method 'gf', got 5
    """
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} must be left out for {method}, got {value!r}", name=name, got=value)
