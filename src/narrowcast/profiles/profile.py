"""A profile: what a subscriber wants, as the WHERE clause of SQL over a message's attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from narrowcast.profiles.algebra.compare import covered, disjoint
from narrowcast.profiles.algebra.normal_form import Box, boxes
from narrowcast.profiles.limits import LIMITS, UNBOUND, ProfileLimits
from narrowcast.profiles.sql import syntax
from narrowcast.profiles.sql.syntax import And, Expression, IsNull, Kind, Not, Or
from narrowcast.profiles.sql.text import to_text
from narrowcast.profiles.sql.truth import truth

# More boxes than this are not made; such profiles are compared through their parts.
MOST_BOXES = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """A condition over a message's attributes.

    Its meaning is Spark SQL's: a message matches if `WHERE profile` would keep it. Two profiles are
    equal when their canonical texts are.

    >>> p = Profile.parse("symbol = 'IBM' AND price > 100")
    >>> p.matches({"symbol": "IBM", "price": 101}), p.matches({"symbol": "IBM"})
    (True, False)
    >>> Profile.parse("price > 5").covers(p), p - Profile.parse("price > 200")
    (True, Profile("symbol = 'IBM' AND price > 100 AND (price > 200) IS NOT TRUE"))
    """

    expression: Expression

    @classmethod
    def parse(cls, text: str, *, limits: ProfileLimits | None = LIMITS) -> Profile:
        """From text. `limits=None` is for text that narrowcast printed itself, such as a channel's.

        Raises ProfileError, one line that names the place and how to fix it.
        """
        from narrowcast.profiles.shapes import parse

        return cls(parse(text, UNBOUND if limits is None else limits))

    @classmethod
    def from_expression(cls, expression: Expression) -> Profile:
        """From nodes of `narrowcast.profiles.sql.syntax`. No limits apply."""
        return cls(expression)

    @classmethod
    def from_criteria(cls, criteria: Mapping[str, Any] | Sequence[Any]) -> Profile:
        """From (type, name, operator, value) criteria under major, minor and sub keys.

        >>> ibm = {"major": ["string", "financial", "NYSE"], "where": ["float", "current_price", ">", 100]}
        >>> str(Profile.from_criteria(ibm))
        "financial = 'NYSE' AND current_price > 100"
        """
        from narrowcast.profiles.criteria import read_criteria

        return cls(read_criteria(criteria))

    @classmethod
    def any_of(cls, profiles: Iterable[Profile]) -> Profile:
        """What any of the profiles wants; of none, nothing. Linear, for thousands too."""
        return cls(syntax.disjunction(profile.expression for profile in profiles))

    @cached_property
    def text(self) -> str:
        """The canonical text, which parses back to the same meaning."""
        return to_text(self.expression)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes it speaks of, sorted."""
        return tuple(sorted({term.attribute for term in syntax.terms(self.expression)}))

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of the constants each attribute is compared with; no entry when there is none.

        Where profiles of different kinds were put together the first kind stands.
        """
        found: dict[str, Kind] = {}
        for term in syntax.terms(self.expression):
            if not isinstance(term, IsNull):
                found.setdefault(term.attribute, term.kind)
        return found

    @cached_property
    def boxes(self) -> tuple[Box, ...] | None:
        """The normal form: where it is true, as a union of boxes; None when that takes too many."""
        return boxes(self.expression, MOST_BOXES)

    @cached_property
    def _parts(self) -> frozenset[Expression]:
        """What an OR is made of: a part, or an OR of some parts, is covered without looking inside."""
        expression = self.expression
        return frozenset(expression.parts if isinstance(expression, Or) else (expression,))

    def matches(self, message: Mapping[str, Any]) -> bool:
        """Whether a message is wanted; an attribute it lacks is null. O(terms)."""
        return truth(self.expression, message) is True

    def covers(self, other: Profile) -> bool:
        """Whether every message that `other` matches is matched here; a yes is proven.

        Exact on what users write. Where the proof would take too long the answer is False.
        """
        if self is other or self._parts >= other._parts:
            return True
        if self.boxes is not None and other.boxes is not None:
            return covered(other.boxes, self.boxes)
        return self._covers_by_parts(other)

    def is_covered_by(self, others: Sequence[Profile]) -> bool:
        """Whether some profiles together match whatever this one does; a yes is proven.

        What `Profile.any_of(others).covers(self)` says, without a normal form of all of them together.

        >>> low, high = Profile.parse("p < 5"), Profile.parse("p > 3")
        >>> Profile.parse("p BETWEEN 1 AND 9").is_covered_by([low, high]), Profile.parse("p > 1").is_covered_by([low])
        (True, False)
        """
        if any(other.covers(self) for other in others):
            return True
        wide = [other.boxes for other in others]
        if self.boxes is None or any(each is None for each in wide):
            return len(others) > 1 and Profile.any_of(others).covers(self)
        return covered(self.boxes, [box for each in wide if each is not None for box in each])

    def _covers_by_parts(self, other: Profile) -> bool:
        mine, theirs = self.expression, other.expression
        if isinstance(theirs, Or):
            return all(self.covers(Profile(part)) for part in theirs.parts)
        if isinstance(mine, And):
            return all(Profile(part).covers(other) for part in mine.parts)
        if isinstance(mine, Or) and any(Profile(part).covers(other) for part in mine.parts):
            return True
        if not isinstance(theirs, And):
            return False
        # a - b - c - … is inside a, however much is taken away.
        base = [part for part in theirs.parts if not isinstance(part, Not)]
        return len(base) < len(theirs.parts) and self.covers(Profile(syntax.conjunction(base)))

    def overlaps(self, other: Profile) -> bool:
        """Whether some message may match both; a no is proven."""
        if self.boxes is not None and other.boxes is not None:
            return not disjoint(self.boxes, other.boxes)
        for whole, apart in ((self, other), (other, self)):
            if whole.boxes is None and isinstance(whole.expression, Or):
                return any(Profile(part).overlaps(apart) for part in whole.expression.parts)
            if whole.boxes is None and isinstance(whole.expression, And):
                return all(Profile(part).overlaps(apart) for part in whole.expression.parts)
        return True

    def __and__(self, other: Profile) -> Profile:
        return Profile(syntax.conjunction((self.expression, other.expression)))

    def __or__(self, other: Profile) -> Profile:
        return Profile(syntax.disjunction((self.expression, other.expression)))

    def __sub__(self, other: Profile) -> Profile:
        """What this matches and `other` does not match, whether false or unknown there."""
        return Profile(syntax.minus(self.expression, other.expression))

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Profile) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[object, ...]:
        return Profile, (self.expression,)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Profile({self.text!r})"
