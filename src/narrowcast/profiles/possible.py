"""Whether a profile can match any message of a flow, given the flow's key alone.

Everything but the key is unknown, so a term on another attribute may turn out either way. A no is
certain; where in doubt the answer is yes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from narrowcast.profiles.flow_key import NULL
from narrowcast.profiles.sql.syntax import And, Compare, Expression, In, IsNull, IsTrue, Not, Or, Term
from narrowcast.profiles.sql.truth import truth

TRUE, FALSE, NULLED = 1, 2, 4  # a set of outcomes, as bits
ANY = TRUE | FALSE | NULLED


def possible(expression: Expression, flow: str, key: Sequence[str]) -> bool:
    """Whether some message of the flow may match.

    >>> from narrowcast.profiles import Profile
    >>> wish = Profile.parse("symbol IN ('IBM', 'GE') AND price > 100").expression
    >>> [possible(wish, flow, ["symbol"]) for flow in ("IBM", "MSFT")]
    [True, False]
    """
    parts = split(flow, len(key))
    if parts is None:
        return True
    return bool(_outcomes(expression, dict(zip(key, parts, strict=True))) & TRUE)


def certain(expression: Expression, flow: str, key: Sequence[str]) -> bool:
    """Whether every message of the flow matches, so that none has to be looked at.

    Only for keys that can be nothing but text: a number or a moment may have the text of another value.

    >>> from narrowcast.profiles import Profile
    >>> wish = Profile.parse("symbol IN ('IBM', 'GE') OR symbol = 'HP' AND price > 100").expression
    >>> [certain(wish, flow, ["symbol"]) for flow in ("IBM", "HP", "MSFT")]
    [True, False, False]
    """
    parts = split(flow, len(key))
    if parts is None or not all(part is not None and _only_text(part) for part in parts):
        return False
    return _outcomes(expression, dict(zip(key, parts, strict=True))) == TRUE


def _only_text(text: str) -> bool:
    """Whether no value but this text has this text: it looks like no number, truth value, moment, list or bytes."""
    return text[:1].isalpha() and text[1:2] not in ("'", '"') and not _readings(text)


def possible_elsewhere(expression: Expression, flows: Container[str], key: Sequence[str]) -> bool:
    """Whether a message of none of these flows may match.

    Only a text that is listed is known not to occur; a number may have been listed in another spelling.
    """
    if len(key) != 1:
        return True
    return bool(_outcomes(expression, {key[0]: flows}) & TRUE)


def candidates(expression: Expression, key: Sequence[str]) -> frozenset[str] | None:
    """Flows beyond which a profile cannot match, read off its equalities; None if they do not say.

    >>> from narrowcast.profiles import Profile
    >>> sorted(candidates(Profile.parse("s IN ('a', 'b') AND p > 1 OR s = 'c'").expression, ["s"]))
    ['a', 'b', 'c']
    """
    if len(key) != 1:
        return None
    if isinstance(expression, And):
        found = [texts for part in expression.parts if (texts := candidates(part, key)) is not None]
        return min(found, key=len, default=None)
    if isinstance(expression, Or):
        union: set[str] = set()
        for part in expression.parts:
            texts = candidates(part, key)
            if texts is None:
                return None
            union |= texts
        return frozenset(union)
    return _named(expression, key[0])


def _named(expression: Expression, attribute: str) -> frozenset[str] | None:
    """The texts that a single equality or IN list names."""
    if isinstance(expression, In) and expression.attribute == attribute and expression.kind == "string":
        return expression.members
    if isinstance(expression, Compare) and expression.attribute == attribute and expression.op == "=":
        return frozenset({str(expression.value)}) if expression.kind == "string" else None
    return None


def split(flow: str, n: int) -> list[str | None] | None:
    """The texts of a flow's key attributes; None if the name does not have so many."""
    if n == 1:
        return [None if flow == NULL else flow]
    parts, now, escaped = [], "", False
    for letter in flow:
        if escaped:
            now, escaped = now + ("\\N" if letter == "N" else letter), False
        elif letter == "\\":
            escaped = True
        elif letter == "|":
            parts.append(now)
            now = ""
        else:
            now += letter
    parts.append(now)
    return [None if part == NULL else part for part in parts] if len(parts) == n else None


def _outcomes(expression: Expression, key: Mapping[str, str | Container[str] | None]) -> int:
    """The outcomes a condition can have. AND and OR take their parts as independent: never too few."""
    if isinstance(expression, And | Or):
        stop, go = (FALSE, TRUE) if isinstance(expression, And) else (TRUE, FALSE)
        found = [_outcomes(part, key) for part in expression.parts]
        every = go if all(o & go for o in found) else 0
        some = stop if any(o & stop for o in found) else 0
        unknown = NULLED if any(o & NULLED for o in found) and all(o & ~stop for o in found) else 0
        return every | some | unknown
    if isinstance(expression, Not):
        inner = _outcomes(expression.part, key)
        return (inner & NULLED) | (FALSE if inner & TRUE else 0) | (TRUE if inner & FALSE else 0)
    if isinstance(expression, IsTrue):
        inner = _outcomes(expression.part, key)
        return (TRUE if inner & TRUE else 0) | (FALSE if inner & ~TRUE else 0)
    return _of_term(expression, key) if isinstance(expression, Term) else ANY


def _of_term(term: Term, key: Mapping[str, str | Container[str] | None]) -> int:
    if term.attribute not in key:
        return ANY
    text = key[term.attribute]
    if text is not None and not isinstance(text, str):
        named = _named(term, term.attribute)
        return ANY if named is None or not all(each in text for each in named) else FALSE | NULLED
    if text is None:
        # A null key and the text \\N have one name.
        return _seen(term, None) | _seen(term, NULL)
    if isinstance(term, IsNull):
        return _seen(term, text)
    if term.kind == "timestamp":
        return ANY
    found = _seen(term, text)
    for value in _readings(text):
        found |= _seen(term, value)
    return found


def _seen(term: Term, value: Any) -> int:
    found = truth(term, {term.attribute: value})
    return NULLED if found is None else TRUE if found else FALSE


def _readings(text: str) -> list[Any]:
    """What a value may have been before it became text."""
    readings: list[Any] = [text in ("true", "True")] if text.lower() in ("true", "false") else []
    try:
        readings += [Decimal(text), float(text)]
        readings.append(int(text))
    except (InvalidOperation, ValueError, OverflowError):
        pass
    return readings
