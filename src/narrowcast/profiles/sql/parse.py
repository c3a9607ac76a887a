"""Reading a profile's text: an LALR grammar of SQL's WHERE clause, and errors that point at the place.

Strings are standard SQL's: `''` is a quote and the backslash is an ordinary character, except in a
LIKE pattern, where it is the default escape as in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, cast

from lark import Lark, Token, UnexpectedToken

from narrowcast.errors import ProfileError
from narrowcast.profiles.sql.builder import Builder
from narrowcast.profiles.sql.lexer import ProfileLexer, SourceText, problem
from narrowcast.profiles.sql.syntax import Expression
from narrowcast.profiles.sql.unsupported import ARITHMETIC, construct

GRAMMAR = r"""
%declare NAME STRING NUMBER MOMENT LIST OP NOT NULL TRUE FALSE
%declare _AND _OR _IN _BETWEEN _LIKE _ESCAPE _IS _XPATH _LPAR _RPAR _COMMA

?start: any_of
?any_of: all_of (_OR all_of)*
?all_of: opposite (_AND opposite)*
?opposite: NOT opposite -> negation
         | test
?test: primary                                                 -> condition
     | operand OP operand                                      -> comparison
     | operand _BETWEEN operand _AND operand                   -> between
     | operand NOT _BETWEEN operand _AND operand               -> not_between
     | operand _IN LIST                                        -> listed
     | operand NOT _IN LIST                                    -> not_listed
     | operand _IN _LPAR operand (_COMMA operand)* _RPAR       -> listed
     | operand NOT _IN _LPAR operand (_COMMA operand)* _RPAR   -> not_listed
     | operand _LIKE operand                                   -> like
     | operand _LIKE operand _ESCAPE STRING                    -> like
     | operand NOT _LIKE operand                               -> not_like
     | operand NOT _LIKE operand _ESCAPE STRING                -> not_like
     | _XPATH _LPAR operand _COMMA operand _RPAR               -> finds
     | primary _IS known                                       -> is_known
     | primary _IS NOT known                                   -> is_not_known
?primary: operand | _LPAR any_of _RPAR
?operand: NAME | STRING | NUMBER | MOMENT | NULL | TRUE | FALSE
?known: NULL | TRUE | FALSE
"""

_BUILDER = Builder()
_ONE_AT_A_TIME = Lock()


@cache
def _parser() -> Any:
    return Lark(GRAMMAR, parser="lalr", lexer=ProfileLexer, transformer=_BUILDER)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A condition, with the place of every constant in its text (an IN list is one) and the parentheses' depth."""

    expression: Expression
    constants: list[tuple[int, int]]
    nested: int


def parse(text: str, most_nested: int = 200) -> Expression:
    """The condition that a text says. Linear; never recursive, so no nesting can exhaust the stack.

    >>> parse("NOT 100 < price")
    Not(part=Compare(attribute='price', op='>', value=100, kind='number'))
    """
    return read(text, most_nested).expression


def read(text: str, most_nested: int) -> Parsed:
    """The condition that a text says, and where its constants are."""
    if not text.strip():
        raise ProfileError("the profile is empty", text=text, position=0, hint="write TRUE to want everything")
    source = SourceText(text, most_nested)
    with _ONE_AT_A_TIME:
        _BUILDER.begin(text)
        try:
            found = _parser().parse(source)
        except UnexpectedToken as error:
            raise _explain(error, text) from None
    return Parsed(cast(Expression, found), source.constants, source.nested)


def _explain(error: UnexpectedToken, text: str) -> ProfileError:
    token, expected = error.token, error.expected - {"LIST"}
    ended = token.type == "$END"
    position = len(text) if ended else int(token.start_pos or 0)
    refusal = construct(text, position, str(token))
    if refusal is not None:
        return problem(refusal.message, text, refusal.position, refusal.hint)
    if token.type == "NUMBER" and token[0] in "+-" and "NAME" not in expected:
        return problem(ARITHMETIC[0], text, position, ARITHMETIC[1])
    message = "the profile ends too early" if ended else f"unexpected {str(token)[:20]!r}"
    return problem(message, text, position, _hint(token, expected, ended))


def _hint(token: Token, expected: set[str], ended: bool) -> str:
    if token.type in ("OP", "_IN", "_LIKE", "_BETWEEN") and "_AND" in expected:
        return "compare one attribute with one constant at a time, and leave parentheses around attributes out"
    if token.type == "_RPAR" and ("_AND" in expected or expected == {"$END"}):
        return "remove this parenthesis, or open one before it"
    if token.type == "_IS" and "_AND" in expected:
        return "put the condition in parentheses: (price > 3) IS TRUE"
    if ended and "_RPAR" in expected:
        return "a parenthesis is not closed"
    if "OP" in expected and "_AND" in expected:
        return "is an operator, AND or OR missing here?"
    if "OP" in expected:
        return "an operator such as =, <, IN, LIKE or IS is missing"
    if "_AND" in expected and len(expected) == 1:
        return "BETWEEN takes two bounds: BETWEEN 1 AND 2"
    if "_AND" in expected:
        return "is AND or OR missing here?"
    if "NAME" in expected:
        return "expected an attribute or a constant"
    names = sorted(
        name.lstrip("_")
        .replace("XPATH", "xpath_boolean")
        .replace("LPAR", "(")
        .replace("RPAR", ")")
        .replace("COMMA", ",")
        for name in expected
    )
    return f"expected {' or '.join(names)}"
