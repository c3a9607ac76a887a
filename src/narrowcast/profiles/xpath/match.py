"""Many XPath profiles against many documents at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.profiles.kernels.xpath_match import CHILD, DESCENDANT, VALUE, Documents, Patterns, xpath_match_many
from narrowcast.profiles.xpath.document import DEFAULT_LIMITS, Document, XmlLimits, parse_document
from narrowcast.profiles.xpath.pattern import (
    All,
    Condition,
    Has,
    Kind,
    PatternNot,
    Some,
    ValueTest,
    elements,
    name_part,
)
from narrowcast.profiles.xpath.values import ValueTests
from narrowcast.profiles.xpath.xpath import XPath

NAME_PARTS: tuple[Kind, ...] = ("local-name", "namespace-uri")
# What a row needs: (kind, bit or test, wanted).
Literal = tuple[int, int, bool]
Clause = tuple[Literal, ...]


class XPathMatcher:
    """A set of XPath profiles compiled into one structure; equal parts of different paths are shared.

    Good for hundreds to many thousands of paths: a document is read once, whatever their number. Per
    element the work is one pass over the parts that end at its name, by compiled code.

    >>> matcher = XPathMatcher(["//b[@x > 1]", "/a/b", "/b"])
    >>> rows, cols = matcher.match(["<a><b x='2'/></a>", "<b/>"])
    >>> list(zip(rows.tolist(), cols.tolist()))
    [(0, 0), (0, 1), (1, 2)]
    """

    def __init__(self, paths: Sequence[XPath | str], limits: XmlLimits = DEFAULT_LIMITS) -> None:
        self.paths = [XPath.parse(path) if isinstance(path, str) else path for path in paths]
        self.limits = limits
        found = dict.fromkeys(element for path in self.paths for element in elements(path.pattern))
        self._bit = {element: i for i, element in enumerate(found)}
        self._test_bit: dict[ValueTest, int] = {}
        names = sorted({element.label for element in found if element.label is not None})
        self._code = {name: i + 1 for i, name in enumerate(names)}
        self._patterns = self._compile()
        self._query_bit = np.array([self._bit[p.pattern.element] for p in self.paths], np.int64)
        self._query_deep = np.array([p.pattern.axis == "descendant" for p in self.paths], np.bool_)
        self._by_attribute, self._by_text, self._by_value, *names_of = self._testers()
        self._by_name = [(kind, tests) for kind, tests in zip(NAME_PARTS, names_of, strict=True) if tests]
        self._any_attribute = self._by_attribute.pop(None, None)

    def match(self, documents: Sequence[Document | str | bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(document index, path index) of every match, sorted by document, then path."""
        read = [d if isinstance(d, Document) else self._read(i, d) for i, d in enumerate(documents)]
        offsets = np.zeros(len(read) + 1, np.int64)
        np.cumsum([len(d.labels) for d in read], out=offsets[1:])
        code = self._code.get
        label = np.fromiter((code(name, 0) for d in read for name in d.labels), np.int64, offsets[-1])
        depth = np.fromiter((level for d in read for level in d.depth), np.int64, offsets[-1])
        seen: dict[int, int] = {0: 0}
        row = np.fromiter((seen.setdefault(m, len(seen)) for d in read for m in self._tests(d)), np.int64, offsets[-1])
        values = self._unpack(list(seen))
        return xpath_match_many(
            self._patterns, Documents(offsets, label, depth, row, values), self._query_bit, self._query_deep
        )

    def _read(self, i: int, text: str | bytes) -> Document:
        try:
            return parse_document(text, self.limits)
        except InputError as error:
            raise InputError(f"document {i}: {error.message}", name="documents", got=i) from None

    def _tests(self, document: Document) -> list[int]:
        """Per element the bits of the value tests true at it."""
        masks = [0] * len(document.labels)
        named, any_name = self._by_attribute, self._any_attribute
        if named or any_name:
            for e, attributes in enumerate(document.attributes):
                for name, value in attributes.items():
                    if name in named:
                        masks[e] |= named[name].true_of(value)
                    if any_name:
                        masks[e] |= any_name.true_of(value)
        if self._by_text:
            other = self._by_text.get(None)
            for e, text in zip(document.owner, document.texts, strict=True):
                tests = self._by_text.get(document.labels[e], other)
                if tests:
                    masks[e] |= tests.true_of(text)
        if self._by_value:
            other = self._by_value.get(None)
            for e, name in enumerate(document.labels):
                tests = self._by_value.get(name, other)
                if tests:
                    masks[e] |= tests.true_of(document.value(e))
        for kind, by_label in self._by_name:
            other = by_label.get(None)
            for e, name in enumerate(document.labels):
                tests = by_label.get(name, other)
                if tests:
                    masks[e] |= tests.true_of(name_part(name, kind))
        return masks

    def _unpack(self, masks: list[int]) -> NDArray[np.uint64]:
        words = max(1, -(-len(self._test_bit) // 64))
        data = b"".join(mask.to_bytes(words * 8, "little") for mask in masks)
        return np.frombuffer(data, "<u8").reshape(len(masks), words).astype(np.uint64)

    def _compile(self) -> Patterns:
        """Rows by label: those without a positive literal first, so that bare elements skip the rest."""
        n = len(self._code) + 1
        base = np.zeros((n, max(1, -(-len(self._bit) // 64))), np.uint64)
        rows: list[list[tuple[bool, int, Clause]]] = [[] for _ in range(n)]
        for element, bit in self._bit.items():
            code = 0 if element.label is None else self._code[element.label]
            for clause in self._clauses(element.condition):
                if clause:
                    rows[code].append((any(wanted for *_, wanted in clause), bit, clause))
                else:
                    at = slice(None) if element.label is None else code
                    base[at, bit >> 6] |= np.uint64(1 << (bit & 63))
        for group in rows:
            group.sort()
        flat = [row for group in rows for row in group]
        literals = [literal for _, _, clause in flat for literal in clause]
        sizes = np.array([len(group) for group in rows])
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Patterns(
            base,
            offsets,
            offsets[:-1] + np.array([sum(not positive for positive, *_ in group) for group in rows], np.int64),
            np.array([bit for _, bit, _ in flat], np.int64),
            np.concatenate([[0], np.cumsum([len(clause) for *_, clause in flat])]).astype(np.int64),
            np.array([kind for kind, _, _ in literals], np.int64),
            np.array([bit for _, bit, _ in literals], np.int64),
            np.array([wanted for *_, wanted in literals], np.bool_),
        )

    def _clauses(self, condition: Condition, wanted: bool = True) -> list[Clause]:
        """The condition, or its opposite, as alternatives of literals (disjunctive normal form)."""
        match condition:
            case ValueTest():
                return [((VALUE, self._test_bit.setdefault(condition, len(self._test_bit)), wanted),)]
            case Has():
                kind = CHILD if condition.axis == "child" else DESCENDANT
                return [((kind, self._bit[condition.element], wanted),)]
            case PatternNot():
                return self._clauses(condition.part, not wanted)
            case All() | Some():
                parts = [self._clauses(part, wanted) for part in condition.parts]
                if isinstance(condition, All) != wanted:
                    clauses = [clause for part in parts for clause in part]
                else:
                    clauses = _combined(parts)
                return list(dict.fromkeys(clauses))

    def _testers(self) -> tuple[dict[str | None, ValueTests], ...]:
        """Testers by attribute name; for text and value by the label of the elements that use them."""
        groups: tuple[dict[str | None, dict[ValueTest, int]], ...] = ({}, {}, {}, {}, {})
        for element in self._bit:
            for test in _tests_in(element.condition):
                kind = ("attribute", "text", "value", *NAME_PARTS).index(test.kind)
                key = test.name if test.kind == "attribute" else element.label
                groups[kind].setdefault(key, {})[test] = self._test_bit[test]
        for group in groups[1:]:
            for tests in group.values():
                tests.update(group.get(None, {}))
        return tuple({key: ValueTests(tests) for key, tests in group.items()} for group in groups)


def _combined(parts: list[list[Clause]]) -> list[Clause]:
    return [tuple(sorted({literal for clause in choice for literal in clause})) for choice in product(*parts)]


def _tests_in(condition: Condition) -> list[ValueTest]:
    """The tests of one element's own condition, not of elements below it."""
    match condition:
        case ValueTest():
            return [condition]
        case PatternNot():
            return _tests_in(condition.part)
        case All() | Some():
            return [test for part in condition.parts for test in _tests_in(part)]
        case _:
            return []
