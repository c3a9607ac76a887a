"""What passes between a shared edge and those who share it, as bytes and back."""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import Mapping
from itertools import groupby
from struct import Struct
from typing import Any

from narrowcast.deliver.parts.effects import Deliver, Gap, Subscribed

_SIZES = Struct(">II")
_LOW = 64  # bits of a place without its generation
MOST_NOTE = 64 << 20

Note = tuple[dict[str, Any], bytes]


def note_bytes(head: Mapping[str, Any], *body: bytes | memoryview) -> bytes:
    """A note as bytes."""
    return b"".join((_head(head, sum(map(len, body))), *body))


def _head(head: Mapping[str, Any], size: int) -> bytes:
    """What stands before a body of this size."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return _SIZES.pack(len(text), size) + text


async def read_note(stream: asyncio.StreamReader) -> Note:
    """The next note. IncompleteReadError at the end, ValueError for what is none."""
    text, size = _SIZES.unpack(await stream.readexactly(_SIZES.size))
    if text + size > MOST_NOTE:
        raise ValueError(f"a note must have at most {MOST_NOTE} bytes, got {text + size}")
    head = json.loads(await stream.readexactly(text))
    if not isinstance(head, dict):
        raise ValueError("a note must be an object")
    return head, await stream.readexactly(size)


def effect_notes(effect: Deliver | Gap | Subscribed) -> list[bytes | memoryview]:
    """What an edge tells an application, as the bytes of notes; those of columns are not copied for each of many."""
    if isinstance(effect, Subscribed):
        return [note_bytes({"subscribed": effect.subscription, "start": list(effect.start.items())})]
    if isinstance(effect, Gap):
        told = [effect.subscription, effect.shard, effect.after, effect.upto, effect.reason]
        return [note_bytes({"gap": told})]
    head = {"of": effect.subscription, "shard": effect.shard}
    columns = getattr(effect.messages, "columns", None)
    if columns is not None:
        indices = columns.indices.astype("<u2").tobytes()
        more = {"base": columns.base, "rows": len(columns), "position": effect.position}
        data = columns.data
        return [_head(head | more, len(indices) + len(data)) + indices, data]
    found: list[bytes | memoryview] = []
    runs = [(born, list(some)) for born, some in groupby(effect.messages, key=lambda message: message[0] >> _LOW)]
    for k, (born, some) in enumerate(runs or [(0, [])]):
        places = array("Q", (at & ((1 << _LOW) - 1) for at, _ in some))
        sizes = array("I", (len(payload) for _, payload in some))
        position = effect.position if k >= len(runs) - 1 else some[-1][0]
        more = {"born": born, "count": len(some), "position": position}
        found.append(note_bytes(head | more, places.tobytes(), sizes.tobytes(), *(payload for _, payload in some)))
    return found


def effect_of(head: Mapping[str, Any], body: bytes) -> Deliver | Gap | Subscribed:
    """The opposite. ValueError, KeyError or TypeError for what is no such note."""
    if "subscribed" in head:
        return Subscribed(head["subscribed"], {int(shard): int(at) for shard, at in head["start"]})
    if "gap" in head:
        return Gap(*head["gap"])
    if "base" in head:
        import numpy as np

        from narrowcast.deliver.wire.columns import ColumnRows, Columns

        n = head["rows"]
        rows = Columns(head["base"], np.frombuffer(body, "<u2", n).astype(np.int64), None, memoryview(body)[2 * n :])
        if not rows.is_whole():
            raise ValueError("the columns are damaged")
        return Deliver(head["of"], head["shard"], ColumnRows(rows), head["position"])
    n, born = head["count"], head["born"] << _LOW
    places, sizes = array("Q", body[: 8 * n]), array("I", body[8 * n : 12 * n])
    messages, start = [], 12 * n
    for at, size in zip(places, sizes, strict=True):
        messages.append((at | born, body[start : start + size]))
        start += size
    return Deliver(head["of"], head["shard"], tuple(messages), head["position"])
