"""A profile's text cut into tokens, with a hint for the slips people make.

One regular expression does the cutting; the grammar in `parse.py` does the rest. Words are keywords
by themselves, so an attribute called `inside` or `ordering` is no trouble; `escape`, `date` and
`timestamp` are keywords only where one can stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lark import Token
from lark.lexer import Lexer

from narrowcast.errors import ProfileError
from narrowcast.profiles.sql.constants import LIST, MOMENT, NUMBER, STRING
from narrowcast.profiles.sql.unsupported import ARITHMETIC, function

_TOKEN = re.compile(
    rf"""
      (?P<SPACE>\s+)
    | (?P<MOMENT>{MOMENT})
    | (?P<NAME>(?:[^\W\d]\w*|`(?:[^`]|``)+`|"(?:[^"]|"")+")(?:\.(?:[^\W\d]\w*|`(?:[^`]|``)+`|"(?:[^"]|"")+"))*)
    | (?P<NUMBER>{NUMBER})
    | (?P<STRING>{STRING})
    | (?P<OP><>|!=|<=(?!>)|>=|==|=(?![<>])|<(?!=>)|>)
    | (?P<_LPAR>\()
    | (?P<_RPAR>\))
    | (?P<_COMMA>,)
    """,
    re.VERBOSE,
)
_LIST = re.compile(LIST)
_OPENS = re.compile(r"\s*\(")
_CONSTANTS = ("STRING", "NUMBER", "MOMENT", "LIST")
_KEYWORDS = {word: word for word in ("NOT", "NULL", "TRUE", "FALSE")} | {
    word: f"_{word}" for word in ("AND", "OR", "IN", "BETWEEN", "LIKE", "IS")
}
_HINTS = (
    ("'", "unclosed quote", "close the text with ' and write a quote inside it as ''"),
    ('"', "unclosed or empty quoted name", 'close the name with "; text takes single quotes'),
    ("`", "unclosed or empty quoted name", "close the name with `"),
    ("=>", "unknown operator =>", "write >="),
    ("=<", "unknown operator =<", "write <="),
    ("<=>", "unknown operator <=>", "use = together with IS NULL"),
    ("&&", "unknown operator &&", "write AND"),
    ("&", "unknown operator &", "write AND"),
    ("||", "unknown operator ||", "write OR; texts cannot be joined"),
    ("|", "unknown operator |", "write OR"),
    ("!", "unknown operator !", "write NOT"),
    (";", "a profile is one condition", "leave the semicolon out"),
    ("--", "comments are not part of a profile", "leave the comment out"),
    ("/*", "comments are not part of a profile", "leave the comment out"),
)


def spot(text: str, position: int) -> str:
    """Where a place is, for a one-line message.

    >>> spot("price => 5", 6)
    "at offset 6, near '=> 5'"
    """
    if position >= len(text):
        return f"at offset {position}, the end of the text"
    near = text[position : position + 20]
    return f"at offset {position}, near {near!r}"


def problem(message: str, text: str, position: int, hint: str | None = None) -> ProfileError:
    """A ProfileError of one line that names and quotes the place."""
    return ProfileError(f"{message} {spot(text, position)}", text=text, position=position, hint=hint)


def _refuse(text: str, position: int) -> ProfileError:
    rest = text[position : position + 3]
    for start, message, hint in _HINTS:
        if rest.startswith(start):
            return problem(message, text, position, hint)
    if text[position].isdigit() or (text[position] in "+-" and text[position + 1 : position + 2].isdigit()):
        return problem("not a number", text, position, "quote a name that begins with a digit: `52_week_high`")
    if text[position] in "+-*/%":
        return problem(ARITHMETIC[0], text, position, ARITHMETIC[1])
    return problem("unexpected character", text, position, None)


@dataclass(slots=True)
class SourceText:
    """A text to cut up, and how many parentheses may stand inside one another.

    Cutting it up notes the place of every constant, a whole IN list being one, and how many
    parentheses did stand inside one another.
    """

    text: str
    most_nested: int
    constants: list[tuple[int, int]] = field(default_factory=list)
    nested: int = 0


class ProfileLexer(Lexer):
    """What lark asks of a lexer: tokens with their offsets. Nesting is checked on the way."""

    __future_interface__ = 2

    def __init__(self, configuration: Any = None) -> None:
        """Lark hands over its configuration; nothing of it is needed."""

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        """The tokens of a Source."""
        source: SourceText = lexer_state.text
        text, most = source.text, source.most_nested
        position, depth, before, end, in_list = 0, 0, "", len(text), False
        word, word_start = "", 0
        while position < end:
            found = _TOKEN.match(text, position)
            if found is None:
                raise _refuse(text, position)
            kind, value, start = found.lastgroup or "", found.group(), position
            position = found.end()
            if kind == "SPACE":
                continue
            if kind == "NAME":
                kind, word, word_start = _keyword(value, before), value, start
                if value.lower() == "xpath_boolean" and _OPENS.match(text, position):
                    kind = "_XPATH"
            elif kind == "_LPAR" and before == "_IN" and (listed := _LIST.match(text, start)) is not None:
                kind, value, position = "LIST", listed.group(), listed.end()
            elif kind == "_LPAR":
                if before == "NAME":
                    refusal = function(word, word_start, before_list=_LIST.match(text, start) is not None)
                    raise problem(refusal.message, text, refusal.position, refusal.hint)
                in_list = before == "_IN"
                depth += not in_list
                if depth > most:
                    raise too_deep(text, start, most)
                source.nested = max(source.nested, depth)
            elif kind == "_RPAR":
                depth -= not in_list
                in_list = False
            if kind in _CONSTANTS:
                source.constants.append((start, position))
            before = kind
            yield Token(kind, value, start)


def _keyword(word: str, before: str) -> str:
    upper = word.upper()
    if upper == "ESCAPE" and before == "STRING":
        return "_ESCAPE"
    return _KEYWORDS.get(upper, "NAME")


def too_deep(text: str, position: int | None, most: int) -> ProfileError:
    """Refuse nesting past the limit."""
    message = f"nested more than {most} deep"
    hint = f"at most {most} levels of parentheses, NOT, AND, OR and IS TRUE inside one another"
    if position is None:
        return ProfileError(message, text=text, hint=hint)
    return problem(message, text, position, hint)
