"""Places: where a message stands in its shard's log, as one whole number.

One log entry holds many messages, so a message's id is (shard, entry, index in the entry). Entry and
index are packed into one 64-bit number that orders as the log does; with it, `(after, upto]` of a
frame, an edge's watermark and a message's id are all the same kind of thing, and a frame may end in
the middle of an entry. The place `(q << 16) | 0xFFFF` is the end of entry q; 0 is before everything.

A log may go back: it is restored from an older copy, or begun anew, and sequence numbers are used again. So the
number of an entry also says its *generation*, above its sequence number: `generation << 48 | sequence`. Generations
grow with time, and so do numbers and places, whatever becomes of the log (`lineage`).
"""

from __future__ import annotations

BITS = 16
END = (1 << BITS) - 1
SEQUENCE_BITS = 48
MOST = END - 1  # messages in one entry


def place(sequence: int, index: int) -> int:
    """The place of message `index` (from 0) of entry `sequence` (from 1).

    >>> place(1, 0) < place(1, 1) < end_of(1) < place(2, 0)
    True
    """
    return (sequence << BITS) | (index + 1)


def end_of(sequence: int) -> int:
    """The place after every message of an entry; `end_of(0)` is the end of an empty log."""
    return (sequence << BITS) | END


def sequence_of(at: int) -> int:
    """The entry a place lies in."""
    return at >> BITS


def index_of(at: int) -> int:
    """The index in its entry of the message at a place."""
    return (at & END) - 1


def in_generation(generation: int, sequence: int) -> int:
    """The number of the entry that stands at a sequence number of the log in a generation.

    >>> in_generation(1, 400) > in_generation(0, 500)
    True
    """
    return (generation << SEQUENCE_BITS) | sequence


def generation_of(number: int) -> int:
    """The generation of an entry, by its number."""
    return number >> SEQUENCE_BITS


def bare_of(number: int) -> int:
    """The sequence number of an entry, without its generation."""
    return number & ((1 << SEQUENCE_BITS) - 1)
