"""Reading a profile's text: an LALR grammar of SQL's WHERE clause, and errors that point at the place.

Strings are standard SQL's: `''` is a quote and the backslash is an ordinary character, except in a
LIKE pattern, where it is the default escape as in Spark.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import Any, cast

from lark import Lark, Token, Transformer, UnexpectedToken, v_args

from narrowcast.errors import ProfileError
from narrowcast.profiles.lexer import ProfileLexer, Source, problem
from narrowcast.profiles.like import EscapeError, read_pattern, write_pattern
from narrowcast.profiles.syntax import (
    MIRRORED,
    Between,
    Compare,
    Constant,
    Expression,
    In,
    IsNull,
    IsTrue,
    Kind,
    Like,
    Not,
    Operator,
    Value,
    conjunction,
    disjunction,
    kind_of_constant,
)

GRAMMAR = r"""
%declare NAME STRING NUMBER MOMENT OP NOT NULL TRUE FALSE
%declare _AND _OR _IN _BETWEEN _LIKE _ESCAPE _IS _LPAR _RPAR _COMMA

?start: any_of
?any_of: all_of (_OR all_of)*
?all_of: opposite (_AND opposite)*
?opposite: NOT opposite -> negation
         | test
?test: primary                                                 -> condition
     | operand OP operand                                      -> comparison
     | operand _BETWEEN operand _AND operand                   -> between
     | operand NOT _BETWEEN operand _AND operand               -> not_between
     | operand _IN _LPAR operand (_COMMA operand)* _RPAR       -> listed
     | operand NOT _IN _LPAR operand (_COMMA operand)* _RPAR   -> not_listed
     | operand _LIKE operand                                   -> like
     | operand _LIKE operand _ESCAPE STRING                    -> like
     | operand NOT _LIKE operand                               -> not_like
     | operand NOT _LIKE operand _ESCAPE STRING                -> not_like
     | primary _IS known                                       -> is_known
     | primary _IS NOT known                                   -> is_not_known
