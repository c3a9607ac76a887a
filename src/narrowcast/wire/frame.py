"""A frame: everything for one channel in `(after, upto]`, as bytes and back.

    magic version kind | shard channel epoch after upto count | (place flow size payload)* | checksum

Numbers are big-endian, the checksum is CRC-32 over all before it. Whatever cannot be a frame decodes
to `Malformed` with a reason to count; the decoder never raises, and what it returns is sound: places
ascend and lie within `(after, upto]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from narrowcast.errors import InputError

MAGIC = b"nc"
VERSION = 1
DATA, ATTACH, PULSE = 1, 2, 3
MOST_BYTES = 1 << 20
NO_FLOW = 0xFFFFFFFF

_START = Struct(">2sBB")
_HEAD = Struct(">2sBBHIIQQH")
_MESSAGE = Struct(">QII")
_ATTACH = Struct(">2sBBIIBB")
_PULSE = Struct(">2sBBHIQQI")
_LATELY = Struct(">IQ")
_CHECK = Struct(">I")


class Carried(NamedTuple):
    """A message on its way: its place, the number of its flow in the epoch's routing, and its payload."""

    place: int
    flow: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything for `channel` of `epoch` in `(after, upto]` of `shard`; without messages, a heartbeat."""

    shard: int
    channel: int
    epoch: int
    after: int
    upto: int
    messages: tuple[Carried, ...] = ()


@dataclass(frozen=True, slots=True)
class Attach:
    """An edge tells its broker that it takes a channel, or no longer does (`on` false)."""

    edge: str
    epoch: int
    channel: int
    on: bool = True


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


def encode(what: Frame | Attach | Pulse) -> bytes:
    """The bytes of a frame, an attachment or a pulse.

    >>> decode(encode(Frame(0, 7, 1, 0, 65537, (Carried(65537, 3, b"{}"),)))).messages
    (Carried(place=65537, flow=3, payload=b'{}'),)
    """
    if isinstance(what, Frame):
        body = _frame_bytes(what)
    else:
        body = _pulse_bytes(what) if isinstance(what, Pulse) else _attach_bytes(what)
    if len(body) + _CHECK.size > MOST_BYTES:
        raise InputError(f"a frame of {len(body)} bytes is over the limit of {MOST_BYTES}", name="frame", got=len(body))
    return body + _CHECK.pack(crc32(body))


def frame_size(messages: int, payload_bytes: int) -> int:
    """How many bytes a frame of so many messages and payload bytes takes."""
    return _HEAD.size + _CHECK.size + messages * _MESSAGE.size + payload_bytes


def decode(data: bytes) -> Frame | Attach | Pulse | Malformed:
    """What bytes from the network are. Linear; never raises."""
    if len(data) < _START.size + _CHECK.size:
        return Malformed("short")
    if len(data) > MOST_BYTES:
        return Malformed("long")
    magic, version, kind = _START.unpack_from(data)
    if magic != MAGIC:
        return Malformed("magic")
    if version != VERSION:
        return Malformed("version")
    body = memoryview(data)[: -_CHECK.size]
    if crc32(body) != _CHECK.unpack_from(data, len(body))[0]:
        return Malformed("checksum")
    if kind == DATA:
        return _read_frame(data, len(body))
    if kind == PULSE:
        return _read_pulse(data, len(body))
    return _read_attach(body) if kind == ATTACH else Malformed("kind")


def _frame_bytes(frame: Frame) -> bytes:
    head = (frame.shard, frame.channel, frame.epoch, frame.after, frame.upto, len(frame.messages))
    parts = [_HEAD.pack(MAGIC, VERSION, DATA, *head)]
    for at, flow, payload in frame.messages:
        parts += (_MESSAGE.pack(at, flow, len(payload)), payload)
    return b"".join(parts)


def _read_frame(data: bytes, size: int) -> Frame | Malformed:
    """The frame in the first `size` bytes."""
    if size < _HEAD.size:
        return Malformed("short")
    _, _, _, shard, channel, epoch, after, upto, count = _HEAD.unpack_from(data)
    if after > upto:
        return Malformed("order")
    unpack, step = _MESSAGE.unpack_from, _MESSAGE.size
    start, last = _HEAD.size, after
    messages = []
    for _ in range(count):
        begin = start + step
        if begin > size:
            return Malformed("length")
        at, flow, length = unpack(data, start)
        start = begin + length
        if start > size:
            return Malformed("length")
        if not last < at <= upto:
            return Malformed("order")
        messages.append(Carried(at, flow, data[begin:start]))
        last = at
    if start != size:
        return Malformed("length")
    return Frame(shard, channel, epoch, after, upto, tuple(messages))


def _attach_bytes(attach: Attach) -> bytes:
    name = attach.edge.encode()
    if len(name) > 255:
        raise InputError(f"the edge's name takes {len(name)} bytes; 255 is the most", name="edge", got=attach.edge)
    return _ATTACH.pack(MAGIC, VERSION, ATTACH, attach.epoch, attach.channel, attach.on, len(name)) + name


def _read_attach(body: memoryview) -> Attach | Malformed:
    if len(body) < _ATTACH.size:
        return Malformed("short")
    _, _, _, epoch, channel, on, length = _ATTACH.unpack_from(body)
    if len(body) != _ATTACH.size + length or on > 1:
        return Malformed("length")
    try:
        name = bytes(body[_ATTACH.size :]).decode()
    except UnicodeDecodeError:
        return Malformed("text")
    return Attach(name, epoch, channel, bool(on))


def _pulse_bytes(pulse: Pulse) -> bytes:
    head = (pulse.shard, pulse.epoch, pulse.after, pulse.upto, len(pulse.lately))
    return _PULSE.pack(MAGIC, VERSION, PULSE, *head) + b"".join(_LATELY.pack(*each) for each in pulse.lately)


def _read_pulse(data: bytes, size: int) -> Pulse | Malformed:
    if size < _PULSE.size:
        return Malformed("short")
    _, _, _, shard, epoch, after, upto, count = _PULSE.unpack_from(data)
    if size != _PULSE.size + count * _LATELY.size:
        return Malformed("length")
    lately = tuple(_LATELY.iter_unpack(data[_PULSE.size : size]))
    if after > upto or any(at > upto for _, at in lately):
        return Malformed("order")
    return Pulse(shard, epoch, after, upto, lately)
