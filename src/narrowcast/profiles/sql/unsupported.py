"""SQL that is not part of a profile, by name, and what to write instead."""

from __future__ import annotations

import re
from typing import NamedTuple


class Refusal(NamedTuple):
    """What is not supported, where, and what to write instead."""

    message: str
    position: int
    hint: str


ARITHMETIC = ("arithmetic is not supported", "work the constant out: for price * 1.1 > 110 write price > 100")
_SPELLINGS = "list the spellings: symbol IN ('ibm', 'IBM')"
_PATTERN = "write LIKE, where % is any text and _ one character"
_FUNCTIONS = dict.fromkeys(("LOWER", "UPPER", "LCASE", "UCASE", "INITCAP"), _SPELLINGS)
_FUNCTIONS |= dict.fromkeys(("CONTAINS", "STARTSWITH", "ENDSWITH", "REGEXP_LIKE"), _PATTERN)
_WORDS = {
    "ILIKE": ("ILIKE is not supported", "write LIKE, or a LIKE for each spelling"),
    "RLIKE": ("RLIKE is not supported", _PATTERN),
    "REGEXP": ("REGEXP is not supported", _PATTERN),
    "GLOB": ("GLOB is not supported", _PATTERN),
    "SIMILAR": ("SIMILAR TO is not supported", _PATTERN),
    "DISTINCT": ("IS DISTINCT FROM is not supported", "write = or <> together with IS NULL"),
    "DIV": ARITHMETIC,
    "MOD": ARITHMETIC,
}
_OPENINGS = {
    "CASE": ("CASE is not supported", "write its branches with AND and OR"),
    "SELECT": ("subqueries are not supported", "list the values, up to 10,000 of them"),
}
_LAST_WORD = re.compile(r"\b(\w+)\s*\Z")


def function(name: str, position: int, before_list: bool) -> Refusal:
    """A name before an opening parenthesis.

    >>> function("lower", 0, before_list=False)
    Refusal(message='lower() is not supported', position=0, hint="list the spellings: symbol IN ('ibm', 'IBM')")
    """
    found = (_WORDS | _OPENINGS).get(name.upper())
    if found is not None:
        return Refusal(found[0], position, found[1])
    plain = "is IN missing before the list?" if before_list else "compare the attribute itself with a constant"
    return Refusal(f"{name}() is not supported", position, _FUNCTIONS.get(name.upper(), plain))


def construct(text: str, position: int, word: str) -> Refusal | None:
    """The construct that a word which cannot stand here, or the word before it, belongs to; None if it is no such.

    >>> construct("CASE WHEN a THEN b END", 5, "WHEN")
    Refusal(message='CASE is not supported', position=0, hint='write its branches with AND and OR')
    """
    if word.upper() in _WORDS:
        message, hint = _WORDS[word.upper()]
        return Refusal(message, position, hint)
    start = max(0, position - 40)
    before = _LAST_WORD.search(text[start:position])
    if before is None or before.group(1).upper() not in _OPENINGS:
        return None
    message, hint = _OPENINGS[before.group(1).upper()]
    return Refusal(message, start + before.start(), hint)