?primary: operand | _LPAR any_of _RPAR
?operand: NAME | STRING | NUMBER | MOMENT | NULL | TRUE | FALSE
?known: NULL | TRUE | FALSE
"""

_OPERATORS: dict[str, Operator] = {"==": "=", "!=": "<>"}
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,6}))?)? ?(Z|UTC|[+-]\d\d:?\d\d)?", re.IGNORECASE
)


@v_args(inline=True)
class _Builder(Transformer[Token, Expression]):
    """Nodes from tokens. Holds the text and the kinds seen so far of the one parse that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.kinds: dict[str, tuple[Kind, str]] = {}

    def fail(self, message: str, token: Token, hint: str | None = None, shift: int = 0) -> ProfileError:
        return problem(message, self.text, (token.start_pos or 0) + shift, hint)

    # Operands

    def attribute(self, token: Token) -> str:
        if token.type != "NAME":
            raise self.fail("an attribute must stand here", token, "one side is an attribute, the other a constant")
        return unquote(token)

    def constant(self, token: Token, attribute: str) -> Value | None:
        """The constant a token stands for; None is NULL. All constants of an attribute are of one kind."""
        if token.type == "NAME":
            hint = "an attribute is compared with a constant, and text takes single quotes"
            word = unquote(token)
            raise self.fail("a constant must stand here", token, f"{hint}: '{word}'" if len(word) < 30 else hint)
        value = self.value(token)
        if value is not None:
            kind = kind_of_constant(value)
            known, first = self.kinds.setdefault(attribute, (kind, token))
            if known != kind:
                message = f"{attribute} was compared with the {known} {first} and cannot be compared with a {kind}"
                raise self.fail(message, token, "one attribute holds one kind of value")
        return value

    def value(self, token: Token) -> Value | None:
        match token.type:
            case "STRING":
                return token[1:-1].replace("''", "'")
            case "NUMBER":
                return self.number(token)
            case "MOMENT":
                return self.moment(token)
            case "NULL":
                return None
            case _:
                return token.type == "TRUE"

    def number(self, token: Token) -> int | float:
        if token.lstrip("+-").isdecimal():
            return int(token)
        number = float(token)
        if math.isinf(number):
            raise self.fail("the number is too large", token, "numbers with a point or exponent end at 1.8e308")
        return number or 0.0  # no minus zero: it equals zero and would only print oddly

    def moment(self, token: Token) -> datetime:
        word, _, rest = token.partition("'")
        wanted = "DATE '2024-02-29'" if word.strip().upper() == "DATE" else "TIMESTAMP '2024-02-29 12:00:00.5'"
        found = _MOMENT.fullmatch(rest[:-1].strip())
        if found is None or (word.strip().upper() == "DATE" and (found[2] or found[5])):
            raise self.fail("not a date or time", token, f"write {wanted}, UTC unless an offset follows")
        day, minutes, seconds, fraction, zone = found.groups()
        zone = "+00:00" if zone is None or zone.upper() in ("Z", "UTC") else zone
        text = f"{day} {minutes or '00:00'}{seconds or ':00'}.{(fraction or '').ljust(6, '0')}{zone}"
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise self.fail("no such date or time", token, f"write {wanted}") from error

    # Terms

    def comparison(self, left: Token, operator: Token, right: Token) -> Expression:
        op = _OPERATORS.get(operator) or cast(Operator, operator.value)
        if left.type != "NAME" and right.type == "NAME":
            left, op, right = right, MIRRORED[op], left
        elif left.type != "NAME":
            raise self.fail("two constants are compared", left, "one side must be an attribute")
        attribute = self.attribute(left)
        value = self.constant(right, attribute)
        return Constant(None) if value is None else Compare(attribute, op, value)

    def between(self, name: Token, low: Token, high: Token) -> Expression:
        attribute = self.attribute(name)
        least, most = self.constant(low, attribute), self.constant(high, attribute)
        if least is not None and most is not None:
            return Between(attribute, least, most)
        return conjunction(
            (
                Constant(None) if least is None else Compare(attribute, ">=", least),
                Constant(None) if most is None else Compare(attribute, "<=", most),
            )
        )

    def not_between(self, name: Token, _: Token, low: Token, high: Token) -> Expression:
        return Not(self.between(name, low, high))

    def listed(self, name: Token, *tokens: Token) -> Expression:
        attribute = self.attribute(name)
        values = [self.constant(token, attribute) for token in tokens]
        known = tuple(dict.fromkeys(value for value in values if value is not None))
        return In(attribute, known, has_null=None in values) if known else Constant(None)

    def not_listed(self, name: Token, _: Token, *tokens: Token) -> Expression:
        return Not(self.listed(name, *tokens))

    def like(self, name: Token, pattern: Token, escape: Token | None = None) -> Expression:
        attribute = self.attribute(name)
        if pattern.type not in ("STRING", "NULL"):
            raise self.fail("LIKE takes a text pattern", pattern, "put it in single quotes: 'Fed%'")
        character = "\\" if escape is None else escape[1:-1].replace("''", "'")
        if escape is not None and len(character) != 1:
            raise self.fail("ESCAPE takes one character", escape, "for example ESCAPE '!'")
        text = self.constant(pattern, attribute)
        if text is None:
            return Constant(None)
        try:
            return Like(attribute, write_pattern(read_pattern(str(text), character)))
        except EscapeError as error:
            hint = f"write {character}{character} for the character itself, or give another with ESCAPE"
            message = f"{character} in a pattern must stand before %, _ or itself"
            raise self.fail(message, pattern, hint, shift=1 + int(error.args[0])) from error

    def not_like(self, name: Token, _: Token, pattern: Token, escape: Token | None = None) -> Expression:
        return Not(self.like(name, pattern, escape))

    # Logic

    def condition(self, part: Token | Expression) -> Expression:
        if not isinstance(part, Token):
            return part
        if part.type == "NAME":
            attribute = unquote(part)
            self.constant(Token("TRUE", part.value, part.start_pos), attribute)
            return Compare(attribute, "=", True)
        if part.type in ("NULL", "TRUE", "FALSE"):
            return Constant(cast("bool | None", self.value(part)))
        raise self.fail("a constant is not a condition", part, "compare it with an attribute")

    def is_known(self, part: Token | Expression, known: Token) -> Expression:
        if known.type != "NULL":
            condition = self.condition(part)
            return IsTrue(condition if known.type == "TRUE" else Not(condition))
        if not isinstance(part, Token) or part.type != "NAME":
            raise self.fail("IS NULL asks about an attribute", known, "for a condition there is IS [NOT] TRUE or FALSE")
        return IsNull(unquote(part))

    def is_not_known(self, part: Token | Expression, _: Token, known: Token) -> Expression:
        return Not(self.is_known(part, known))

    def negation(self, _: Token, part: Expression) -> Expression:
        return Not(part)

    def all_of(self, *parts: Expression) -> Expression:
        return conjunction(parts)

    def any_of(self, *parts: Expression) -> Expression:
        return disjunction(parts)


