"""A message's attributes as bytes and back: JSON, with a tag where JSON has no type of its own."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from narrowcast.deliver.wire.frame import Malformed
from narrowcast.errors import InputError

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_PLAIN = json.JSONDecoder()
# Between payloads that are decoded together. Nobody can guess it, so none can pass for another number of them.
_MARK = (1 << 62) | secrets.randbits(62)
_BETWEEN = b",%d," % _MARK


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


def decode_payloads(data: Sequence[bytes]) -> list[dict[str, Any] | Malformed]:
    """The same for many: one call of the decoder where they are plain and sound, at a third of the price.

    >>> decode_payloads([b'{"price":1}', b'{"price":'])
    [{'price': 1}, Malformed(reason='payload')]
    """
    together = _BETWEEN.join(data)
    if len(data) > 1 and b'"$' not in together:
        try:
            found = _PLAIN.decode(f"[{together.decode()}]")
        except (ValueError, OverflowError, RecursionError):
            found = ()
        rows: list[dict[str, Any] | Malformed] = list(found[::2])
        sound = len(found) == 2 * len(data) - 1 and found[1::2].count(_MARK) == len(data) - 1
        if sound and all(type(row) is dict for row in rows):
            return rows
    return [decode_payload(each) for each in data]


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
    raise TypeError(f"an attribute cannot be of type {type(value).__name__}")


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
