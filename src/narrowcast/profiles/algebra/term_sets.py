"""Each term as two sets of values of its attribute: where it is true and where it is false.

Where it is neither (null, another kind, a miss in an IN list with NULL) it is unknown.
"""

from __future__ import annotations

from narrowcast.profiles.algebra import intervals
from narrowcast.profiles.algebra.emptiness import successor
from narrowcast.profiles.algebra.intervals import EVERYTHING, Interval
from narrowcast.profiles.algebra.sets import NOT_NULL, NOTHING, NULL, STRINGS, StringPiece, ValueSet, union
from narrowcast.profiles.sql.like import ANY, Pattern, Wildcard, read_pattern
from narrowcast.profiles.sql.syntax import Between, Compare, Finds, In, IsNull, Kind, Like, Operator, Term, Value
from narrowcast.profiles.sql.values import plain_constant
from narrowcast.profiles.xpath.xpath import xpath_of

_EVERY: dict[Kind, ValueSet] = {
    "number": ValueSet(number=EVERYTHING),
    "string": ValueSet(string=STRINGS),
    "boolean": ValueSet(boolean=frozenset((True, False))),
    "timestamp": ValueSet(timestamp=EVERYTHING),
}


def true_set(term: Term) -> ValueSet:
    """The values that make a term true."""
    match term:
        case Compare():
            return _compared(term.op, term.value, term.kind)
        case Between():
            return _compared(">=", term.low, term.kind).intersection(_compared("<=", term.high, term.kind))
        case In():
            return _any_of(term)
        case Like():
            return ValueSet(string=like_pieces(read_pattern(term.pattern), wanted=True))
        case Finds():
            return _found(term, wanted=True)
        case IsNull():
            return NULL


def false_set(term: Term) -> ValueSet:
    """The values that make a term false."""
    match term:
        case In(has_null=True):
            return NOTHING
        case Like():
            return ValueSet(string=like_pieces(read_pattern(term.pattern), wanted=False))
        case Finds():
            return _found(term, wanted=False)
        case IsNull():
            return NOT_NULL
        case _:
            return _EVERY[term.kind].minus(true_set(term))


def _found(term: Finds, wanted: bool) -> ValueSet:
    return ValueSet(string=(StringPiece(likes=frozenset({(xpath_of(term.path), wanted)})),))


def _any_of(term: In) -> ValueSet:
    """Where an IN list is true; its points are put in order once, not one by one."""
    if term.kind == "boolean" or len(term.values) == 1:
        return union(_compared("=", value, term.kind) for value in term.values)
    return _of_kind(intervals.points(term.members, term.kind), term.kind)


def _of_kind(found: tuple[Interval, ...], kind: Kind) -> ValueSet:
    match kind:
        case "string":
            return ValueSet(string=tuple(map(StringPiece, found)))
        case "timestamp":
            return ValueSet(timestamp=found)
        case _:
            return ValueSet(number=found)


def _compared(op: Operator, value: Value, kind: Kind) -> ValueSet:
    plain = plain_constant(value)
    if kind == "boolean":
        return ValueSet(boolean=frozenset(b for b in (False, True) if _holds(b, op, bool(plain))))
    bound: int | float | str = plain  # type: ignore[assignment]  # constants are never Decimal
    match op:
        case "=":
            found = [Interval(bound, True, bound, True)]
        case "<>":
            found = [Interval(None, False, bound, False), Interval(bound, False)]
        case "<" | "<=":
            found = [Interval(None, False, bound, op == "<=")]
        case _:
            found = [Interval(bound, op == ">=")]
    return _of_kind(tuple(found) if kind == "number" else intervals.union(found, kind), kind)


def _holds(left: bool, op: Operator, right: bool) -> bool:
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[op]


def like_pieces(pattern: Pattern, wanted: bool) -> tuple[StringPiece, ...]:
    """The strings that match a pattern, or that do not: intervals where those are exact.

    >>> like_pieces(read_pattern("Fed%"), wanted=True)
    (StringPiece(interval=Interval(low='Fed', low_closed=True, high='Fee', high_closed=False), likes=frozenset()),)
    """
    first = pattern[0] if pattern else ""
    prefix = "" if isinstance(first, Wildcard) else first
    exact = all(isinstance(part, str) for part in pattern)
    stem = Interval(prefix, True, prefix, True) if exact else Interval(prefix, True, successor(prefix), False)
    matching = intervals.union((stem,), "string")
    if exact or pattern in ((ANY,), (prefix, ANY)):
        found = matching if wanted else intervals.complement(matching, "string")
        return tuple(StringPiece(interval) for interval in found)
    if not wanted:
        return (StringPiece(Interval(), frozenset({(pattern, False)})),)
    return tuple(StringPiece(interval, frozenset({(pattern, True)})) for interval in matching)
