"""Refusing impossible parameters with one line that says what would do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite
from numbers import Integral, Real

import numpy as np

from narrowcast.errors import InputError


def whole(name: str, value: object, *, low: int = 0, high: int | None = None) -> int:
    """A whole number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} must be a whole number, got {value!r}", name=name, got=value)
    n = int(value)
    if n < low or (high is not None and n > high):
        allowed = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} must be {allowed}, got {n}", name=name, allowed=allowed, got=n)
    return n


def number(name: str, value: object, *, low: float | None = None, high: float | None = None) -> float:
    """A finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}", name=name, got=value)
    x = float(value)
    if (low is not None and x < low) or (high is not None and x > high):
        bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
        allowed = " and ".join(bounds)
        raise InputError(f"{name} must be {allowed}, got {value}", name=name, allowed=allowed, got=value)
    return x


def share(name: str, value: object) -> float:
    """A share of a whole, in [0, 1]."""
    return number(name, value, low=0.0, high=1.0)


def choice(name: str, value: object, allowed: Iterable[str]) -> str:
    """One of a few words, with the nearest one as a hint."""
    words = tuple(allowed)
    if isinstance(value, str) and value in words:
        return value
    near = get_close_matches(str(value), words, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else None
    raise InputError(
        f"{name} must be one of {', '.join(words)}, got {value!r}", name=name, allowed=words, got=value, hint=hint
    )


def generator(seed: object) -> np.random.Generator:
    """Random numbers from a seed: the same on every machine."""
    return np.random.default_rng(whole("seed", seed))
