"""The gate: answers those who are not trusted with log and registry, and refuses what they may not have.

Whoever asks is known by the subject, which NATS lets nobody else publish to. Of the registry an account may see the
epoch, its own part of each plan, its own keys, subscriptions and nodes, and write the last two; of the log a subscriber
may read what it is entitled to, and a publisher may append batches. Any number of gates may run; one answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.routing.routing import Routing, part_of
from narrowcast.deliver.transport import ConflictError, Entry, FinalError, Log, Registry, Value
from narrowcast.deliver.transport.nats.gated import WAIT_S, pack_question, unpack_question
from narrowcast.deliver.transport.nats.link import inbox_of
from narrowcast.deliver.trust.audit import Audit
from narrowcast.deliver.trust.entitlement import effective, plan_view
from narrowcast.deliver.trust.mirror import Mirror
from narrowcast.deliver.wire import (
    Batch,
    ColumnBatch,
    Malformed,
    Marker,
    decode_entry,
    decode_payloads,
    encode_entry,
    encode_payload,
)
from narrowcast.deliver.wire.entry import Birth
from narrowcast.errors import InputError, NarrowcastError, TransportError
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.predicate import predicate

MOST_NAMES = 1000  # subscriptions and nodes of one account, each
MOST_OPEN = 64  # questions of one account that wait for an answer
MOST_A_SECOND, MOST_AT_ONCE = 1000, 2000  # questions of one account that are looked at
MOST_READ = 1024  # entries
Answer = tuple[dict[str, Any], list[bytes]]
Respond = Callable[["_Asker", dict[str, Any], bytes], Awaitable[Answer]]


class DeniedError(NarrowcastError):
    """An account has asked for what it may not have."""


class Gate:
    """Answers questions. `describe` is what an account is told of the system."""

    def __init__(self, log: Log, registry: Registry, mirror: Mirror, audit: Audit, shards: int, describe: str) -> None:
        self._log, self._registry, self._mirror, self._audit = log, registry, mirror, audit
        self._shards, self._describe = shards, describe
        self._open: Counter[str] = Counter()
        self._room: dict[str, tuple[float, float]] = {}  # by account: questions that may still come, as of when
        self.counts: Counter[str] = Counter()
        self._answers: dict[str, tuple[tuple[str, ...], Respond]] = {
            "hello": (("publisher", "subscriber"), self._hello),
            "append": (("publisher",), self._append),
            "profile": (("subscriber",), self._profile),
            "get": (("subscriber",), self._get),
            "put": (("subscriber",), self._put),
            "delete": (("subscriber",), self._delete),
            "changes": (("subscriber",), self._changes),
            "read": (("subscriber",), self._read),
            "last": (("subscriber",), self._last),
        }

    def admits(self, subject: str, now: float) -> bool:
        """Whether to look at a question at all: so many a second of one account, so that it holds up no other."""
        account = subject.split(".", 2)[1]
        left, at = self._room.get(account, (float(MOST_AT_ONCE), now))
        left = min(MOST_AT_ONCE, left + (now - at) * MOST_A_SECOND)
        self._room[account] = (left - 1 if left >= 1 else left, now)
        self.counts["throttled"] += left < 1
        return left >= 1

    async def answer(self, subject: str, reply: str, data: bytes) -> bytes | None:
        """What to say to a question; None: nothing, to nobody. Never raises but for cancellation."""
        account, what = _asked_by(subject)
        if not reply.startswith(f"{inbox_of(account)}."):  # else our answer would go wherever they like
            self._refuse(account, what, f"reply to {reply}", "an answer goes to the account's own inbox")
            return None
        self._open[account] += 1
        try:
            if self._open[account] > MOST_OPEN:
                raise TransportError("too many questions at once")
            head, parts = await self._answered(account, what, data)
            self.counts["answered"] += 1
            return pack_question(head, parts)
        except DeniedError as error:
            self._refuse(account, what, _line(data), str(error))
            return _error(error, "final")
        except InputError as error:
            self._refuse(account, what, _line(data), str(error))
            return _error(error, "input")
        except ConflictError as error:
            return _error(error, "conflict")
        except FinalError as error:
            return _error(error, "final")
        except TransportError as error:
            return _error(error, "later")
        finally:
            self._open[account] -= 1
            if not self._open[account]:
                del self._open[account]

    def _refuse(self, account: str, what: str, asked: str, reason: str) -> None:
        self.counts["refused"] += 1
        self._audit.refuse(account, what, asked, reason)

    async def _answered(self, account: str, what: str, data: bytes) -> Answer:
        known = self._mirror.values.get(records.named(records.ACCOUNT, account))
        try:
            record = None if known is None or known.data is None else records.read(known.key, known.data)
            head, body = unpack_question(data)
        except ValueError as error:
            raise DeniedError(f"cannot be read: {error}") from None
        if record is None:
            raise DeniedError("there is no such account")
        roles, respond = self._answers.get(what, ((), self._hello))
        if record["role"] not in roles:
            raise DeniedError(f"not for a {record['role']}")
        return await respond(_Asker(account, record.get("entitled"), record["role"]), head, body)

    async def _hello(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        return {"system": self._describe, "most_bytes": self._log.most_bytes}, []

    async def _profile(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        return {"profile": effective(_text(head, "profile"), who.entitled)}, []

    # The registry.

    async def _get(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        key = _text(head, "key")
        who.check_read(key)
        value = self._seen(who, self._mirror.values.get(key) or Value(key, None, 0))
        size = None if value.data is None else len(value.data)
        return {"size": size, "revision": value.revision}, [value.data or b""]

    async def _changes(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        prefix, since = _text(head, "prefix"), _number(head, "since")
        who.check_read(prefix)
        if head.get("made") != self._mirror.made:
            since = 0
        values = self._mirror.since(prefix, since)
        if not values:
            await self._mirror.changed(prefix, WAIT_S)
            values = self._mirror.since(prefix, since)
        shown = [self._seen(who, value) for value in values]
        listed = [(value.key, None if value.data is None else len(value.data), value.revision) for value in shown]
        since = values[-1].revision if values else since
        return {"made": self._mirror.made, "since": since, "values": listed}, [value.data or b"" for value in shown]

    def _seen(self, who: _Asker, value: Value) -> Value:
        """As an account may see it: of a plan, its own part."""
        if value.data is None or not value.key.startswith(records.PLAN):
            return value
        try:
            return value._replace(data=part_of(value.data, plan_view(Routing.from_bytes(value.data), who.owns)))
        except (ValueError, KeyError):
            return value._replace(data=b"")  # rubbish, whatever it is

    async def _put(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        key = _text(head, "key")
        who.check_write(key)
        try:
            record = records.read(key, body)
        except ValueError as error:
            raise DeniedError(str(error)) from None
        prefix = key.partition(".")[0] + "."
        if key not in self._mirror.values and self._names(who, prefix) >= MOST_NAMES:
            raise DeniedError(f"an account may have {MOST_NAMES} names")
        if prefix == records.SUBSCRIPTION:
            if not who.owns(record["edge"]):
                raise DeniedError(f"the edge {record['edge']} is not the account's")
            record = {"profile": effective(record["profile"], who.entitled), "edge": record["edge"], "gateway": None}
        else:
            record = {"role": "edge", "ready": record["ready"], "beat": record.get("beat", 0)}
        packed = records.pack(record | {"account": who.account})
        return {"revision": await self._registry.put(key, packed, revision=_revision(head))}, []

    def _names(self, who: _Asker, prefix: str) -> int:
        kept = (value for value in self._mirror.since(prefix, 0) if value.data is not None)
        return sum(who.owns_key(value.key) for value in kept)

    async def _delete(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        key = _text(head, "key")
        who.check_write(key)
        await self._registry.delete(key, revision=_revision(head))
        return {}, []

    # The log.

    async def _read(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        after, most = _number(head, "after"), min(_number(head, "most"), MOST_READ)
        upto = None if head.get("upto") is None else _number(head, "upto")
        found = await self._log.read(self._shard(head), after, most=most, upto=upto)
        entries = found.entries if who.entitled is None else shown(found.entries, who.entitled)
        told = {"entries": [(e.sequence, len(e.data)) for e in entries], "upto": found.upto}
        return told | {"first": found.first, "back": found.back}, [entry.data for entry in entries]

    async def _last(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        return {"sequence": await self._log.last(self._shard(head))}, []

    async def _append(self, who: _Asker, head: dict[str, Any], body: bytes) -> Answer:
        """Batches only: markers move the system from plan to plan, and births its log from one to the next."""
        shard, batch = self._shard(head), decode_entry(body)
        if not isinstance(batch, Batch | ColumnBatch):
            raise DeniedError("a publisher may append batches of messages only")
        if not who.owns(batch.publisher):
            raise DeniedError(f"the publisher {batch.publisher} is not the account's")
        if any(isinstance(message, Malformed) for message in _messages(batch)):
            raise DeniedError("a message cannot be read")
        dedup = f"{batch.publisher}-{batch.number}"  # as publishers name it, whatever this one says
        return {"sequence": await self._log.append(shard, body, dedup=dedup)}, []

    def _shard(self, head: dict[str, Any]) -> int:
        shard = _number(head, "shard")
        if shard >= self._shards:
            raise DeniedError(f"there is no shard {shard}")
        return shard


class _Asker:
    """An account that asks: what is its own, and what it may see."""

    def __init__(self, account: str, entitled: str | None, role: str) -> None:
        self.account, self.entitled, self.role = account, entitled, role

    def owns(self, name: str) -> bool:
        return name == self.account or name.startswith(f"{self.account}/")

    def owns_key(self, key: str) -> bool:
        try:
            return self.owns(records.name_of(key))
        except ValueError:
            return False

    def check_read(self, key: str) -> None:
        """DeniedError for what is not for this account, of a key or of all that begin with it."""
        if key == records.EPOCH or key == records.PLAN or (key.startswith(records.PLAN) and key[5:].isdecimal()):
            return
        if key.startswith(records.RING):
            edge, dot, epoch = key.removeprefix(records.RING).partition(".")
            if dot and (not epoch or epoch.isdecimal()) and self.owns_key(f"{records.NODE}{edge}"):
                return
        elif key.startswith((records.SUBSCRIPTION, records.NODE)) and self.owns_key(key):
            return
        raise DeniedError(f"{key} is not the account's to read")

    def check_write(self, key: str) -> None:
        if not (key.startswith((records.SUBSCRIPTION, records.NODE)) and self.owns_key(key)):
            raise DeniedError(f"{key} is not the account's to write")


def shown(entries: tuple[Entry, ...], entitled: str) -> tuple[Entry, ...]:
    """Entries as somebody may see them: in place of what they may not, nothing, so that places stay what they are."""
    test = predicate(parsed(entitled))
    found = []
    for entry in entries:
        batch, data = decode_entry(entry.data), entry.data
        if isinstance(batch, Batch | ColumnBatch):
            payloads = tuple(
                (_payload(batch, index, message) if not isinstance(message, Malformed) and test(message) else b"")
                for index, message in enumerate(_messages(batch))
            )
            data = encode_entry(Batch(batch.publisher, batch.number, payloads)) if any(payloads) else b""
        elif not isinstance(batch, Marker | Birth):
            data = b""  # what nobody can read is nobody's
        found.append(entry._replace(data=data))
    return tuple(found)


def _messages(batch: Batch | ColumnBatch) -> Sequence[Mapping[str, Any] | Malformed]:
    if isinstance(batch, Batch):
        return decode_payloads(batch.payloads)
    from narrowcast.deliver.wire.columns import decode_columns, rows_of  # only who has columns needs Arrow

    columns = decode_columns(batch.data, batch.count)
    return [columns] if isinstance(columns, Malformed) else rows_of(columns)


def _payload(batch: Batch | ColumnBatch, index: int, message: Mapping[str, Any]) -> bytes:
    return batch.payloads[index] if isinstance(batch, Batch) else encode_payload(message)


def _asked_by(subject: str) -> tuple[str, str]:
    """The account and what it asks for, of a subject to which NATS lets only that account publish."""
    _, account, what = subject.split(".", 2)
    with suppress(ValueError):
        return bytes.fromhex(account).decode(), what
    return account, what


def _line(data: bytes) -> str:
    """What was asked, without the messages that may come with it."""
    return data.partition(b"\n")[0][:500].decode(errors="replace")


def _error(error: Exception, kind: str) -> bytes:
    return pack_question({"error": str(error), "kind": kind})


def _text(head: dict[str, Any], name: str) -> str:
    value = head.get(name)
    if not isinstance(value, str) or len(value) > records.MOST_RECORD:
        raise DeniedError(f"{name} must be a text")
    return value


def _number(head: dict[str, Any], name: str) -> int:
    value = head.get(name)
    if type(value) is not int or not 0 <= value < 1 << 112:
        raise DeniedError(f"{name} must be a whole number")
    return value


def _revision(head: dict[str, Any]) -> int | None:
    return None if head.get("revision") is None else _number(head, "revision")
