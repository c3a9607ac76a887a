"""Several frames in one packet: what stands ready for one address goes out together, as TCP would have it.

    magic version count | size* | frame*

Each frame keeps its checksum, so a bundle needs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from struct import Struct, unpack_from

MAGIC = b"nb"
VERSION = 1
_HEAD = Struct(">2sBH")
_SIZE = 4
MOST = 0xFFFF


def bundled(frames: Sequence[bytes], most_bytes: int) -> Iterator[tuple[bytes, int]]:
    """The frames in as few packets as their order allows, each with how many are in it; one alone is itself.

    >>> [(len(packet), n) for packet, n in bundled([b"x" * 50, b"y" * 50, b"z" * 900], 200)]
    [(113, 2), (900, 1)]
    """
    waiting: list[bytes] = []
    size = _HEAD.size
    for frame in frames:
        if waiting and (size + _SIZE + len(frame) > most_bytes or len(waiting) == MOST):
            yield _packed(waiting), len(waiting)
            waiting, size = [], _HEAD.size
        waiting.append(frame)
        size += _SIZE + len(frame)
    if waiting:
        yield _packed(waiting), len(waiting)


def _packed(frames: list[bytes]) -> bytes:
    if len(frames) == 1:
        return frames[0]
    sizes = b"".join(len(frame).to_bytes(_SIZE, "big") for frame in frames)
    return b"".join((_HEAD.pack(MAGIC, VERSION, len(frames)), sizes, *frames))


def unbundled(packet: bytes) -> list[bytes]:
    """The frames of a packet. What is no bundle, or a damaged one, comes back as it is, to be counted by its reader.

    >>> [unbundled(packet) for packet, _ in bundled([b"one", b"two"], 100)]
    [[b'one', b'two']]
    """
    if packet[:2] != MAGIC or len(packet) < _HEAD.size or packet[2] != VERSION:
        return [packet]
    count = _HEAD.unpack_from(packet)[2]
    start = _HEAD.size + count * _SIZE
    if start > len(packet):
        return [packet]
    ends = list(accumulate(unpack_from(f">{count}I", packet, _HEAD.size), initial=start))
    return [packet[a:b] for a, b in pairwise(ends)] if ends[-1] == len(packet) else [packet]
