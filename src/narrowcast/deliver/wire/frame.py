"""A frame: everything for one channel in `(after, upto]`, as bytes and back.

    magic version kind system epoch channel plan | shard generation after upto count | (place flow size)* | payload*
    | checksum

or, where messages were published as columns, the rows of one entry of the log as one Arrow record batch (`columns`):

    magic version kind system epoch channel plan | shard generation after upto count | entry | index* | flow* | batch
    | checksum

Numbers are big-endian, the checksum is CRC-32 over all before it, little-endian. `system` is the random id of the
system that a frame belongs to, `plan` the checksum of the plan it was made by: `seal` looks at both, and hides all
that stands behind them. Places of a frame are of one generation of the log, which stands there once.

Whatever cannot be a frame decodes to `Malformed` with a reason to count; the decoder never raises, and what it returns
is sound: places ascend and lie within `(after, upto]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from narrowcast.deliver.wire.place import END
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.deliver.wire.columns import Columns

MAGIC = b"nc"
VERSION = 3
DATA, ATTACH, PULSE, COLUMNS = 1, 2, 3, 4
MOST_BYTES = 1 << 20
NO_FLOW = 0xFFFFFFFF
EVERY = 0xFFFFFFFF  # in place of a channel: the pulse of all of them

_START = Struct(">2sBB")
PREFIX = Struct(">2sBBQIII")  # magic, version, kind, system, epoch, channel, plan: what a seal leaves readable
HEAD = Struct(">2sBBQIIIHQQQH")
_MESSAGE = Struct(">QII")
_ENTRY = Struct(">Q")  # the place before the first message of an entry
ROW_BYTES = 2 + 4  # the index of a row in its entry, and its flow
_ONE = Struct(">2sBBQIIIHQQQHQII")  # the head of a frame and of its only message
_ATTACH = Struct(">2sBBQIIIBBI")
_PULSE = Struct(">2sBBQIIIHQQQI")
_LATELY = Struct(">IQ")
_CHECK = Struct("<I")  # this way round, the checksum of whatever ends with its checksum is always the same
SEAL_BYTES = 12 + 16  # a nonce and a tag
FRAME_BYTES = HEAD.size + _CHECK.size + SEAL_BYTES  # a frame without messages, sealed
MESSAGE_BYTES = _MESSAGE.size  # and what each takes beside its payload
COLUMNS_BYTES = FRAME_BYTES + _ENTRY.size  # a frame of columns without its rows: ROW_BYTES each, and their batch
WHOLE = 0x2144DF1C  # the checksum of any frame that is as it was sent
_DATA = MAGIC + bytes((VERSION, DATA))
_LOW = 64  # bits of a place without its generation
_COUNT, _SINGLE = slice(HEAD.size - 2, HEAD.size), b"\0\1"


class Carried(NamedTuple):
    """A message on its way: its place, the number of its flow in the epoch's routing, and its payload."""

    place: int
    flow: int
    payload: bytes


# The same without names: half the price to make, and nothing for the garbage collector to look through.
Message = tuple[int, int, bytes]


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything for `channel` of `epoch` in `(after, upto]` of `shard`; without messages, a heartbeat.

    Messages that were published as columns are `Columns`, which are a sequence of messages too.
    """

    shard: int
    channel: int
    epoch: int
    after: int
    upto: int
    messages: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class Attach:
    """An edge tells its broker that it takes a channel, or no longer does (`on` false).

    `turn`: of the broker's subscriptions, as the edge knows them; only where they climb a tree.
    """

    edge: str
    epoch: int
    channel: int
    on: bool = True
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Pulse:
    """The heartbeats of all channels of an epoch at once.

    For every channel in `lately` there is nothing more in `(its place, upto]`; for every other channel
    of the epoch there is nothing in `(after, upto]`.
    """

    shard: int
    epoch: int
    after: int
    upto: int
    lately: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that are no frame, and why: short, long, magic, version, kind, checksum, length, order or text."""

    reason: str


def encode(what: Frame | Attach | Pulse, system: int = 0, plan: int = 0) -> bytes:
    """The bytes of a frame, an attachment or a pulse, of a system and by a plan.

    >>> decode(encode(Frame(0, 7, 1, 0, 65537, (Carried(65537, 3, b"{}"),)))).messages
    ((65537, 3, b'{}'),)
    """
    try:
        body = _body(what, system, plan)
    except struct_error as error:
        raise InputError(f"a frame's numbers must fit their fields: {error}", name="frame") from None
    first, rest = body
    size = len(first) + len(rest)
    if size + _CHECK.size + SEAL_BYTES > MOST_BYTES:
        raise InputError(f"a frame must have at most {MOST_BYTES} bytes, got {size}", name="frame", got=size)
    check = crc32(first)
    return b"".join((first, rest, _CHECK.pack(crc32(rest, check)))) if rest else first + _CHECK.pack(check)


