"""The text of an XPath profile to its pattern; whatever is outside the subset is refused with its place.

profile   = ("/" | "//") step {("/" | "//") step} [("/" | "//") end] {declaration}
step      = (name | "*" | prefix ":*") {"[" or "]"}
end       = "@" (name | "*") | "text()" ;  in a condition also "local-name()" | "namespace-uri()"
name      = [prefix ":"] local
declaration = "xmlns" [":" prefix] "=" string     as in XML; without a prefix it is for names of elements without one
or        = and {"or" and} ;  and = term {"and" term}
term      = "not(" or ")" | "(" or ")" | operand [comparison (string | number)]
operand   = "." | end | [".//"] step {("/" | "//") step} [("/" | "//") end] | ".//" end
"""

from __future__ import annotations

import re
from typing import NoReturn, cast

from narrowcast.errors import ProfileError
from narrowcast.profiles.xpath.pattern import (
    All,
    Axis,
    Condition,
    Element,
    Has,
    Kind,
    Operator,
    PatternNot,
    Some,
    ValueTest,
    alternatives,
    conjunction,
    elements,
)

MAX_TEXT_BYTES = 4096
MAX_STEPS = 64
MAX_DEPTH = 16
MAX_ALTERNATIVES = 256

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)|(?P<string>"[^"]*"|'[^']*')"""
    r"""|(?P<name>[^\W\d][\w.\-]*)|(?P<symbol>//|!=|<=|>=|\.\.|::|[/\[\]()@*.=<>\-,|+$:])"""
)
_DECLARATION = re.compile(r"""\sxmlns(?::([^\W\d][\w.\-]*))?\s*=\s*("[^"]*"|'[^']*')""")
_DECLARED = re.compile(rf"(?:{_DECLARATION.pattern})+\s*\Z")
XML_SPACE = "http://www.w3.org/XML/1998/namespace"
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_SUBSET = "paths of / and //, names, *, @name, text() and conditions in [] are supported"

Step = tuple[Axis, str | None, list[Condition]]


def parse_xpath(text: str) -> Has:
    """The pattern of an XPath profile, with the declarations of prefixes at its end. O(length)."""
    if len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        raise ProfileError(f"the XPath is longer than {MAX_TEXT_BYTES} bytes", text=text[:80])
    pattern = _Parser(text).profile()
    most = max(alternatives(element.condition) for element in elements(pattern))
    if most > MAX_ALTERNATIVES:
        message = (
            f"conditions with `and`, `or` and `not` expand into {most} alternatives, the limit is {MAX_ALTERNATIVES}"
        )
        raise ProfileError(message, text=text, hint="split the profile")
    return pattern


def declarations(text: str) -> tuple[str, dict[str, str]]:
    """The path, and the addresses of the prefixes declared after it; `xml` is always known.

    >>> declarations("//f:trade xmlns:f='urn:f' xmlns='urn:g'")
    ('//f:trade', {'xml': 'http://www.w3.org/XML/1998/namespace', 'f': 'urn:f', '': 'urn:g'})
    """
    found = _DECLARED.search(text)
    spaces = {"xml": XML_SPACE}
    if found is None:
        return text, spaces
    for prefix, quoted in _DECLARATION.findall(found[0]):
        spaces[prefix] = quoted[1:-1]
    return text[: found.start()], spaces


