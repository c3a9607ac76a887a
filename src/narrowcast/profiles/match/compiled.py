"""Profiles made ready for matching: cells per attribute, one index over all boxes, and what is left over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrowcast.profiles.algebra.sets import ValueSet
from narrowcast.profiles.algebra.symbolic import Program, Units
from narrowcast.profiles.kernels.matcher import BoxIndex
from narrowcast.profiles.match.box_index import Dims, Sets, build, offsets, ranges
from narrowcast.profiles.match.cells import Cells, Coder, LikePiece, Span, cut
from narrowcast.profiles.profile import Profile
from narrowcast.profiles.sql.syntax import IsNull, terms
from narrowcast.profiles.xpath.match import XPathMatcher
from narrowcast.profiles.xpath.xpath import XPath

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Likely:
    """Boxes with LIKE patterns. Box j is target `first + j` of the index: only a candidate.

    Its sets with patterns are `sets[set_start[j]:set_start[j + 1]]`, its true targets likewise.
    """

    first: int
    set_start: Ints
    sets: Ints
    target_start: Ints
    targets: Ints
    pieces: Mapping[int, tuple[str, list[LikePiece]]]  # of each set with patterns: its attribute and pieces
    paths: Mapping[str, XPathMatcher]  # by attribute, for the paths among the patterns


@dataclass(frozen=True, slots=True)
class Use:
    """The first profile that compares an attribute with constants of this kind."""

    kind: str
    profile: int
    text: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """Everything that matching reads. Targets: profiles, then sets of rows for programs, then likely boxes."""

    n_profiles: int
    cells: Mapping[str, Cells]
    uses: Mapping[str, Sequence[Use]]
    index: BoxIndex
    programs: Mapping[int, Program]
    likely: Likely


class _Dims:
    """What each box asks, with equal sets of values of one attribute kept once."""

    def __init__(self, units: Units) -> None:
        self.unit: list[int] = []
        self.box: list[int] = []
        self.attribute: list[int] = []
        self.set: list[int] = []
        self.sets: dict[str, dict[ValueSet, int]] = {}
        places: dict[str, int] = {}
        for unit, boxes in enumerate(units.boxes):
            for box in boxes:
                for name, values in box.items():
                    if name not in places:
                        places[name], self.sets[name] = len(places), {}
                    known = self.sets[name]
                    self.box.append(len(self.unit))
                    self.attribute.append(places[name])
                    self.set.append(known.setdefault(values, len(known)))
                self.unit.append(unit)


def compiled(profiles: Sequence[Profile]) -> Compiled:
    """Box, number and index profiles."""
    units = Units(len(profiles))
    for k, profile in enumerate(profiles):
        units.add(k, profile.expression)
    dims = _Dims(units)
    names = list(dims.sets)
    cells: dict[str, Cells] = {}
    spans: list[list[Span]] = []
    pieces: dict[int, tuple[str, list[LikePiece]]] = {}
    first_set = offsets(np.array([len(dims.sets[name]) for name in names], np.int64))
    for name in names:
        cells[name] = cut(dims.sets[name])
        coder = Coder(cells[name])
        for values in dims.sets[name]:
            if any(piece.likes for piece in values.string):
                pieces[len(spans)] = name, coder.like_pieces(values)
            spans.append(coder.spans(values))
    attribute = np.array(dims.attribute, np.int64)
    box, set_ = np.array(dims.box, np.int64), first_set[attribute] + np.array(dims.set, np.int64)
    target_start, targets, likely = _targets(units, np.array(dims.unit, np.int64), box, set_, pieces)
    sizes = np.array([cells[name].size for name in names], np.int64)
    index = build(Dims(box, attribute, set_), Sets.of(spans), sizes, target_start, targets)
    return Compiled(len(profiles), cells, _uses(profiles), index, units.programs, likely)


def _targets(
    units: Units, unit: Ints, box: Ints, set_: Ints, pieces: Mapping[int, tuple[str, list[LikePiece]]]
) -> tuple[Ints, Ints, Likely]:
    """Whom each box tells: the targets of its unit, or its own number as a candidate."""
    told = offsets(np.array([len(targets) for targets in units.targets], np.int64))
    flat = np.array([target for targets in units.targets for target in targets], np.int64)
    patterned = np.isin(set_, np.fromiter(pieces, np.int64, len(pieces)))
    likely = np.unique(box[patterned])
    first, count = told[unit], np.diff(told)[unit]
    kept = Likely(
        first=units.n_targets,
        set_start=np.append(np.searchsorted(box[patterned], likely), int(patterned.sum())),
        sets=set_[patterned],
        target_start=offsets(count[likely]),
        targets=flat[ranges(first[likely], count[likely])],
        pieces=pieces,
        paths=_paths(pieces.values()),
    )
    first[likely], count[likely] = flat.size + np.arange(likely.size), 1
    flat = np.concatenate((flat, units.n_targets + np.arange(likely.size)))
    return offsets(count), flat[ranges(first, count)], kept


def _paths(pieces: Iterable[tuple[str, list[LikePiece]]]) -> dict[str, XPathMatcher]:
    found: dict[str, dict[XPath, None]] = {}
    for name, some in pieces:
        for _, _, likes in some:
            found.setdefault(name, {}).update((path, None) for path, _ in likes if isinstance(path, XPath))
    return {name: XPathMatcher(list(paths)) for name, paths in found.items() if paths}


def _uses(profiles: Sequence[Profile]) -> dict[str, list[Use]]:
    """Every attribute that profiles name, sorted, with the kinds of constant it is compared with."""
    first: dict[tuple[str, str], int] = {}
    for k, profile in enumerate(profiles):
        for term in terms(profile.expression):
            first.setdefault((term.attribute, "" if isinstance(term, IsNull) else term.kind), k)
    uses: dict[str, list[Use]] = {name: [] for name in sorted({name for name, _ in first})}
    for (name, kind), k in first.items():
        if kind:
            uses[name].append(Use(kind, k, str(profiles[k])))
    return uses
