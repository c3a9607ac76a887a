"""Range predicates as boxes, and boxes as profiles. A box may be wider than its profile, never narrower."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from narrowcast.errors import InputError
from narrowcast.plans.queries.boxes import Floats
from narrowcast.profiles import Profile
from narrowcast.profiles.algebra.sets import ValueSet
from narrowcast.profiles.sql.syntax import Between, Compare, Expression, conjunction

EVERYTHING = (-math.inf, math.inf)


def range_boxes(profiles: Sequence[Profile], attributes: Sequence[str]) -> Floats:
    """The closed box around each profile's matches in the space of numeric attributes, (n, d, 2).

    A side that a profile leaves open is infinite; conditions on other attributes make no difference.
    A profile that nothing can match gets the point 0.

    >>> range_boxes([Profile.parse("x BETWEEN 1 AND 2 AND y > 3 AND name = 'a'")], ["x", "y"]).tolist()
    [[[1.0, 2.0], [3.0, inf]]]
    """
    if not attributes:
        raise InputError("attributes must name at least one column, got none", name="attributes")
    found = [[_side(profile, attribute) for attribute in attributes] for profile in profiles]
    return np.array(found, np.float64).reshape(len(profiles), len(attributes), 2)


def box_profile(box: Floats, attributes: Sequence[str]) -> Profile:
    """The profile of a closed box; a side that is infinite both ways asks nothing, not even for a value.

    >>> str(box_profile(np.array([[1.0, 2.0], [3.0, np.inf]]), ["x", "y"]))
    'x BETWEEN 1.0 AND 2.0 AND y >= 3.0'
    """
    parts = (_condition(name, float(low), float(high)) for name, (low, high) in zip(attributes, box, strict=True))
    return Profile.from_expression(conjunction(part for part in parts if part is not None))


def _condition(attribute: str, low: float, high: float) -> Expression | None:
    if math.isfinite(low) and math.isfinite(high):
        return Between(attribute, low, high)
    if math.isfinite(low):
        return Compare(attribute, ">=", low)
    return Compare(attribute, "<=", high) if math.isfinite(high) else None


def _side(profile: Profile, attribute: str) -> tuple[float, float]:
    """The hull of what a profile lets an attribute be."""
    if profile.boxes is None:
        return EVERYTHING
    if not profile.boxes:
        return 0.0, 0.0
    sides = [_hull(box[attribute]) if attribute in box else EVERYTHING for box in profile.boxes]
    return min(low for low, _ in sides), max(high for _, high in sides)


def _hull(values: ValueSet) -> tuple[float, float]:
    """Null, text and the rest have no place on the number line: where they may match, everything may."""
    if values.null or values.other or values.string or values.boolean or values.timestamp or not values.number:
        return EVERYTHING
    first, last = values.number[0].low, values.number[-1].high
    low = -math.inf if first is None else _outward(first, -math.inf)
    return low, math.inf if last is None else _outward(last, math.inf)


def _outward(bound: object, towards: float) -> float:
    """A bound as a float that is not inside it: large integers have no float of their own."""
    assert isinstance(bound, int | float)
    try:
        value = float(bound)
    except OverflowError:
        return math.inf if bound > 0 else -math.inf
    inside = value > bound if towards < 0 else value < bound
    return math.nextafter(value, towards) if inside else value
