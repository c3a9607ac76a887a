"""What a channel carries, as a formula over profiles: evaluated on match tables, or told as a Profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from narrowcast.model._arrays import Bools
from narrowcast.profiles import Profile
from narrowcast.profiles.xpath import XPath
from narrowcast.profiles.xpath_symbolic import Symbolic


@dataclass(frozen=True, eq=False)
class Wants:
    """Messages that match any of these profiles."""

    profiles: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Both:
    parts: tuple[Content, ...]


@dataclass(frozen=True, eq=False)
class Either:
    parts: tuple[Content, ...]


@dataclass(frozen=True, eq=False)
class Less:
    """What `whole` carries and `without` does not."""

    whole: Content
    without: Content


Content = Wants | Both | Either | Less


def holds(content: Content, matched: Bools, known: dict[int, Bools] | None = None) -> Bools:
    """Which messages a channel of this content carries; `matched` is (message × profile)."""
    cache = {} if known is None else known
    if id(content) not in cache:
        cache[id(content)] = _holds(content, matched, cache)
    return cache[id(content)]


def _holds(content: Content, matched: Bools, known: dict[int, Bools]) -> Bools:
    match content:
        case Wants():
            return np.asarray(matched[:, list(content.profiles)].any(axis=1))
        case Both():
            return reduce(np.logical_and, (holds(part, matched, known) for part in content.parts))
        case Either():
            nothing = np.zeros(matched.shape[0], np.bool_)
            return reduce(np.logical_or, (holds(part, matched, known) for part in content.parts), nothing)
        case Less():
            return holds(content.whole, matched, known) & ~holds(content.without, matched, known)


def expression(content: Content, profiles: Sequence[Profile | XPath]) -> Any:
    """The same as a Profile, or over XPath profiles as a symbolic expression with the same operations."""
    kind: Any = Profile if all(isinstance(profile, Profile) for profile in profiles) else Symbolic
    known: dict[int, Any] = {}

    def told(part: Content) -> Any:
        if id(part) not in known:
            known[id(part)] = tell(part)
        return known[id(part)]

    def tell(part: Content) -> Any:
        match part:
            case Wants():
                return kind.any_of([profiles[i] for i in part.profiles])
            case Both():
                return reduce(lambda a, b: a & b, [told(each) for each in part.parts])
            case Either():
                return kind.any_of([told(each) for each in part.parts])
            case Less():
                return told(part.whole) - told(part.without)

    return told(content)
