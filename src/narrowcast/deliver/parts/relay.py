"""A frame as a broker needs it: the header read, the messages left in their bytes until somebody looks at them.

Most brokers pass a frame on by its channel. Its bytes go out as they came in; whether they are whole is
for the edge to find out, which has the checksum. Only a filter opens it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast, overload

from narrowcast.deliver.wire import Attach, Frame, Malformed, Pulse, decode
from narrowcast.deliver.wire.frame import DATA, HEAD, MAGIC, MOST_BYTES, VERSION, Message


class Unopened(Sequence[Message]):
    """The messages of a frame; how many is known, what they are only when asked. Of a damaged frame there are none."""

    def __init__(self, data: bytes, count: int) -> None:
        self.data, self._count = data, count
        self._found: tuple[Message, ...] | None = None

    def __len__(self) -> int:
        return self._count if self._found is None else len(self._found)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._open()[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._open())

    def _open(self) -> tuple[Message, ...]:
        if self._found is None:
            frame = decode(self.data)
            self._found = frame.messages if isinstance(frame, Frame) else ()
        return self._found


def glance(data: bytes) -> Frame | Attach | Pulse | Malformed:
    """The header of a frame; anything else as `decode` has it. Constant time.

    >>> from narrowcast.deliver.wire import Carried, encode
    >>> data = encode(Frame(0, 7, 1, 0, 65537, (Carried(65537, 3, b"{}"),)))
    >>> frame = glance(data)
    >>> frame.channel, len(frame.messages), tuple(frame.messages) == decode(data).messages
    (7, 1, True)
    """
    if not HEAD.size <= len(data) <= MOST_BYTES or data[3] != DATA:
        return decode(data)
    magic, version, _, shard, channel, epoch, after, upto, count = HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION or after > upto:
        return decode(data)
    messages = cast(tuple[Message, ...], Unopened(data, count))
    return Frame(shard, channel, epoch, after, upto, messages)
