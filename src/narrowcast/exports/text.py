"""Names as each form of text can hold them: XML, CSV, subjects. Nothing is lost and nothing is taken for markup."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from narrowcast.errors import InputError

# What XML 1.0 cannot hold, not even as a reference (production [2], Char).
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# How a cell begins that spreadsheets compute, unless it is a number.
_FORMULA = re.compile(r"'*([=@\t\r]|[+-](?![\d.]+(e[+-]?\d+)?$))", re.IGNORECASE)
_QUOTES = {'"': "&quot;", "'": "&apos;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def xml(text: str) -> str:
    """Text inside an element or an attribute in double quotes; a parser gives back exactly this text.

    >>> xml("a<b> & \\"c\\"")
    'a&lt;b&gt; &amp; &quot;c&quot;'
    """
    bad = _NOT_XML.search(text)
    if bad:
        raise InputError(
            f"{text!r} has the character U+{ord(bad.group()):04X}, which XML cannot hold", name="flow", hint="rename it"
        )
    return escape(text, _QUOTES)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV (RFC 4180, but lines end in \\n): text is quoted, numbers are not.

    What a spreadsheet would take for a formula has an apostrophe before it, as spreadsheets write it themselves; so has
    what begins with apostrophes and would be one without them. Taking one away there gives every text back.

    >>> print(table(["flow"], [["=cmd|' /C calc'!A0"], ["-3"], [-3]]), end="")
    "flow"
    "'=cmd|' /C calc'!A0"
    "-3"
    -3
    """
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([_no_formula(column) for column in columns])
    writer.writerows([_no_formula(cell) for cell in row] for row in rows)
    return stream.getvalue()


def _no_formula(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def token(name: str) -> str:
    """A name as one token of a subject: bytes other than letters, digits, _ and - as %XX; never empty.

    >>> token("BRK.B *"), token("")
    ('BRK%2EB%20%2A', '%')
    """
    return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in name.encode()) or "%"
