"""A frame as a broker needs it: the header read, the messages left in their bytes until somebody looks at them.

Most brokers pass a frame on by its channel. Its bytes go out as they came in, if their checksum is right: damage
ends at the next hop. Only a filter opens a frame, and one that is none inside ends there too: sent on with the
messages that could be found, none of them, it would claim that there were none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload
from zlib import crc32

from narrowcast.deliver.wire import Attach, Frame, Malformed, Pulse, decode
from narrowcast.deliver.wire.frame import COLUMNS, DATA, HEAD, MAGIC, MOST_BYTES, VERSION, WHOLE, Message

if TYPE_CHECKING:
    from narrowcast.deliver.wire.columns import Columns


class Unopened(Sequence[Message]):
    """The messages of a frame; how many is known, what they are only when asked. See `is_whole` before asking."""

    def __init__(self, data: bytes, count: int) -> None:
        self.data, self._count = data, count
        self.sent = data  # as it came in and goes out: sealed
        self._found: Sequence[Message] | None = None

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

    def is_whole(self) -> bool:
        """Whether the messages can be read; whoever makes a claim about them must know."""
        if self._found is None:
            frame = decode(self.data)
            if not isinstance(frame, Frame):
                return False
            columns = columns_in(frame.messages)
            if columns is not None and not columns.is_whole():
                return False
            self._found = frame.messages
        return True

    def _open(self) -> Sequence[Message]:
        if not self.is_whole() or self._found is None:
            raise ValueError("the frame is damaged")
        return self._found


def columns_in(messages: Sequence[Message]) -> Columns | None:
    """The columns that a frame's messages are, if they are; of a frame that was not opened, once it is known whole."""
    found = messages._found if isinstance(messages, Unopened) else messages
    if found is None or isinstance(found, tuple | list):
        return None
    from narrowcast.deliver.wire.columns import Columns  # only who has columns needs Arrow

    return found if isinstance(found, Columns) else None


def glance(data: bytes, *, checked: bool = False) -> Frame | Attach | Pulse | Malformed:
    """The header of a frame whose checksum is right, or need not be looked at; anything else as `decode` has it.

    >>> from narrowcast.deliver.wire import Carried, encode
    >>> data = encode(Frame(0, 7, 1, 0, 65537, (Carried(65537, 3, b"{}"),)))
    >>> frame = glance(data)
    >>> frame.channel, len(frame.messages), tuple(frame.messages) == decode(data).messages
    (7, 1, True)
    """
    if not HEAD.size <= len(data) <= MOST_BYTES or data[3] not in (DATA, COLUMNS):
        return decode(data, checked=checked)
    magic, version, _, _, epoch, channel, _, shard, born, after, upto, count = HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION or after > upto or not (checked or crc32(data) == WHOLE):
        return decode(data)
    base = born << 64
    return Frame(shard, channel, epoch, after | base, upto | base, Unopened(data, count))
