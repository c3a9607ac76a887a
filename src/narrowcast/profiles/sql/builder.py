"""Nodes from the tokens of one profile: constants, terms, logic, and that their kinds agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TypeAlias, cast

from lark import Token, Transformer

from narrowcast.errors import ProfileError
from narrowcast.profiles.sql.constants import ITEM, is_date, read_list, read_number, read_string, read_written_moment
from narrowcast.profiles.sql.lexer import problem
from narrowcast.profiles.sql.like import EscapeError, read_pattern, write_pattern
from narrowcast.profiles.sql.syntax import (
    MIRRORED,
    Between,
    Compare,
    Constant,
    Expression,
    Finds,
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
from narrowcast.profiles.xpath.xpath import xpath_of

Tokens: TypeAlias = list[Token]
Mixed: TypeAlias = list[Token | Expression]

OPERATORS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}


class Builder(Transformer[Token, Expression]):
    """Lark calls the method of a rule with what the rule is made of.

    Holds the text and the kinds seen so far of the one parse that runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.begin("")

    def begin(self, text: str) -> None:
        """Forget the last text."""
        self.text = text
        self.kinds: dict[str, tuple[Kind, Token]] = {}

    # Operands

    def fail(self, message: str, token: Token, hint: str | None = None, shift: int = 0) -> ProfileError:
        return problem(message, self.text, (token.start_pos or 0) + shift, hint)

    def attribute(self, token: Token) -> str:
        if token.type != "NAME":
            raise self.fail("expected an attribute", token, "one side is an attribute, the other a constant")
        return unquote(token.value)

    def constant(self, token: Token, attribute: str) -> Value | None:
        """The constant a token stands for; None is NULL. All constants of an attribute are of one kind."""
        if token.type == "NAME":
            hint = "an attribute is compared with a constant, not with another attribute; text takes single quotes"
            word = unquote(token.value)
            raise self.fail("expected a constant", token, f"{hint}: '{word}'" if len(word) < 30 else hint)
        value = self.value(token)
        if value is not None:
            kind = kind_of_constant(value)
            known, first = self.kinds.setdefault(attribute, (kind, token))
            if known != kind:
                message = f"{attribute!r} was compared with the {known} {first} and cannot be compared with a {kind}"
                raise self.fail(message, token, "one attribute holds one kind of value")
        return value

    def value(self, token: Token) -> Value | None:
        match token.type:
            case "STRING":
                return read_string(token.value)
            case "NUMBER":
                return self.number(token)
            case "MOMENT":
                return self.moment(token)
            case "NULL":
                return None
            case _:
                return token.type == "TRUE"

    def number(self, token: Token) -> int | float:
        try:
            return read_number(token.value)
        except OverflowError:
            hint = "numbers with a point or exponent end at 1.8e308, whole numbers at 4300 digits"
            raise self.fail("the number is too large", token, hint) from None

    def moment(self, token: Token) -> datetime:
        try:
            return read_written_moment(token.value)
        except ValueError:
            wanted = "DATE '2024-02-29'" if is_date(token.value) else "TIMESTAMP '2024-02-29 12:00:00.5'"
            hint = f"write {wanted}, UTC unless an offset follows"
            raise self.fail("not a valid date or time", token, hint) from None

    # Terms

    def comparison(self, parts: Tokens) -> Expression:
        left, operator, right = parts
        op = OPERATORS[operator.value]
        if left.type != "NAME" and right.type == "NAME":
            left, op, right = right, MIRRORED[op], left
        elif left.type != "NAME":
            raise self.fail("two constants are compared", left, "one side must be an attribute")
        attribute = self.attribute(left)
        value = self.constant(right, attribute)
        return Constant(None) if value is None else Compare(attribute, op, value)

    def between(self, parts: Tokens) -> Expression:
        name, low, high = parts
        attribute = self.attribute(name)
        least, most = self.constant(low, attribute), self.constant(high, attribute)
        if least is not None and most is not None:
            return Between(attribute, least, most)
        at_least = Constant(None) if least is None else Compare(attribute, ">=", least)
        return conjunction((at_least, Constant(None) if most is None else Compare(attribute, "<=", most)))

    def not_between(self, parts: Tokens) -> Expression:
        return Not(self.between([parts[0], *parts[2:]]))

    def listed(self, parts: Tokens) -> Expression:
        attribute = self.attribute(parts[0])
        known, has_null = self.list_values(parts[1:], attribute)
        return In(attribute, known, has_null) if known else Constant(None)

    def list_values(self, tokens: Tokens, attribute: str) -> tuple[tuple[Value, ...], bool]:
        """The values of one LIST, read as a whole; one by one only where something is wrong, to say which."""
        if tokens[0].type == "LIST":
            items = list_items(tokens[0])
            first = next((token for token in items if token.type != "NULL"), None)
            if first is not None:
                self.constant(first, attribute)
            try:
                return read_list(tokens[0].value)
            except (ValueError, OverflowError):
                tokens = list(list_items(tokens[0]))
        values = [self.constant(token, attribute) for token in tokens]
        return tuple(dict.fromkeys(value for value in values if value is not None)), None in values

    def not_listed(self, parts: Tokens) -> Expression:
        return Not(self.listed([parts[0], *parts[2:]]))

    def like(self, parts: Tokens) -> Expression:
        name, pattern, *escape = parts
        attribute = self.attribute(name)
        if pattern.type not in ("STRING", "NULL"):
            raise self.fail("LIKE takes a text pattern", pattern, "put it in single quotes: 'Fed%'")
        character = self.value(escape[0]) if escape else "\\"
        if not isinstance(character, str) or len(character) != 1:
            raise self.fail("ESCAPE takes one character", escape[0], "for example ESCAPE '!'")
        text = self.constant(pattern, attribute)
        if text is None:
            return Constant(None)
        try:
            return Like(attribute, write_pattern(read_pattern(str(text), character)))
        except EscapeError as error:
            hint = f"write {character}{character} for the character itself, or give another with ESCAPE"
            message = f"{character} in a pattern must stand before %, _ or itself"
            raise self.fail(message, pattern, hint, shift=1 + int(error.args[0])) from error

    def not_like(self, parts: Tokens) -> Expression:
        return Not(self.like([parts[0], *parts[2:]]))

    def finds(self, parts: Tokens) -> Expression:
        name, path = parts
        attribute = self.attribute(name)
        if path.type not in ("STRING", "NULL"):
            raise self.fail("xpath_boolean takes a path in quotes", path, "xpath_boolean(xml, '//order/symbol')")
        text = self.constant(path, attribute)
        if text is None:
            return Constant(None)
        try:
            return Finds(attribute, xpath_of(str(text)).text)
        except ProfileError as error:
            raise self.fail(f"not a path: {error.message}", path, error.hint) from None

    # Logic

    def condition(self, parts: Mixed) -> Expression:
        (part,) = parts
        if not isinstance(part, Token):
            return part
        if part.type == "NAME":
            attribute = unquote(part.value)
            self.constant(Token("TRUE", part.value, part.start_pos), attribute)
            return Compare(attribute, "=", True)
        if part.type in ("NULL", "TRUE", "FALSE"):
            return Constant(cast("bool | None", self.value(part)))
        raise self.fail("a constant is not a condition", part, "compare it with an attribute")

    def is_known(self, parts: Mixed) -> Expression:
        part, known = parts[0], cast(Token, parts[-1])
        if known.type != "NULL":
            condition = self.condition([part])
            return IsTrue(condition if known.type == "TRUE" else Not(condition))
        if not isinstance(part, Token) or part.type != "NAME":
            raise self.fail("IS NULL asks about an attribute", known, "for a condition there is IS [NOT] TRUE or FALSE")
        return IsNull(unquote(part.value))

    def is_not_known(self, parts: Mixed) -> Expression:
        return Not(self.is_known(parts))

    def negation(self, parts: Mixed) -> Expression:
        return Not(cast(Expression, parts[1]))

    def all_of(self, parts: list[Expression]) -> Expression:
        return conjunction(parts)

    def any_of(self, parts: list[Expression]) -> Expression:
        return disjunction(parts)


def list_items(listed: Token) -> Iterator[Token]:
    """The constants of an IN list, with their places."""
    for found in ITEM.finditer(listed.value, 1):
        kind, word, start = found.lastgroup or "", found.group(), found.start()
        yield Token(word.upper() if kind == "WORD" else kind, word, (listed.start_pos or 0) + start)


def unquote(name: str) -> str:
    """The attribute that a written name stands for.

    >>> unquote('`a b`.c'), unquote('"x""y"')
    ('a b.c', 'x"y')
    """
    if "`" not in name and '"' not in name:
        return str(name)
    parts = re.findall(r'`(?:[^`]|``)+`|"(?:[^"]|"")+"|[^`".]+', name)
    return ".".join(part[1:-1].replace(part[0] * 2, part[0]) if part[0] in '`"' else part for part in parts)