def decode(data: bytes, *, checked: bool = False) -> Frame | Attach | Pulse | Malformed:
    """What bytes from the network are. Linear; never raises. `checked`: a seal has shown that they are as they were."""
    if len(data) < _START.size + _CHECK.size:
        return Malformed("short")
    if len(data) > MOST_BYTES:
        return Malformed("long")
    magic, version, kind = _START.unpack_from(data)
    if magic != MAGIC:
        return Malformed("magic")
    if version != VERSION:
        return Malformed("version")
    if not checked and crc32(data) != WHOLE:
        return Malformed("checksum")
    size = len(data) - _CHECK.size
    if kind == DATA:
        return _read_frame(data, size)
    if kind == PULSE:
        return _read_pulse(data, size)
    if kind == COLUMNS:
        return _read_columns(data, size)
    return _read_attach(memoryview(data)[:size]) if kind == ATTACH else Malformed("kind")


def decode_many(packets: Iterable[bytes], *, checked: bool = False) -> list[Frame | Attach | Pulse | Malformed]:
    """The same for what arrived together. Frames of a channel, each beginning where the one before ended, are one.

    Frames come first. What they say is the same, for less than half the work where they are small.

    >>> frames = [Frame(0, 7, 1, 0, 5), Frame(0, 8, 1, 0, 9), Frame(0, 7, 1, 5, 6)]
    >>> [(f.channel, f.after, f.upto) for f in decode_many(map(encode, frames))]
    [(7, 0, 6), (8, 0, 9)]
    """
    runs: list[_Run] = []
    last: dict[tuple[int, int, int], _Run] = {}
    others: list[Frame | Attach | Pulse | Malformed] = []
    for data in packets:
        sized = HEAD.size + _CHECK.size <= len(data) <= MOST_BYTES
        if data[:4] != _DATA or not sized or not (checked or crc32(data) == WHOLE):
            others.append(decode(data, checked=checked))
            continue
        if data[_COUNT] == _SINGLE and len(data) >= _ONE.size + _CHECK.size:
            _, _, _, _, epoch, channel, _, shard, born, after, upto, _, at, flow, length = _ONE.unpack_from(data)
            if after < at <= upto and _ONE.size + length + _CHECK.size == len(data):
                born <<= _LOW
                found: list[Message] | Malformed = [(at | born, flow, data[_ONE.size : -_CHECK.size])]
            else:
                born <<= _LOW
                found = _messages(data, 1, after, upto, born)
        else:
            _, _, _, _, epoch, channel, _, shard, born, after, upto, count = HEAD.unpack_from(data)
            born <<= _LOW
            found = _messages(data, count, after, upto, born)
        if isinstance(found, Malformed):
            others.append(found)
            continue
        after |= born
        upto |= born
        key = (shard, channel, epoch)
        run = last.get(key)
        if run is not None and run.upto == after:
            run.messages += found
            run.upto = upto
        else:
            run = last[key] = _Run(key, after, upto, found)
            runs.append(run)
    return [Frame(*run.key, run.after, run.upto, tuple(run.messages)) for run in runs] + others


def _body(what: Frame | Attach | Pulse, system: int, plan: int) -> tuple[bytes, bytes | memoryview]:
    """Everything but the checksum; columns apart from what stands before them."""
    if isinstance(what, Frame):
        if isinstance(what.messages, tuple | list):
            return _frame_bytes(what, system, plan), b""
        return _columns_bytes(what, system, plan)
    if isinstance(what, Pulse):
        return _pulse_bytes(what, system, plan), b""
    return _attach_bytes(what, system, plan), b""


@dataclass(slots=True)
class _Run:
    """Frames of one channel that connect."""

    key: tuple[int, int, int]
    after: int
    upto: int
    messages: list[Message]


def _frame_bytes(frame: Frame, system: int, plan: int) -> bytes:
    """Numbers of another generation than the claim's end do not fit, and are refused."""
    born = frame.upto >> _LOW
    base = born << _LOW
    who = (MAGIC, VERSION, DATA, system, frame.epoch, frame.channel, plan)
    head = (*who, frame.shard, born, frame.after - base, frame.upto - base, len(frame.messages))
    if len(frame.messages) == 1:
        ((at, flow, payload),) = frame.messages
        return _ONE.pack(*head, at - base, flow, len(payload)) + payload
    parts, pack = [HEAD.pack(*head)], _MESSAGE.pack
    parts += [pack(at - base, flow, len(payload)) for at, flow, payload in frame.messages]
    parts += [message[2] for message in frame.messages]
    return b"".join(parts)


def _columns_bytes(frame: Frame, system: int, plan: int) -> tuple[bytes, bytes | memoryview]:
    from narrowcast.deliver.wire.columns import Columns  # only who has columns needs Arrow

    rows = frame.messages
    if not isinstance(rows, Columns):  # a sequence of another kind
        return _frame_bytes(replace(frame, messages=tuple(rows)), system, plan), b""
    born = frame.upto >> _LOW
    base = born << _LOW
    who = (MAGIC, VERSION, COLUMNS, system, frame.epoch, frame.channel, plan)
    head = HEAD.pack(*who, frame.shard, born, frame.after - base, frame.upto - base, len(rows))
    numbers = rows.indices.astype(">u2").tobytes() + rows.flows.astype(">u4").tobytes()
    return head + _ENTRY.pack(rows.base - base) + numbers, rows.data


