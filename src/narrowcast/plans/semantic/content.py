"""What a channel carries, as a formula over profiles: evaluated on match tables, or told as a Profile."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from narrowcast.model.arrays import Bools
from narrowcast.profiles import Profile
from narrowcast.profiles.algebra.intervals import Interval
from narrowcast.profiles.algebra.sets import NOTHING, ValueSet, union
from narrowcast.profiles.sql.syntax import Between, Compare, Expression, conjunction, disjunction


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


def both(one: Content, other: Content) -> Content:
    """What both carry."""
    (yes, no), (yes_too, no_too) = _split(one), _split(other)
    return _built(yes + yes_too, no + no_too)


def less(whole: Content, without: Content) -> Content:
    """What the first carries and the second does not."""
    yes, no = _split(whole)
    return _built(yes, no + _parts(without))


def either(one: Content, other: Content) -> Content:
    """What any of the two carries."""
    if isinstance(one, Wants) and isinstance(other, Wants):
        return Wants(tuple(sorted({*one.profiles, *other.profiles})))
    return Either(_parts(one) + _parts(other))


def _split(content: Content) -> tuple[tuple[Content, ...], tuple[Content, ...]]:
    """(all of these, none of those): keeps formulas flat however often channels were merged."""
    if isinstance(content, Less):
        yes, no = _split(content.whole)
        return yes, no + _parts(content.without)
    return (content.parts if isinstance(content, Both) else (content,)), ()


def _built(yes: tuple[Content, ...], no: tuple[Content, ...]) -> Content:
    yes, no = tuple(dict.fromkeys(yes)), tuple(dict.fromkeys(no))
    whole = yes[0] if len(yes) == 1 else Both(yes)
    return Less(whole, no[0] if len(no) == 1 else Either(no)) if no else whole


def _parts(content: Content) -> tuple[Content, ...]:
    return content.parts if isinstance(content, Either) else (content,)


def _inner(content: Content) -> tuple[Content, ...]:
    match content:
        case Wants():
            return ()
        case Both() | Either():
            return content.parts
        case Less():
            return content.whole, content.without


def bottom_up(content: Content, known: Container[int]) -> list[Content]:
    """The formula's parts, inner ones first, without those known. No recursion: formulas may be deep."""
    order: list[Content] = []
    seen: set[int] = set()
    stack = [(content, False)]
    while stack:
        part, opened = stack.pop()
        if opened:
            order.append(part)
        elif id(part) not in seen and id(part) not in known:
            seen.add(id(part))
            stack.append((part, True))
            stack += [(inner, False) for inner in _inner(part)]
    return order


def holds(content: Content, matched: Bools, known: dict[int, Bools] | None = None) -> Bools:
    """Which messages a channel of this content carries; `matched` is (message × profile)."""
    cache = {} if known is None else known
    for part in bottom_up(content, cache):
        cache[id(part)] = _holds(part, matched, cache)
    return cache[id(content)]


def _holds(content: Content, matched: Bools, known: dict[int, Bools]) -> Bools:
    match content:
        case Wants():
            return np.asarray(matched[:, list(content.profiles)].any(axis=1))
        case Both():
            return reduce(np.logical_and, (known[id(part)] for part in content.parts))
        case Either():
            nothing = np.zeros(matched.shape[0], np.bool_)
            return reduce(np.logical_or, (known[id(part)] for part in content.parts), nothing)
        case Less():
            return known[id(content.whole)] & ~known[id(content.without)]


def expression(content: Content, profiles: Sequence[Profile]) -> Profile:
    """The same as a Profile: of one attribute that holds numbers the intervals it comes to, else as it is made up.

    Formulas of channels that were merged often have thousands of terms, and on a line nearly all of them cancel.
    """
    return _on_a_line(content, profiles) or _made_up(content, profiles)


def _on_a_line(content: Content, profiles: Sequence[Profile]) -> Profile | None:
    """The intervals of the one attribute that the formula speaks of; None if there are more, or other values in it."""
    order = bottom_up(content, ())
    used = {i for part in order if isinstance(part, Wants) for i in part.profiles}
    names = {name for i in used for name in profiles[i].attributes}
    sets = {i: _numbers(profiles[i]) for i in used}
    if len(names) != 1 or None in sets.values():
        return None
    known: dict[int, ValueSet] = {}
    for part in order:
        match part:
            case Wants():
                known[id(part)] = union([NOTHING, *(each for i in part.profiles if (each := sets[i]) is not None)])
            case Both():
                known[id(part)] = reduce(ValueSet.intersection, (known[id(each)] for each in part.parts))
            case Either():
                known[id(part)] = union(known[id(each)] for each in part.parts)
            case Less():
                known[id(part)] = known[id(part.whole)].minus(known[id(part.without)])
    found = known[id(content)].number
    if any(interval.low is None is interval.high for interval in found):
        return None
    (name,) = names
    return Profile.from_expression(disjunction(_within(name, interval) for interval in found))


def _numbers(profile: Profile) -> ValueSet | None:
    """The numbers that a profile of one attribute wants; None if it may want anything else."""
    if len(profile.attributes) != 1 or not profile.boxes:
        return None
    (name,) = profile.attributes
    if any(set(box) != {name} for box in profile.boxes):
        return None
    found = union(box[name] for box in profile.boxes)
    return found if found == ValueSet(number=found.number) else None


def _within(name: str, interval: Interval) -> Expression:
    low, high = interval.low, interval.high
    if low is not None and high is not None and interval.low_closed and interval.high_closed:
        return Between(name, low, high)
    least = [] if low is None else [Compare(name, ">=" if interval.low_closed else ">", low)]
    most = [] if high is None else [Compare(name, "<=" if interval.high_closed else "<", high)]
    return conjunction([*least, *most])


def _made_up(content: Content, profiles: Sequence[Profile]) -> Profile:
    known: dict[int, Profile] = {}
    for part in bottom_up(content, known):
        match part:
            case Wants():
                told = Profile.any_of([profiles[i] for i in part.profiles])
            case Both():
                told = reduce(lambda a, b: a & b, [known[id(each)] for each in part.parts])
            case Either():
                told = Profile.any_of([known[id(each)] for each in part.parts])
            case Less():
                told = known[id(part.whole)] - known[id(part.without)]
        known[id(part)] = told
    return known[id(content)]


def same(content: Content) -> Content:
    """The content itself; with `partial`, for a channel that has it at hand and need not make it."""
    return content
