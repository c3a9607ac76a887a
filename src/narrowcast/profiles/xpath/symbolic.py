"""Expressions over XPath profiles that planners build: evaluated through the profiles they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from narrowcast.profiles.profile import Profile
from narrowcast.profiles.xpath.document import Document, parse_document
from narrowcast.profiles.xpath.xpath import XPath

XML_COLUMN = "xml"


@dataclass(frozen=True, slots=True, eq=False)
class Symbolic:
    """Any, all, or one-without-another of XPath (and relational) profiles.

    A message is a mapping of attributes; its document stands under `xml`.

    >>> either = Symbolic.any_of([XPath.parse("/a[@x]"), XPath.parse("/b")])
    >>> (either - XPath.parse("/a[@x > 1]")).matches({"xml": "<a x='1'/>"})
    True
    """

    operation: Literal["any", "all", "minus"]
    parts: tuple[Symbolic | XPath | Profile, ...]

    @classmethod
    def any_of(cls, parts: Iterable[Symbolic | XPath | Profile]) -> Symbolic:
        return cls("any", tuple(parts))

    def __and__(self, other: Symbolic | XPath | Profile) -> Symbolic:
        return Symbolic("all", (self, other))

    def __or__(self, other: Symbolic | XPath | Profile) -> Symbolic:
        return Symbolic("any", (self, other))

    def __sub__(self, other: Symbolic | XPath | Profile) -> Symbolic:
        return Symbolic("minus", (self, other))

    def matches(self, message: Mapping[str, Any]) -> bool:
        """Whether a message is wanted. The document is read once."""
        text = message.get(XML_COLUMN)
        document = text if isinstance(text, Document) or text is None else parse_document(text)
        return self._matches({**message, XML_COLUMN: document})

    def _matches(self, message: Mapping[str, Any]) -> bool:
        found = (_one(part, message) for part in self.parts)
        if self.operation == "any":
            return any(found)
        if self.operation == "all":
            return all(found)
        whole, without = found
        return whole and not without

    def __str__(self) -> str:
        word = {"any": " OR ", "all": " AND ", "minus": " MINUS "}[self.operation]
        return word.join(f"({part})" for part in self.parts) or "FALSE"


def _one(part: Symbolic | XPath | Profile, message: Mapping[str, Any]) -> bool:
    if isinstance(part, Symbolic):
        return part._matches(message)
    if isinstance(part, XPath):
        document = message[XML_COLUMN]
        return document is not None and part.matches(document)
    return part.matches({name: value for name, value in message.items() if name != XML_COLUMN})