def _read_columns(data: bytes, size: int) -> Frame | Malformed:
    """The claim and the places of a frame of columns; its batch is read when somebody asks for it."""
    start = HEAD.size + _ENTRY.size
    if size < start:
        return Malformed("short")
    _, _, _, _, epoch, channel, _, shard, born, after, upto, count = HEAD.unpack_from(data)
    entry = _ENTRY.unpack_from(data, HEAD.size)[0]
    end = start + ROW_BYTES * count
    if not count or end > size:
        return Malformed("length")
    from numpy import frombuffer, int64

    from narrowcast.deliver.wire.columns import Columns

    indices = frombuffer(data, ">u2", count, start).astype(int64)
    flows = frombuffer(data, ">u4", count, start + 2 * count).astype(int64)
    first, last = entry + int(indices[0]) + 1, entry + int(indices[-1]) + 1
    rising = count == 1 or bool((indices[1:] > indices[:-1]).all())
    if entry & END or indices[-1] >= END - 1 or not (rising and after < first <= last <= upto):
        return Malformed("order")
    base = born << _LOW
    rows: Columns = Columns(entry | base, indices, None, memoryview(data)[end:size], flows)
    return Frame(shard, channel, epoch, after | base, upto | base, rows)


def _read_frame(data: bytes, size: int) -> Frame | Malformed:
    """The frame in the first `size` bytes."""
    if size < HEAD.size:
        return Malformed("short")
    _, _, _, _, epoch, channel, _, shard, born, after, upto, count = HEAD.unpack_from(data)
    base = born << _LOW
    found = _messages(data, count, after, upto, base)
    return (
        found if isinstance(found, Malformed) else Frame(shard, channel, epoch, after | base, upto | base, tuple(found))
    )


def _messages(data: bytes, count: int, after: int, upto: int, base: int) -> list[Message] | Malformed:
    """The messages of a whole frame; `base` is the generation of their places."""
    if after > upto:
        return Malformed("order")
    size = len(data) - _CHECK.size
    start, last = HEAD.size + count * _MESSAGE.size, after
    if start > size:
        return Malformed("length")
    messages = []
    for at, flow, length in _MESSAGE.iter_unpack(data[HEAD.size : start]):
        if at <= last:
            return Malformed("order")
        end = start + length
        messages.append((at | base, flow, data[start:end]))
        start, last = end, at
    if start != size:
        return Malformed("length")
    return messages if last <= upto else Malformed("order")


def _attach_bytes(attach: Attach, system: int, plan: int) -> bytes:
    name = attach.edge.encode()
    if len(name) > 255:
        raise InputError(f"the edge's name must have at most 255 bytes, got {len(name)}", name="edge", got=attach.edge)
    who = (MAGIC, VERSION, ATTACH, system, attach.epoch, attach.channel, plan)
    return _ATTACH.pack(*who, attach.on, len(name), attach.turn) + name


def _read_attach(body: memoryview) -> Attach | Malformed:
    if len(body) < _ATTACH.size:
        return Malformed("short")
    _, _, _, _, epoch, channel, _, on, length, turn = _ATTACH.unpack_from(body)
    if len(body) != _ATTACH.size + length or on > 1:
        return Malformed("length")
    try:
        name = bytes(body[_ATTACH.size :]).decode()
    except UnicodeDecodeError:
        return Malformed("text")
    return Attach(name, epoch, channel, bool(on), turn)


def _pulse_bytes(pulse: Pulse, system: int, plan: int) -> bytes:
    born = pulse.upto >> _LOW
    base = born << _LOW
    who = (MAGIC, VERSION, PULSE, system, pulse.epoch, EVERY, plan)
    head = (*who, pulse.shard, born, pulse.after - base, pulse.upto - base, len(pulse.lately))
    return _PULSE.pack(*head) + b"".join(_LATELY.pack(channel, at - base) for channel, at in pulse.lately)


def _read_pulse(data: bytes, size: int) -> Pulse | Malformed:
    if size < _PULSE.size:
        return Malformed("short")
    _, _, _, _, epoch, _, _, shard, born, after, upto, count = _PULSE.unpack_from(data)
    if size != _PULSE.size + count * _LATELY.size:
        return Malformed("length")
    lately = tuple(_LATELY.iter_unpack(data[_PULSE.size : size]))
    if after > upto or any(at > upto for _, at in lately):
        return Malformed("order")
    base = born << _LOW
    if base:
        lately = tuple((channel, at | base) for channel, at in lately)
    return Pulse(shard, epoch, after | base, upto | base, lately)
