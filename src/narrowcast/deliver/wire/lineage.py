"""The generations of a log: which there were, where each begins, and what of an older one still holds.

A log is restored from a copy, or emptied, only while its server is down. So whoever appends first after a server has
started begins a new generation, with an entry that says so (`Birth`). If nothing was lost, it begins where the one
before it ended. If the log went back, it begins earlier, and everything that was numbered beyond in the older
generation is gone: whoever stands there knows it from this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from narrowcast.deliver.wire.entry import Birth, Born
from narrowcast.deliver.wire.place import bare_of, generation_of, in_generation

KEPT = 256  # generations; a position older than that is not known any more


class Reading(NamedTuple):
    """What to read, by sequence numbers: behind `after`, up to `upto`. `back`: the log went back to before `first`."""

    after: int
    upto: int | None
    back: bool
    first: int


@dataclass(frozen=True, slots=True)
class Lineage:
    """Generations in the order of the log. Entries before the first one are of generation 0.

    >>> lineage = Lineage((Born(7, 1, b""), Born(9, 401, b"")))
    >>> [generation_of(lineage.number(sequence)) for sequence in (1, 400, 401)]
    [7, 7, 9]
    >>> lineage.reading(in_generation(7, 500), None).back, lineage.reading(in_generation(7, 400), None).back
    (True, False)
    """

    born: tuple[Born, ...] = ()

    @classmethod
    def of(cls, birth: Birth, sequence: int) -> Lineage:
        """As an entry of the log says, which stands at this sequence number and does not know it."""
        return cls((*birth.born[:-1], birth.born[-1]._replace(start=sequence)))

    def number(self, sequence: int) -> int:
        """The number of the entry at a sequence number."""
        found = 0
        for generation, start, _ in reversed(self.born):
            if start <= sequence:
                found = generation
                break
        return in_generation(found, sequence)

    def knows(self, number: int) -> bool:
        """Whether the generation of a number is one of these."""
        generation = generation_of(number)
        return generation == 0 or any(each.generation == generation for each in self.born)

    def has(self, server: bytes) -> bool:
        """Whether a generation began with this start of a server."""
        return any(each.server == server for each in self.born)

    def holds(self, number: int) -> bool:
        """Whether the log still is what it was up to this entry."""
        return self.knows(number) and bare_of(number) < self._end(generation_of(number))

    def reading(self, after: int, upto: int | None) -> Reading:
        """How to read on behind an entry, by numbers; if that is gone, from where the log became another one."""
        if not self.holds(after):
            start = self._next(after)
            return Reading(start - 1, None, True, self.number(start))
        limit = self._limit(upto) if upto is not None and self.holds(upto) else None
        return Reading(bare_of(after), limit, False, 1)

    def _limit(self, upto: int) -> int:
        """Up to where to read; with the entry that begins a generation, for whoever comes from an older one.

        >>> Lineage((Born(7, 1, b""), Born(9, 401, b"")))._limit(in_generation(9, 400))
        401
        """
        starts = [each.start for each in self.born if each.generation == generation_of(upto)]
        return max([bare_of(upto), *starts])

    def next_birth(self, generation: int, server: bytes) -> Birth:
        """The entry that begins the next generation, which is later than all there are."""
        return Birth((*self.born[1 - KEPT :], Born(max(generation, self.latest + 1), 0, server)))

    @property
    def latest(self) -> int:
        """The latest generation; 0 if there is none."""
        return max((each.generation for each in self.born), default=0)

    def _end(self, generation: int) -> int:
        """The sequence number at which a generation is no longer in force."""
        for each in self.born:
            if each.generation > generation:
                return each.start
        return 1 << 48

    def _next(self, number: int) -> int:
        """Where what is new to somebody who stands at a lost entry begins."""
        generation = generation_of(number)
        later = [each.start for each in self.born if each.generation > generation]
        return later[0] if later else self.born[-1].start if self.born else 1
