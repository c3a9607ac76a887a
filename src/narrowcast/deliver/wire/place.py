"""Places: where a message stands in its shard's log, as one whole number.

One log entry holds many messages, so a message's id is (shard, entry, index in the entry). Entry and
index are packed into one 64-bit number that orders as the log does; with it, `(after, upto]` of a
frame, an edge's watermark and a message's id are all the same kind of thing, and a frame may end in
the middle of an entry. The place `(q << 16) | 0xFFFF` is the end of entry q; 0 is before everything.
"""

from __future__ import annotations

BITS = 16
END = (1 << BITS) - 1
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
