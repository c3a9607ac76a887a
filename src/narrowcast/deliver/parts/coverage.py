"""Which stretches of a shard have been claimed for a channel: intervals that join where they meet."""

from __future__ import annotations


class Coverage:
    """Disjoint intervals `(start, end]`, ascending. Usually there is one.

    >>> seen = Coverage()
    >>> seen.add(0, 5); seen.add(7, 9)
    >>> seen.reach(2), seen.reach(5), seen.reach(7), seen.after(5)
    (5, 5, 9, 7)
    """

    __slots__ = ("intervals",)

    def __init__(self) -> None:
        self.intervals: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """Everything in `(start, end]` is known. O(intervals); at the far end, where most come in, O(1)."""
        intervals = self.intervals
        if start == end:
            return
        if not intervals or start > intervals[-1][1]:
            intervals.append((start, end))
            return
        if start >= intervals[-1][0]:
            if end > intervals[-1][1]:
                intervals[-1] = (intervals[-1][0], end)
            return
        kept = [(a, b) for a, b in intervals if b < start or a > end]
        meets = [(a, b) for a, b in intervals if not (b < start or a > end)]
        joined = (min([start, *(a for a, _ in meets)]), max([end, *(b for _, b in meets)]))
        self.intervals = sorted([*kept, joined])

    def reach(self, at: int) -> int:
        """How far one gets from a place without a hole; the place itself if nothing connects."""
        for start, end in self.intervals:
            if start <= at < end:
                return end
        return at

    def after(self, at: int) -> int | None:
        """Where the first interval beyond a place begins; None if there is none."""
        for start, _ in self.intervals:
            if start > at:
                return start
        return None

    def forget(self, at: int) -> None:
        """What ends at or before a place no longer matters."""
        if self.intervals and self.intervals[0][1] <= at:
            self.intervals = [(start, end) for start, end in self.intervals if end > at]
