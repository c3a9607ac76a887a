"""Log and registry for those who are not trusted with them: every question goes to the gate, which answers or refuses.

Such an account may publish to `SYSTEM.gate.ACCOUNT.*` and hear its own inboxes and addresses; it has no part of
JetStream's interface, by which whoever may read anything can have it delivered anywhere, into the log too.

A question and an answer are a line of JSON and bytes behind it. An answer with `error` is a refusal.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

from narrowcast.deliver.transport.nats.link import NatsLink
from narrowcast.deliver.transport.protocols import ConflictError, Entry, FinalError, Stretch, TakeAtOnce, Value
from narrowcast.errors import InputError, TransportError

GATE = "gate"
WAIT_S = 5.0  # how long the gate waits for a change before it says that there is none
ANSWER_S = 2.0
KINDS: dict[str, type[TransportError]] = {"conflict": ConflictError, "final": FinalError}


def pack_question(head: dict[str, Any], parts: Iterable[bytes] = ()) -> bytes:
    """A line of JSON and what belongs to it."""
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + b"".join(parts)


def unpack_question(data: bytes) -> tuple[dict[str, Any], bytes]:
    """What `pack_question` made; ValueError for anything else.

    >>> unpack_question(pack_question({"key": "epoch"}, [b"x"]))
    ({'key': 'epoch'}, b'x')
    """
    line, _, body = data.partition(b"\n")
    try:
        head = json.loads(line)
    except RecursionError:
        raise ValueError("a question must not be nested so deep") from None
    if not isinstance(head, dict):
        raise ValueError("a question must be an object")
    return head, body


def cut(body: bytes, sizes: Sequence[int | None]) -> list[bytes | None]:
    """Bytes that stand one behind the other, by their sizes; None where there are none.

    >>> cut(b"abc", [1, None, 2])
    [b'a', None, b'bc']
    """
    found: list[bytes | None] = []
    at = 0
    for size in sizes:
        found.append(None if size is None else body[at : at + size])
        at += size or 0
    return found


class Gated:
    """Asks the gate in the name of the account of a connection."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._subject = f"{GATE}.{link.target.account.encode().hex()}"

    async def ask(
        self, what: str, head: dict[str, Any], body: bytes = b"", timeout: float = ANSWER_S
    ) -> tuple[dict[str, Any], bytes]:
        """The answer; ConflictError, FinalError or TransportError for a refusal, InputError if it is ours to fix."""
        data = await self._link.ask(f"{self._subject}.{what}", pack_question(head, [body]), timeout)
        try:
            found, rest = unpack_question(data)
        except ValueError:
            raise TransportError("the gate's answer cannot be read", endpoint=what) from None
        if "error" in found:
            if found.get("kind") == "input":
                raise InputError(found["error"], name=what)
            raise KINDS.get(found.get("kind", ""), TransportError)(found["error"], endpoint=what)
        return found, rest


class GatedRegistry:
    """`Registry` as far as the gate shows it."""

    def __init__(self, gate: Gated) -> None:
        self._gate = gate

    async def get(self, key: str) -> Value:
        head, body = await self._gate.ask("get", {"key": key})
        return Value(key, None if head["size"] is None else body, head["revision"])

    async def put(self, key: str, data: bytes, *, revision: int | None = None) -> int:
        head, _ = await self._gate.ask("put", {"key": key, "revision": revision}, data)
        return int(head["revision"])

    async def delete(self, key: str, *, revision: int | None = None) -> None:
        await self._gate.ask("delete", {"key": key, "revision": revision})

    async def watch(self, prefix: str) -> AsyncGenerator[Value, None]:
        """Asks for what has changed since the last answer, which comes once something has."""
        made, since = "", 0
        while True:
            question = {"prefix": prefix, "made": made, "since": since}
            try:
                head, body = await self._gate.ask("changes", question, timeout=WAIT_S + ANSWER_S)
            except TransportError:
                await asyncio.sleep(0.5)
                continue
            made, since = head["made"], head["since"]
            datas = cut(body, [size for _, size, _ in head["values"]])
            for (key, _, revision), data in zip(head["values"], datas, strict=True):
                yield Value(key, data, revision)


class GatedLog:
    """`Log` by numbers, of which the gate shows what an account is entitled to."""

    def __init__(self, gate: Gated, most_bytes: int) -> None:
        self._gate, self._most = gate, most_bytes

    @property
    def most_bytes(self) -> int:
        return self._most

    async def append(self, shard: int, data: bytes, *, dedup: str) -> int:
        head, _ = await self._gate.ask("append", {"shard": shard, "dedup": dedup}, data, 2 * ANSWER_S)
        return int(head["sequence"])

    async def read(self, shard: int, after: int, *, most: int, upto: int | None = None) -> Stretch:
        question = {"shard": shard, "after": after, "most": most, "upto": upto}
        head, body = await self._gate.ask("read", question, timeout=2 * ANSWER_S)
        datas = cut(body, [size for _, size in head["entries"]])
        entries = [Entry(sequence, data or b"") for (sequence, _), data in zip(head["entries"], datas, strict=True)]
        return Stretch(after, head["upto"], tuple(entries), head["first"], head["back"])

    async def last(self, shard: int) -> int:
        head, _ = await self._gate.ask("last", {"shard": shard})
        return int(head["sequence"])

    async def tail(self, shard: int, after: int, at_once: TakeAtOnce | None = None) -> AsyncGenerator[Entry, None]:
        """Not for those behind the gate."""
        if shard >= 0:
            raise FinalError("a tail of the log is for sources alone", endpoint=str(shard))
        yield Entry(0, b"")