def _label(space: str, local: str) -> str:
    return f"{space}}}{local}" if space else local


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.steps, self.depth = text, 0, 0
        text, self.spaces = declarations(text)
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                self.fail(f"unexpected character {text[at]!r}", at)
            if found.lastgroup != "space":
                self.tokens.append((str(found.lastgroup), found[0], at))
            at = found.end()
        self.tokens.append(("end", "", len(text)))
        self.next = 0

    def fail(self, message: str, at: int | None = None, hint: str = _SUBSET) -> NoReturn:
        where = self.tokens[self.next][2] if at is None else at
        raise ProfileError(f"{message} at character {where + 1}", text=self.text, position=where, hint=hint)

    def peek(self, ahead: int = 0) -> str:
        kind, token, _ = self.tokens[min(self.next + ahead, len(self.tokens) - 1)]
        return "" if kind in ("string", "end") else token

    def kind(self) -> str:
        return self.tokens[self.next][0]

    def accept(self, *symbols: str) -> str:
        token = self.peek()
        if token and token in symbols:
            self.next += 1
            return token
        return ""

    def expect(self, symbol: str) -> None:
        if not self.accept(symbol):
            self.fail(f"expected {symbol!r}, found {self.found()}")

    def found(self) -> str:
        return repr(self.tokens[self.next][1]) if self.kind() != "end" else "the end"

    def profile(self) -> Has:
        if self.peek() not in ("/", "//"):
            self.fail("an XPath profile must start with / or //")
        first = self.axis()
        if self.peek() == "@" or self.at_text():
            if first == "child":
                self.fail("the document itself has neither attributes nor text")
            top = Has("descendant", Element(None, conjunction([self.end(False)])))
        else:
            top = self.path(first)
        if self.kind() != "end":
            self.fail(f"unexpected {self.found()}")
        return top

    def axis(self) -> Axis:
        if self.accept("//"):
            return "descendant"
        self.expect("/")
        return "child"

    def path(self, first: Axis, *, compared: bool = False) -> Has:
        """Steps, then perhaps an attribute or text(); in a condition then perhaps a comparison."""
        steps = [self.step(first)]
        last: list[Condition] = []
        while self.peek() in ("/", "//"):
            axis = self.axis()
            if self.peek() == "@" or self.at_text():
                last = [self.deep(axis, compared)]
                break
            steps.append(self.step(axis))
        else:
            if compared and self.peek() in _COMPARISONS:
                last = [self.compared("value", None)]
        return self.fold(steps, last)

    def fold(self, steps: list[Step], last: list[Condition]) -> Has:
        """From the last step inward out: each step is a condition of the one before."""
        (axis, label, conditions), rest = steps[0], steps[1:]
        inner = [self.fold(rest, last)] if rest else last
        return Has(axis, Element(label, conjunction([*conditions, *inner])))

    def deep(self, axis: Axis, compared: bool) -> Condition:
        """`//@x` means of the element itself or of any descendant."""
        test = self.end(compared)
        if axis == "child":
            return test
        return Some((test, Has("descendant", Element(None, conjunction([test])))))

    def step(self, axis: Axis) -> Step:
        self.steps += 1
        if self.steps > MAX_STEPS:
            self.fail(f"more than {MAX_STEPS} steps", hint="split the profile")
        if self.accept("*"):
            label = None
        elif self.kind() == "name":
            at, label = self.next, self.name()
            if self.peek() == "(":
                self.fail(f"{label}() is not supported")
            if self.peek() == "::":
                self.fail(f"the axis {label}:: is not supported")
            space = self.space(label, at) if self.accept(":") else None
            if space is not None and self.accept("*"):
                return axis, None, [ValueTest("namespace-uri", None, "=", space), *self.conditions()]
            local = label if space is None else self.local()
            label = _label(self.spaces.get("", "") if space is None else space, local)
        else:
            self.fail(f"expected a name or *, found {self.found()}")
        return axis, label, self.conditions()

    def conditions(self) -> list[Condition]:
        conditions = []
        while self.accept("["):
            conditions.append(self.either())
            self.expect("]")
        return conditions

    def space(self, prefix: str, at: int) -> str:
        """The address of a prefix that the profile declares."""
        if prefix not in self.spaces:
            hint = f"declare it after the path: xmlns:{prefix}='address'"
            self.fail(f"namespace prefix {prefix!r} is not declared", self.tokens[at][2], hint)
        return self.spaces[prefix]

    def local(self) -> str:
        if self.kind() != "name":
            self.fail(f"expected a name after the prefix, found {self.found()}")
        return self.name()

    def name(self) -> str:
        token = self.tokens[self.next][1]
        self.next += 1
        return token

    def either(self) -> Condition:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"conditions nest deeper than {MAX_DEPTH}", hint="split the profile")
        parts = [self.both()]
        while self.accept("or"):
            parts.append(self.both())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Some(tuple(dict.fromkeys(parts)))

    def both(self) -> Condition:
        parts = [self.term()]
        while self.accept("and"):
            parts.append(self.term())
        return parts[0] if len(parts) == 1 else conjunction(parts)

    def term(self) -> Condition:
        if self.peek() == "not" and self.peek(1) == "(":
            self.next += 2
            inner = self.either()
            self.expect(")")
            return PatternNot(inner)
        if self.accept("("):
            inner = self.either()
            self.expect(")")
            return inner
        return self.operand()

    def operand(self) -> Condition:
        if self.accept("."):
            if self.accept("//"):
                if self.peek() == "@" or self.at_text():
                    return self.deep("descendant", True)
                return self.path("descendant", compared=True)
            return self.compared("value", None) if self.peek() in _COMPARISONS else All()
        if self.peek() == "@" or self.at_text():
            return self.end(True)
        if self.peek() in ("local-name", "namespace-uri") and self.peek(1) == "(":
            kind = cast(Kind, self.name())
            self.next += 1
            self.expect(")")
            # By itself it is true where it is not empty, as any string.
            return self.compared(kind, None) if self.peek() in _COMPARISONS else ValueTest(kind, None, "!=", "")
        if self.kind() in ("number", "string"):
            self.fail("a condition needs a path first", hint="positions like [1] are not supported; write [@x = 1]")
        if self.peek() in ("/", "//"):
            self.fail("the path of a condition must start at its element", hint="write .// for any descendant")
        return self.path("child", compared=True)

    def at_text(self) -> bool:
        return self.peek() == "text" and self.peek(1) == "("

    def end(self, compared: bool) -> ValueTest:
        if self.accept("@"):
            if self.accept("*"):
                name = None
            elif self.kind() == "name":
                at, name = self.next, self.name()
                if self.accept(":"):
                    name = _label(self.space(name, at), self.local())
            else:
                self.fail(f"expected an attribute's name, found {self.found()}")
            return self.compared("attribute", name) if compared else ValueTest("attribute", name)
        self.next += 2
        self.expect(")")
        return self.compared("text", None) if compared else ValueTest("text")

    def compared(self, kind: Kind, name: str | None) -> ValueTest:
        found = self.accept(*_COMPARISONS)
        if not found:
            return ValueTest(kind, name)
        operator = cast(Operator, found)
        minus = bool(self.accept("-"))
        token = self.tokens[self.next][1]
        if self.kind() not in (("number",) if minus else ("number", "string")):
            self.fail(f"expected a string or a number after {operator}, found {self.found()}")
        literal = token[1:-1] if self.kind() == "string" else -float(token) if minus else float(token)
        self.next += 1
        return ValueTest(kind, name, operator, literal)
