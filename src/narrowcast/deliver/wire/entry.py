"""A log entry as bytes and back: messages of one publisher, one by one or as columns, the marker of an epoch, a birth.

A marker is how a plan takes effect at a sequence number: the entry's own. Whoever reads the log in
order meets it at the same place, so no clock and no agreement is needed about when. A birth begins a generation of the
log (`lineage`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from narrowcast.deliver.wire.frame import Malformed
from narrowcast.deliver.wire.place import MOST
from narrowcast.errors import InputError

MAGIC = b"nl"
VERSION = 1
BATCH, MARKER, BIRTH, COLUMNS = 1, 2, 3, 4

_START = Struct(">2sBB")
_BATCH = Struct(">2sBBBQH")
_MARKER = Struct(">2sBBI")
_BORN = Struct(">QQ8s")
_SIZE = Struct(">I")
ENTRY_BYTES = _BATCH.size + 255 + 2 * _SIZE.size  # what an entry of one message takes beside it, at most


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that one publisher sent together; `(publisher, number)` names the batch for ever."""

    publisher: str
    number: int
    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ColumnBatch:
    """The same as columns: `count` messages, the rows of the record batch that `data` is (`columns`)."""

    publisher: str
    number: int
    count: int
    data: bytes | memoryview


@dataclass(frozen=True, slots=True)
class Marker:
    """From after this entry on, the plan of `epoch` is in force; ignored unless it is above the epoch before it."""

    epoch: int


class Born(NamedTuple):
    """A generation: its id, the sequence number of its first entry, and which start of which server it began with."""

    generation: int
    start: int
    server: bytes


@dataclass(frozen=True, slots=True)
class Birth:
    """From this entry on the log is of the last of these generations; the ones before it are its ancestors."""

    born: tuple[Born, ...]


def encode_entry(entry: Batch | ColumnBatch | Marker | Birth) -> bytes:
    """The bytes of a log entry.

    >>> decode_entry(encode_entry(Batch("desk", 4, (b"{}",))))
    Batch(publisher='desk', number=4, payloads=(b'{}',))
    """
    if isinstance(entry, Marker):
        body = _MARKER.pack(MAGIC, VERSION, MARKER, entry.epoch)
        return body + _SIZE.pack(crc32(body))
    if isinstance(entry, Birth):
        body = _START.pack(MAGIC, VERSION, BIRTH) + b"".join(_BORN.pack(*each) for each in entry.born)
        return body + _SIZE.pack(crc32(body))
    name = publisher_bytes(entry.publisher)
    count = entry.count if isinstance(entry, ColumnBatch) else len(entry.payloads)
    if count > MOST:
        raise InputError(f"a batch must have at most {MOST} messages, got {count}", name="messages")
    if isinstance(entry, ColumnBatch):
        head = _BATCH.pack(MAGIC, VERSION, COLUMNS, len(name), entry.number, count)
        check = crc32(entry.data, crc32(head + name))
        return b"".join((head, name, entry.data, _SIZE.pack(check)))
    parts = [_BATCH.pack(MAGIC, VERSION, BATCH, len(name), entry.number, len(entry.payloads)), name]
    for payload in entry.payloads:
        parts += (_SIZE.pack(len(payload)), payload)
    body = b"".join(parts)
    return body + _SIZE.pack(crc32(body))


def publisher_bytes(name: str) -> bytes:
    """A publisher's name as entries have it; InputError if it is too long."""
    found = name.encode()
    if len(found) > 255:
        raise InputError(f"the publisher's name must have at most 255 bytes, got {len(found)}", name="publisher")
    return found


def is_birth(data: bytes) -> bool:
    """Whether an entry claims to be a birth, by its first bytes."""
    return data[:4] == _START.pack(MAGIC, VERSION, BIRTH)


def decode_entry(data: bytes) -> Batch | ColumnBatch | Marker | Birth | Malformed:
    """What the bytes of a log entry are. Never raises: a foreign entry holds no messages, for every reader alike."""
    if len(data) < _START.size + _SIZE.size:
        return Malformed("short")
    magic, version, kind = _START.unpack_from(data)
    if magic != MAGIC:
        return Malformed("magic")
    if version != VERSION:
        return Malformed("version")
    body = memoryview(data)[: -_SIZE.size]
    if crc32(body) != _SIZE.unpack_from(data, len(body))[0]:
        return Malformed("checksum")
    if kind == BATCH:
        return _read_batch(data, len(body))
    if kind == COLUMNS:
        return _read_columns(data, len(body))
    if kind == BIRTH:
        return _read_birth(data, len(body))
    if kind != MARKER:
        return Malformed("kind")
    return Marker(_MARKER.unpack(body)[3]) if len(body) == _MARKER.size else Malformed("length")


def _read_birth(data: bytes, size: int) -> Birth | Malformed:
    """Generations ascend, and so do their starts; that of the last is not known when it is written."""
    if size == _START.size or (size - _START.size) % _BORN.size:
        return Malformed("length")
    born = tuple(map(Born._make, _BORN.iter_unpack(data[_START.size : size])))
    before = born[:-1]
    rising = all(a.generation < b.generation for a, b in pairwise(born))
    return Birth(born) if rising and all(a.start <= b.start for a, b in pairwise(before)) else Malformed("order")


def _read_batch(data: bytes, size: int) -> Batch | Malformed:
    """The batch in the first `size` bytes."""
    if size < _BATCH.size:
        return Malformed("short")
    _, _, _, length, number, count = _BATCH.unpack_from(data)
    start = _BATCH.size + length
    try:
        name = data[_BATCH.size : start].decode()
    except UnicodeDecodeError:
        return Malformed("text")
    payloads = []
    for _ in range(count):
        begin = start + _SIZE.size
        if begin > size:
            return Malformed("length")
        start = begin + _SIZE.unpack_from(data, start)[0]
        if start > size:
            return Malformed("length")
        payloads.append(data[begin:start])
    return Batch(name, number, tuple(payloads)) if start == size and count <= MOST else Malformed("length")


def _read_columns(data: bytes, size: int) -> ColumnBatch | Malformed:
    """The columns in the first `size` bytes, not looked at."""
    if size < _BATCH.size:
        return Malformed("short")
    _, _, _, length, number, count = _BATCH.unpack_from(data)
    start = _BATCH.size + length
    if start > size or not 0 < count <= MOST:
        return Malformed("length")
    try:
        name = data[_BATCH.size : start].decode()
    except UnicodeDecodeError:
        return Malformed("text")
    return ColumnBatch(name, number, count, memoryview(data)[start:size])
