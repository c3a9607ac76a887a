"""A finite grid of messages that tells every two sets of messages apart, for a few small profiles.

For each attribute: every constant, a value between each two neighbours, one outside each end, null,
and values of every other kind. Two conditions over these constants that agree on the whole grid
agree everywhere, as long as no LIKE is involved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise, product
from typing import Any

from narrowcast.profiles.sql.syntax import Between, Compare, Expression, In, IsNull, Like, terms


def _constants(expression: Expression) -> Iterator[tuple[str, Any]]:
    for term in terms(expression):
        match term:
            case Compare():
                yield term.attribute, term.value
            case Between():
                yield from ((term.attribute, term.low), (term.attribute, term.high))
            case In():
                yield from ((term.attribute, value) for value in term.values)
            case IsNull():
                yield term.attribute, None
            case Like():
                raise ValueError("a grid cannot stand for LIKE")


def _around(values: list[Any]) -> list[Any]:
    """The constants, the places between them and beyond them."""
    if not values:
        return []
    if isinstance(values[0], bool):
        return [False, True]
    if isinstance(values[0], str):
        return sorted({"", *values, *(value + "\0" for value in values), *(value + "\U0010ffff" for value in values)})
    if isinstance(values[0], datetime):
        step = timedelta(microseconds=1)
        return sorted({near for value in values for near in (value - step, value, value + step)})
    ordered = sorted(values)
    between = [(low + high) / 2 for low, high in pairwise(ordered)]
    return sorted({*ordered, *between, ordered[0] - 1, ordered[-1] + 1})


def grid(expressions: Iterable[Expression]) -> list[dict[str, Any]]:
    """Every combination of the telling values of each attribute."""
    constants: dict[str, list[Any]] = {}
    for expression in expressions:
        for name, value in _constants(expression):
            constants.setdefault(name, []).extend([] if value is None else [value])
    telling = {name: [None, b"other", *_around(values), *_strangers(values)] for name, values in constants.items()}
    return [dict(zip(telling, values, strict=True)) for values in product(*telling.values())]


def _strangers(values: list[Any]) -> list[Any]:
    kinds = {"s": "text", "n": 5, "b": True, "t": datetime(2000, 1, 1)}
    own = {str: "s", bool: "b", datetime: "t"}.get(type(values[0]), "n") if values else ""
    return [value for kind, value in kinds.items() if kind != own]
