"""Which values a message may have: those that JSON, with a few tags, brings to the other side as they were.

As they were means: sequences come out as lists, mappings as dicts, NumPy's values as Python's, dates as their
midnight, moments in whole microseconds of UTC, and a moment that is none (NaT) as null. Whatever else would
come out as something else, or not at all, is refused here, before the log has it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from narrowcast.errors import InputError

MOST_DEPTH = 64  # lists and dicts in each other: far below where a decoder gives up, wherever it is called
MOST_DIGITS = 4300  # of a whole number: what Python reads unless told otherwise

_HUGE = 10**MOST_DIGITS
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
TAGS = {"$time": int, "$decimal": str, "$bytes": str}


def is_tagged(found: Mapping[str, Any]) -> bool:
    """Whether a JSON object stands for a value that JSON has no type for.

    >>> is_tagged({"$time": 0}), is_tagged({"$time": "noon"})
    (True, False)
    """
    if len(found) != 1:
        return False
    ((name, value),) = found.items()
    return isinstance(value, TAGS.get(name, ()))


def sendable(message: Mapping[Any, Any], most: int) -> dict[str, Any]:
    """The message as JSON has it. InputError, with the attribute's name, if there is no such thing.

    A message of many times `most` characters is not looked at to its end: it cannot be sent, however it goes on.

    >>> sendable({"at": datetime(1970, 1, 2), "bid": (1, 2)}, 100)
    {'at': {'$time': 86400000000}, 'bid': [1, 2]}
    """
    found: dict[str, Any] = {}
    values = _Values(most)
    for name, value in message.items():
        try:
            found[values.name(name)] = values.plain(value)
        except InputError:
            raise
        except Exception as error:  # values may bring code of their own
            why = str(error) or type(error).__name__
            raise InputError(f"attribute {name!r:.80} cannot be sent: {why}", name=str(name), got=value) from None
    if is_tagged(found):
        name = next(iter(found))
        raise InputError(f"attribute {name!r} cannot be sent alone: the name is taken", name=name, got=message)
    return found


class _Values:
    """The values of one message; TypeError or ValueError says what is wrong with one."""

    def __init__(self, most: int) -> None:
        self._most, self._left = most, 16 * most

    def plain(self, value: Any, depth: int = 0) -> Any:
        """A value as JSON has it."""
        self._spend(1)
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return _whole(value)
        if isinstance(value, date):
            return _moment(value)
        if isinstance(value, Decimal):
            return _decimal(value)
        if isinstance(value, bytes | bytearray):
            self._spend(len(value))
            return {"$bytes": base64.b64encode(value).decode()}
        if depth == MOST_DEPTH:
            raise ValueError(f"values must be nested at most {MOST_DEPTH} deep")
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, list | tuple):
            return [self.plain(each, depth + 1) for each in value]
        return self.plain(_unpacked(value), depth + 1)

    def name(self, name: Any) -> str:
        if not isinstance(name, str):
            raise TypeError(f"names must be text, got {type(name).__name__}")
        return self._text(name)

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        found = {self.name(name): self.plain(each, depth + 1) for name, each in value.items()}
        if is_tagged(found):
            raise ValueError(f"a dict must not have {next(iter(found))} alone: the name is taken")
        return found

    def _text(self, value: str) -> str:
        self._spend(len(value))
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("text must be Unicode, got half of a surrogate pair") from None
        return value

    def _spend(self, characters: int) -> None:
        """A value that holds itself, or one thing a million times, ends here."""
        self._left -= characters
        if self._left < 0:
            raise InputError(f"message must be at most {self._most} bytes, got more", name="message")


def _whole(value: int) -> int:
    if not -_HUGE < value < _HUGE:
        raise ValueError(f"whole numbers must have at most {MOST_DIGITS} digits")
    return value


def _moment(value: date) -> dict[str, int] | None:
    if value != value:  # as pandas has it for "no moment"
        return None
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    micros = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _ZERO) // _MICRO
    try:
        _ZERO + micros * _MICRO
    except OverflowError:
        raise ValueError("moments must be in the years 1 to 9999 of UTC") from None
    return {"$time": micros}


def _decimal(value: Decimal) -> dict[str, str]:
    if not value.is_finite():
        raise ValueError(f"decimals must be finite, got {value}")
    return {"$decimal": str(value)}


def _unpacked(value: Any) -> Any:
    """What is in NumPy's scalars and arrays, or in anything else that can list itself."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "M":
        return list(value) if value.ndim else _from_numpy(value)
    found = value.tolist() if hasattr(value, "tolist") and kind not in ("m", "V") else value
    if type(found) is type(value):
        raise TypeError(f"no message can have a value of type {type(value).__name__}")
    return found


def _from_numpy(value: Any) -> datetime | None:
    """Through whole microseconds: nanoseconds would come out as a bare number."""
    found: datetime | int | None = value.astype("datetime64[us]").tolist()
    if isinstance(found, int):
        raise ValueError("moments must be in the years 1 to 9999 of UTC")
    return found