_BUILDER = _Builder()
_ONE_AT_A_TIME = Lock()


@cache
def _parser() -> Any:
    return Lark(GRAMMAR, parser="lalr", lexer=ProfileLexer, transformer=_BUILDER)


def parse(text: str, most_nested: int = 200) -> Expression:
    """The condition that a text says. Linear; never recursive, so no nesting can exhaust the stack.

    >>> parse("NOT 100 < price")
    Not(part=Compare(attribute='price', op='>', value=100, kind='number'))
    """
    if not text.strip():
        raise ProfileError("the profile is empty", text=text, position=0, hint="write TRUE to want everything")
    with _ONE_AT_A_TIME:
        _BUILDER.text, _BUILDER.kinds = text, {}
        try:
            found = _parser().parse(Source(text, most_nested))
        except UnexpectedToken as error:
            raise _explain(error, text) from None
    return cast(Expression, found)


def unquote(name: str) -> str:
    """The attribute that a written name stands for.

    >>> unquote('`a b`.c'), unquote('"x""y"')
    ('a b.c', 'x"y')
    """
    if "`" not in name and '"' not in name:
        return str(name)
    parts = re.findall(r'`(?:[^`]|``)+`|"(?:[^"]|"")+"|[^`".]+', name)
    return ".".join(part[1:-1].replace(part[0] * 2, part[0]) if part[0] in '`"' else part for part in parts)


def _explain(error: UnexpectedToken, text: str) -> ProfileError:
    token, expected = error.token, error.expected
    ended = token.type == "$END"
    position = len(text) if ended else int(token.start_pos or 0)
    message = "the profile ends too early" if ended else f"unexpected {str(token)[:20]!r}"
    return problem(message, text, position, _hint(token, expected, ended))


def _hint(token: Token, expected: set[str], ended: bool) -> str:
    if token.type == "NUMBER" and token[0] in "+-" and "NAME" not in expected:
        return "arithmetic is not part of a profile"
    if token.type in ("OP", "_IN", "_LIKE", "_BETWEEN") and "_AND" in expected:
        return "compare one attribute with one constant at a time, and leave parentheses around attributes out"
    if token.type == "_RPAR" and "_AND" in expected:
        return "there is no parenthesis to close"
    if token.type == "_IS" and "_AND" in expected:
        return "put the condition in parentheses: (price > 3) IS TRUE"
    if ended and "_RPAR" in expected:
        return "a parenthesis is not closed"
    if "OP" in expected:
        return "an operator such as =, <, IN, LIKE or IS is missing"
    if "_AND" in expected and len(expected) == 1:
        return "BETWEEN takes two bounds: BETWEEN 1 AND 2"
    if "_AND" in expected:
        return "is AND or OR missing here?"
    if "NAME" in expected:
        return "an attribute or a constant must stand here"
    names = sorted(
        name.lstrip("_").replace("LPAR", "(").replace("RPAR", ")").replace("COMMA", ",") for name in expected
    )
    return f"expected {' or '.join(names)}"
