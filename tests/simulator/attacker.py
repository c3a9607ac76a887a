"""Somebody on the segment who hears everything and may send anything, but has no key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from narrowcast.deliver.wire import Attach, Frame, Pulse, Seal, encode, encode_payload, end_of, place, sequence_of
from narrowcast.deliver.wire.frame import NO_FLOW
from simulator.schedule import Schedule

SYSTEM = 0x5EED
KEPT = 400  # frames it remembers


class Attacker:
    """Makes of each frame that it hears what could do harm: to silence, to repeat, to get something in."""

    def __init__(self, schedule: Schedule) -> None:
        self._rng = Random(schedule.seed * 3 + 1)
        self._sealed = schedule.sealed
        self._heard: list[bytes] = []
        self._own = Seal(SYSTEM, sealed=True)
        self._other = Seal(SYSTEM + 1, sealed=schedule.sealed)

    def made_from(self, what: Frame | Attach | Pulse, data: bytes) -> Iterator[bytes]:
        """A few packets. Against frames that are not sealed it only has those of another system."""
        self._heard = [*self._heard[-KEPT:], data]
        plan = int.from_bytes(data[20:24], "big")
        lie = self._lie(what)
        for seal in (self._own, self._other):
            seal.know(what.epoch, plan)
            seal.add_root(what.epoch, b"guess" * 6)
        yield self._other.pack(lie)
        if self._sealed:
            yield self._rng.choice(self._heard)
            yield encode(lie, SYSTEM, plan)
            yield self._own.pack(lie)
            yield self._damaged(data)

    def _lie(self, what: Frame | Attach | Pulse) -> Frame | Attach | Pulse:
        """That there is nothing for a long time to come, or a message that nobody sent."""
        if isinstance(what, Attach):
            return replace(what, on=False)
        far = end_of(sequence_of(what.upto) + self._rng.choice((0, 1, 50)))
        if isinstance(what, Pulse):
            return replace(what, upto=far, lately=())
        at = place(sequence_of(far), 0)
        forged = ((at, NO_FLOW, encode_payload({"s": "a", "p": 2, "n": -1})),)
        return replace(what, upto=far, messages=self._rng.choice(((), forged)))

    def _damaged(self, data: bytes) -> bytes:
        if self._rng.random() < 0.3:
            return data[: self._rng.randrange(len(data))]
        changed = bytearray(data)
        bit = self._rng.randrange(8 * len(data))
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)
