"""CBM's notation for a profile: criteria (type, name, operator, value) under major, minor and sub keys.

An item of information is described by triples (type, name, value); a subscription names the item by
its keys and adds a filter criterion, combined by logical operators (§3.1 of the paper). As data:

    {"major": ["string", "financial", "NYSE"],
     "minor": ["string", "symbol", "IBM"],
     "sub":   [["boolean", "halted", false]],
     "where": {"or": [["float", "current_price", ">", 100], ["float", "52_week_high", "<", 110]]}}

Lists and objects only, so JSON will do. It is a second way to write the same profiles, no second
language: keys are equalities, and everything is joined by AND.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from narrowcast.errors import ProfileError
from narrowcast.profiles.limits import LIMITS, check_size
from narrowcast.profiles.sql.builder import OPERATORS
from narrowcast.profiles.sql.like import EscapeError, read_pattern, write_pattern
from narrowcast.profiles.sql.moments import read_moment
from narrowcast.profiles.sql.syntax import (
    Between,
    Compare,
    Expression,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Term,
    Value,
    conjunction,
    disjunction,
)

TYPES: dict[str, Kind] = {
    "string": "string",
    "int": "number",
    "integer": "number",
    "long": "number",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "timestamp": "timestamp",
}
KEYS = ("major", "minor", "sub", "where")
LOGIC = ("and", "or", "not")
WORDS = ("in", "between", "like", "is null", "is not null")


def read_criteria(criteria: Any) -> Expression:
    """The condition that criteria say; errors name the place as in `where.and[1]`."""
    reader = _Reader()
    if not isinstance(criteria, Mapping) or set(criteria) & set(LOGIC):
        return check_size(reader.criterion(criteria, "criteria", 0), repr(criteria), LIMITS)
    unknown = [key for key in criteria if key not in KEYS]
    if unknown or not criteria:
        raise _problem(
            f"criteria: unknown key {unknown[0]!r}" if unknown else "criteria: no key", f"use {_listed(KEYS)}"
        )
    parts: list[Expression] = [reader.key(criteria[place], place) for place in ("major", "minor") if place in criteria]
    subkeys = criteria.get("sub", ())
    parts += [reader.key(sub, f"sub[{i}]") for i, sub in enumerate(_sequence(subkeys, "sub", "a list of triples"))]
    if "where" in criteria:
        parts.append(reader.criterion(criteria["where"], "where", 1))
    return check_size(conjunction(parts), repr(criteria), LIMITS)


def _problem(message: str, hint: str) -> ProfileError:
    return ProfileError(message, hint=hint)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " or " + words[-1]


def _sequence(found: Any, place: str, wanted: str) -> Sequence[Any]:
    if isinstance(found, (list, tuple)):
        return found
    raise _problem(f"{place}: got {_short(found)}", f"write {wanted}")


def _short(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= 40 else text[:37] + "..."


class _Reader:
    """One pass over the criteria, remembering each attribute's kind."""

    def __init__(self) -> None:
        self.kinds: dict[str, Kind] = {}

    def key(self, found: Any, place: str) -> Expression:
        """A triple (type, name, value): the item has this value."""
        triple = _sequence(found, place, "[type, name, value]")
        if len(triple) != 3:
            raise _problem(f"{place} must have 3 entries, got {len(triple)}", "write [type, name, value]")
        return self.term([triple[0], triple[1], "=", triple[2]], place)

    def criterion(self, found: Any, place: str, depth: int) -> Expression:
        """(type, name, operator, value), or criteria joined by and, or, not."""
        if depth > LIMITS.depth:
            raise _problem(f"{place}: nested more than {LIMITS.depth} deep", "combine fewer levels")
        if not isinstance(found, Mapping):
            return self.term(_sequence(found, place, "[type, name, operator, value]"), place)
        if len(found) != 1 or next(iter(found)) not in LOGIC:
            raise _problem(f"{place}: got {_short(found)}", f"write an object with one key, {_listed(LOGIC)}")
        word, inner = next(iter(found.items()))
        if word == "not":
            return Not(self.criterion(inner, f"{place}.not", depth + 1))
        listed = _sequence(inner, f"{place}.{word}", "a list of criteria")
        if not listed:
            raise _problem(f"{place}.{word}: the list is empty", "name at least one criterion")
        parts = [self.criterion(part, f"{place}.{word}[{i}]", depth + 1) for i, part in enumerate(listed)]
        return conjunction(parts) if word == "and" else disjunction(parts)

    def term(self, found: Sequence[Any], place: str) -> Expression:
        if len(found) not in (3, 4):
            raise _problem(f"{place} must have 3 or 4 entries, got {len(found)}", "write [type, name, operator, value]")
        kind, name = self.kind(found[0], place), found[1]
        if not isinstance(name, str) or not name:
            raise _problem(f"{place}: the name must be text, got {_short(name)}", "write [type, name, operator, value]")
        if self.kinds.setdefault(name, kind) != kind:
            message = f"{place}: {name!r} is a {self.kinds[name]} elsewhere and a {kind} here"
            raise _problem(message, "one attribute holds one kind of value")
        word = " ".join(str(found[2]).lower().split())
        if word in ("is null", "is not null"):
            return IsNull(name) if word == "is null" else Not(IsNull(name))
        if len(found) != 4:
            raise _problem(f"{place}: the value is missing", "write [type, name, operator, value]")
        return self.compared(name, found[0], word, found[3], place)

    def kind(self, found: Any, place: str) -> Kind:
        kind = TYPES.get(found.lower()) if isinstance(found, str) else None
        if kind is None:
            raise _problem(f"{place}: unknown type {_short(found)}", f"use {_listed(tuple(TYPES))}")
        return kind

    def compared(self, name: str, kind: str, word: str, found: Any, place: str) -> Term:
        if word in OPERATORS:
            return Compare(name, OPERATORS[word], self.value(found, kind, place))
        if word == "in":
            values = [self.value(v, kind, place) for v in _sequence(found, place, "a list of values after in")]
            if not values:
                raise _problem(f"{place}: the list is empty", "name at least one value")
            return In(name, tuple(dict.fromkeys(values)))
        if word == "between":
            bounds = [self.value(v, kind, place) for v in _sequence(found, place, "[low, high] after between")]
            if len(bounds) != 2:
                raise _problem(f"{place}: expected 2 bounds, got {len(bounds)}", "write [low, high] after between")
            return Between(name, bounds[0], bounds[1])
        if word == "like":
            return self.like(name, self.value(found, kind, place), place)
        raise _problem(f"{place}: unknown operator {word!r}", f"use {_listed((*OPERATORS, *WORDS))}")

    def like(self, name: str, pattern: Value, place: str) -> Term:
        if not isinstance(pattern, str):
            raise _problem(f"{place}: like takes a text pattern", "give the attribute the type string")
        try:
            return Like(name, write_pattern(read_pattern(pattern)))
        except EscapeError as error:
            raise _problem(f"{place}: \\ in a pattern must stand before %, _ or itself", "double it") from error

    def value(self, found: Any, kind: str, place: str) -> Value:
        """A value that fits its declared type; whole numbers do for float, ISO text for timestamp."""
        wanted = kind.lower()
        if TYPES[wanted] == "timestamp":
            moment = read_moment(found) if isinstance(found, str) else found
            if isinstance(moment, datetime):
                return moment if moment.tzinfo is not None else cast(datetime, read_moment(moment.isoformat()))
        elif TYPES[wanted] == "number":
            whole_only = wanted in ("int", "integer", "long")
            if type(found) is int or (type(found) is float and not whole_only and math.isfinite(found)):
                return found or 0
        elif type(found) is (bool if TYPES[wanted] == "boolean" else str):
            return cast(Value, found)
        raise _problem(f"{place}: the value must be of type {wanted}, got {_short(found)}", "type and value must agree")
