"""The code space of one attribute: constants cut its values into cells, and cells are numbered.

Sorted, an attribute's constants leave a gap below each, between neighbours and above the last. All
values in one gap answer every comparison alike, so a whole number per constant and gap is all that
matching needs. In order: null is 0, then numbers, strings, false, true, timestamps, anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from narrowcast.profiles.algebra.intervals import Interval
from narrowcast.profiles.algebra.sets import StringPiece, ValueSet

NULL_CODE = 0
KINDS = ("number", "string", "boolean", "timestamp", "other")

Span = tuple[int, int]  # first and last code
LikePiece = tuple[int, int, tuple[tuple[Any, bool], ...]]  # span, and (pattern or path, wanted) that must hold


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one attribute: its constants by kind, sorted, and the first code of each kind.

    `ordered` says that some set tells one gap between strings from another, so that looking up
    equal constants is not enough.
    """

    numbers: Sequence[int | float]
    strings: Sequence[str]
    timestamps: Sequence[int]
    ordered: bool
    starts: Mapping[str, int]
    size: int


def cut(sets: Iterable[ValueSet]) -> Cells:
    """The cells that these sets' bounds cut. O(c log c) for c constants."""
    numbers: set[int | float] = set()
    strings: set[str] = set()
    timestamps: set[int] = set()
    ordered = False
    for values in sets:
        for interval in values.number:
            numbers.update((interval.low, interval.high))  # type: ignore[arg-type]
        for interval in values.timestamp:
            timestamps.update((interval.low, interval.high))  # type: ignore[arg-type]
        for piece in values.string:
            strings.update((piece.interval.low, piece.interval.high))  # type: ignore[arg-type]
        ordered = ordered or not _gaps_alike(values.string)
    for bounds in (numbers, strings, timestamps):
        bounds.discard(None)
    starts, start = {}, NULL_CODE + 1
    for kind, size in zip(
        KINDS, (2 * len(numbers) + 1, 2 * len(strings) + 1, 2, 2 * len(timestamps) + 1, 1), strict=True
    ):
        starts[kind] = start
        start += size
    return Cells(sorted(numbers), sorted(strings), sorted(timestamps), ordered, starts, start)


def _gaps_alike(pieces: tuple[StringPiece, ...]) -> bool:
    """Whether a set holds either no string but its constants, or every string but its constants."""
    intervals = [piece.interval for piece in pieces]
    if all(i.low is not None and i.low == i.high for i in intervals):
        return True
    wide = [i for i in intervals if i.low is None or i.low != i.high]
    touching = all(a.high == b.low for a, b in pairwise(wide))
    return touching and wide[0].low is None and wide[-1].high is None


class Coder:
    """Turns sets of values into spans of codes."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        # Equal numbers hash alike, whether whole or not.
        self._place: dict[str, dict[Any, int]] = {
            "number": {value: k for k, value in enumerate(cells.numbers)},
            "string": {value: k for k, value in enumerate(cells.strings)},
            "timestamp": {value: k for k, value in enumerate(cells.timestamps)},
        }

    def _span(self, kind: str, interval: Interval) -> Span:
        place, start = self._place[kind], self.cells.starts[kind]
        if interval.low is None:
            first = start
        else:
            first = start + 2 * place[interval.low] + (1 if interval.low_closed else 2)
        if interval.high is None:
            return first, start + 2 * len(place)
        return first, start + 2 * place[interval.high] + (1 if interval.high_closed else 0)

    def spans(self, values: ValueSet) -> list[Span]:
        """The codes of a set, as sorted spans with a gap between neighbours. LIKE patterns count as met."""
        starts = self.cells.starts
        spans = [(NULL_CODE, NULL_CODE)] if values.null else []
        spans += [self._span("number", interval) for interval in values.number]
        spans += [self._span("string", piece.interval) for piece in values.string]
        spans += [(starts["boolean"] + int(value),) * 2 for value in sorted(values.boolean)]
        spans += [self._span("timestamp", interval) for interval in values.timestamp]
        spans += [(starts["other"],) * 2] if values.other else []
        return _joined(spans)

    def like_pieces(self, values: ValueSet) -> list[LikePiece]:
        """The set's string spans with the patterns of each; an empty list if it has no pattern."""
        if not any(piece.likes for piece in values.string):
            return []
        # Sorted by text: a frozenset's order changes from run to run.
        return [
            (*self._span("string", piece.interval), tuple(sorted(piece.likes, key=repr))) for piece in values.string
        ]


def _joined(spans: list[Span]) -> list[Span]:
    """Overlapping or touching spans become one; those without a code go."""
    if len(spans) == 1 and spans[0][0] <= spans[0][1]:
        return spans
    joined: list[Span] = []
    for first, last in sorted(spans):
        if first > last:
            continue
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined
