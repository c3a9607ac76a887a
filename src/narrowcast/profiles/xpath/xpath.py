"""XPath profiles: what a subscriber wants of XML documents."""

from __future__ import annotations

from dataclasses import dataclass

from narrowcast.profiles.xpath.cover import implies, may_overlap
from narrowcast.profiles.xpath.document import Document, parse_document
from narrowcast.profiles.xpath.evaluate import satisfied
from narrowcast.profiles.xpath.parse import parse_xpath
from narrowcast.profiles.xpath.pattern import Has


@dataclass(frozen=True, slots=True, eq=False)
class XPath:
    """A document matches if the path finds something in it, as `boolean(path)` in XPath 1.0.

    The subset: child (`/`), descendant (`//`), names and `*`, `@name`, `text()`, and conditions in
    brackets of such paths, compared with strings and numbers, under `and`, `or`, `not()`.

    >>> wanted = XPath.parse("//order[@venue = 'N'][price > 100]/symbol")
    >>> wanted.matches("<orders><order venue='N'><price>101</price><symbol>IBM</symbol></order></orders>")
    True
    >>> XPath.parse("//order[@venue]").covers(wanted)
    True
    """

    text: str
    pattern: Has

    @classmethod
    def parse(cls, text: str) -> XPath:
        """Read a path; one line says what is wrong with it and where. O(length)."""
        return cls(text, parse_xpath(text))

    def matches(self, document: Document | str | bytes) -> bool:
        """Whether the document matches. O(document · steps); for many paths see `XPathMatcher`."""
        return satisfied(self.pattern, document if isinstance(document, Document) else parse_document(document))

    def covers(self, other: XPath) -> bool:
        """True proves that every document matching the other matches this; False also means unknown."""
        return implies(other.pattern, self.pattern)

    def overlaps(self, other: XPath) -> bool:
        """False proves that no document matches both; True also means unknown."""
        return may_overlap(self.pattern, other.pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, XPath) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __str__(self) -> str:
        return self.text
