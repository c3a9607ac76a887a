"""Constants as they are written: text in single quotes, numbers, moments, and the list of an IN.

The regular expressions here say where a constant begins and ends, the functions what it means. The
lexer and the parser by shape share both.
"""

from __future__ import annotations

import math
import re
from datetime import datetime

from narrowcast.profiles.sql.moments import read_moment
from narrowcast.profiles.sql.syntax import Value, kind_of_constant

STRING = r"(?:'[^']*+')++"  # '' inside is a quote
NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w)"
MOMENT = rf"(?i:timestamp|date)\s*+{STRING}"
_WORD = r"(?i:null|true|false)(?!\w)"
_ANY = rf"(?:{STRING}|{NUMBER}|{MOMENT}|{_WORD})"
LIST = rf"\(\s*+{_ANY}\s*+(?:,\s*+{_ANY}\s*+)*+\)"

ITEM = re.compile(rf"(?P<STRING>{STRING})|(?P<MOMENT>{MOMENT})|(?P<NUMBER>{NUMBER})|(?P<WORD>{_WORD})")


def read_string(text: str) -> str:
    """The text that a quoted text means.

    >>> read_string("'it''s'")
    "it's"
    """
    if text[0] != "'":
        raise ValueError(f"not a quoted text: {text}")
    return text[1:-1].replace("''", "'")


def read_number(text: str) -> int | float:
    """The number that a written one means; OverflowError if it is too large to hold.

    >>> read_number("+5"), read_number("-.5e1"), read_number("-0.0")
    (5, -5.0, 0.0)
    """
    if text.lstrip("+-").isdecimal():
        try:
            return int(text)
        except ValueError:  # past 4300 digits, which Python neither reads nor writes
            raise OverflowError from None
    number = float(text)
    if math.isinf(number):
        raise OverflowError
    return number or 0.0  # no minus zero: it equals zero and would only print oddly


def read_written_moment(text: str) -> datetime:
    """The moment that DATE '…' or TIMESTAMP '…' means; ValueError if there is none.

    >>> read_written_moment("DATE '2024-02-29'")
    datetime.datetime(2024, 2, 29, 0, 0, tzinfo=datetime.timezone.utc)
    """
    word, _, rest = text.partition("'")
    inner = rest[:-1].strip()
    moment = read_moment(inner)
    if not word or moment is None or (is_date(text) and len(inner) != 10):
        raise ValueError(f"not a moment: {text}")
    return moment


def is_date(text: str) -> bool:
    """Whether a written moment is a DATE."""
    return text[:4].upper() == "DATE"


def read_list(text: str) -> tuple[tuple[Value, ...], bool]:
    """The values of an IN list, each once and in their order, and whether NULL is among them.

    ValueError or OverflowError if a constant is wrong or of another kind than the first. Linear, and
    quick for plain texts and whole numbers.

    >>> read_list("('a', 'b', 'a')"), read_list("(1, NULL, 2.5)")
    ((('a', 'b'), False), ((1, 2.5), True))
    """
    if text[0] != "(":
        raise ValueError(f"not a list: {text}")
    plain = _plain_texts(text) or _whole_numbers(text)
    if plain is not None:
        return tuple(dict.fromkeys(plain)), False
    values = [_item(found) for found in ITEM.finditer(text, 1)]
    known = [value for value in values if value is not None]
    if len({kind_of_constant(value) for value in known}) > 1:
        raise ValueError("values of several kinds")
    return tuple(dict.fromkeys(known)), len(known) < len(values)


def _plain_texts(text: str) -> list[str] | None:
    """The values of a list of texts without quotes inside; None if it is another."""
    if "''" in text:
        return None
    parts = text.split("'")
    return parts[1::2] if not "".join(parts[::2]).strip("(), \n\t") else None


def _whole_numbers(text: str) -> list[int] | None:
    """The values of a list of whole numbers; None if it is another."""
    try:
        return list(map(int, text[1:-1].split(",")))
    except ValueError:
        return None


def _item(found: re.Match[str]) -> Value | None:
    written = found.group()
    match found.lastgroup:
        case "STRING":
            return read_string(written)
        case "NUMBER":
            return read_number(written)
        case "MOMENT":
            return read_written_moment(written)
        case _:
            return {"NULL": None, "TRUE": True}.get(written.upper(), False)
