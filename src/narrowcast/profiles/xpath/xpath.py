"""XPath profiles: what a subscriber wants of XML documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from narrowcast.profiles.xpath.cover import implies, may_overlap
from narrowcast.profiles.xpath.document import Document, parse_document, seen_document
from narrowcast.profiles.xpath.evaluate import satisfied
from narrowcast.profiles.xpath.parse import parse_xpath
from narrowcast.profiles.xpath.pattern import Has, needed_labels


@dataclass(frozen=True, slots=True, eq=False)
class XPath:
    """A document matches if the path finds something in it, as `boolean(path)` in XPath 1.0.

    The subset: child (`/`), descendant (`//`), names and `*`, `@name`, `text()`, and conditions in
    brackets of such paths, compared with strings and numbers, under `and`, `or`, `not()`. Names in a namespace have
    a prefix that is declared after the path, as in XML (`xmlns:f='address'`; `xmlns='address'` is for names of
    elements without a prefix), or are compared by `local-name()` and `namespace-uri()`.

    >>> wanted = XPath.parse("//order[@venue = 'N'][price > 100]/symbol")
    >>> wanted.matches("<orders><order venue='N'><price>101</price><symbol>IBM</symbol></order></orders>")
    True
    >>> XPath.parse("//order[@venue]").covers(wanted)
    True
    >>> XPath.parse("//f:trade", {"f": "urn:f"}).matches("<trade xmlns='urn:f'/>")
    True
    """

    text: str
    pattern: Has
    labels: frozenset[str] = field(init=False, repr=False)  # without which nothing is found

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", needed_labels(self.pattern))

    @classmethod
    def parse(cls, text: str, namespaces: Mapping[str, str] | None = None) -> XPath:
        """Read a path; one line says what is wrong with it and where. O(length).

        Parameters
        ----------
        text : the path, perhaps with declarations of its prefixes after it
        namespaces : addresses by prefix ("" for names of elements without one); they become part of its text

        Returns
        -------
        XPath

        Raises
        ------
        ProfileError : what is outside the subset, or a prefix that is not declared
        """
        told = "".join(f" xmlns{':' * bool(p)}{p}={_quoted(space)}" for p, space in (namespaces or {}).items())
        return cls(text + told, parse_xpath(text + told))

    def matches(self, document: Document | str | bytes) -> bool:
        """Whether the document matches. O(document · steps); for many paths see `XPathMatcher`."""
        return satisfied(self.pattern, document if isinstance(document, Document) else parse_document(document))

    def is_in(self, text: str) -> bool:
        """Whether a text is a document that matches: what is no document, or is refused, has nothing in it."""
        document = seen_document(text)
        return self.labels <= document.names and satisfied(self.pattern, document)

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

    def __reduce__(self) -> tuple[object, ...]:
        return xpath_of, (self.text,)

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=65_536)
def xpath_of(text: str) -> XPath:
    """The path of a text, parsed once. Raises ProfileError as `XPath.parse` does."""
    return XPath.parse(text)


def _quoted(text: str) -> str:
    return f'"{text}"' if '"' not in text else f"'{text}'"
