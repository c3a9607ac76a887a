"""Whether one document satisfies one pattern, by its definition."""

from __future__ import annotations

from narrowcast.profiles.xpath.document import Document
from narrowcast.profiles.xpath.pattern import (
    All,
    Condition,
    Element,
    Has,
    PatternNot,
    Some,
    ValueTest,
    holds,
    name_part,
)


def satisfied(pattern: Has, document: Document) -> bool:
    """Whether the document has an element as the pattern's first, at the top or anywhere. O(elements · pattern)."""
    return _Evaluator(document).has(pattern, -1)


class _Evaluator:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.known: dict[tuple[int, int], bool] = {}

    def has(self, wanted: Has, e: int) -> bool:
        """Element −1 stands for the document, above the first element."""
        depth = self.document.depth
        level = depth[e] if e >= 0 else -1
        at = e + 1
        while at < len(depth) and depth[at] > level:
            if (wanted.axis == "descendant" or depth[at] == level + 1) and self.element(wanted.element, at):
                return True
            at += 1
        return False

    def element(self, wanted: Element, e: int) -> bool:
        if wanted.label is not None and self.document.labels[e] != wanted.label:
            return False
        key = (id(wanted), e)
        if key not in self.known:
            self.known[key] = self.condition(wanted.condition, e)
        return self.known[key]

    def condition(self, wanted: Condition, e: int) -> bool:
        match wanted:
            case ValueTest():
                return any(holds(value, wanted.operator, wanted.literal) for value in self.values(wanted, e))
            case Has():
                return self.has(wanted, e)
            case PatternNot():
                return not self.condition(wanted.part, e)
            case All():
                return all(self.condition(part, e) for part in wanted.parts)
            case Some():
                return any(self.condition(part, e) for part in wanted.parts)

    def values(self, test: ValueTest, e: int) -> list[str]:
        if test.kind == "value":
            return [self.document.value(e)]
        if test.kind == "text":
            return self.document.own_texts(e)
        if test.kind in ("local-name", "namespace-uri"):
            return [name_part(self.document.labels[e], test.kind)]
        attributes = self.document.attributes[e]
        if test.name is None:
            return list(attributes.values())
        return [attributes[test.name]] if test.name in attributes else []
