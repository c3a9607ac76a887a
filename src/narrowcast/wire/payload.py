"""A message's attributes as bytes and back: JSON, with a tag where JSON has no type of its own."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from narrowcast.errors import InputError
from narrowcast.wire.frame import Malformed

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_PLAIN = json.JSONDecoder()


def encode_payload(message: Mapping[str, Any]) -> bytes:
    """The bytes of a message. Moments are whole microseconds in UTC; without a zone they are UTC.

    >>> encode_payload({"symbol": "IBM", "price": 101.5})
    b'{"symbol":"IBM","price":101.5}'
    """
    try:
        return _ENCODER.encode(message if type(message) is dict else dict(message)).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"a message cannot be sent: {error}", name="message", got=message) from None


def decode_payload(data: bytes) -> dict[str, Any] | Malformed:
    """The attributes of a message, or why there are none. Never raises.

    >>> decode_payload(b'{"price": 101.5}')
    {'price': 101.5}
    """
    try:
        found = (_TAGGED if b'"$' in data else _PLAIN).decode(data.decode())
    except (ValueError, OverflowError, RecursionError, InvalidOperation, binascii.Error):
        return Malformed("payload")
    return found if isinstance(found, dict) else Malformed("payload")


def _default(value: Any) -> Any:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return {"$time": (moment - _ZERO) // _MICRO}
    if isinstance(value, date):
        return {"$time": (datetime(value.year, value.month, value.day, tzinfo=UTC) - _ZERO) // _MICRO}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if hasattr(value, "tolist"):
        return value.tolist()  # NumPy's scalars and arrays
    raise TypeError(f"{type(value).__name__} is no type of an attribute")


def _untagged(found: dict[str, Any]) -> Any:
    if len(found) != 1:
        return found
    tag, value = next(iter(found.items()))
    if tag == "$time" and isinstance(value, int):
        return _ZERO + value * _MICRO
    if tag == "$decimal" and isinstance(value, str):
        return Decimal(value)
    if tag == "$bytes" and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    return found


_ENCODER = json.JSONEncoder(default=_default, separators=(",", ":"), ensure_ascii=False)
_TAGGED = json.JSONDecoder(object_hook=_untagged)
