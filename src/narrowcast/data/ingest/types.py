"""The types that a person may give an attribute, by the names that SQL, Spark, Arrow and Python have for them."""

from __future__ import annotations

from collections.abc import Mapping

from narrowcast.errors import InputError

NAMES = {
    "bigint": ("int", "integer", "long", "int64"),
    "double": ("float", "real", "number", "float64"),
    "string": ("text", "str", "varchar"),
    "boolean": ("bool",),
    "timestamp": ("datetime",),
    "date": (),
}
_TYPE = {name: kind for kind, others in NAMES.items() for name in (kind, *others)}


def attribute_types(given: Mapping[str, str]) -> dict[str, str]:
    """Each attribute's type as Spark calls it; an InputError that lists the types there are.

    >>> attribute_types({"year": "int", "symbol": "Text"})
    {'year': 'bigint', 'symbol': 'string'}
    >>> attribute_types({"price": "money"})
    Traceback (most recent call last):
    narrowcast.errors.InputError: the type of 'price' must be one of bigint (int, integer, long, int64), double \
(float, real, number, float64), string (text, str, varchar), boolean (bool), timestamp (datetime), date, got 'money'
    """
    for name, kind in given.items():
        if kind.lower() not in _TYPE:
            known = ", ".join(kind + (f" ({', '.join(others)})" if others else "") for kind, others in NAMES.items())
            message = f"the type of {name!r} must be one of {known}, got {kind!r}"
            raise InputError(message, name="type", allowed=tuple(_TYPE), got=kind)
    return {name: _TYPE[kind.lower()] for name, kind in given.items()}
