"""The gate, asked directly: who may have what, and planted holes that the same questions find."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from memory import MemoryLog, MemoryRegistry
from narrowcast.deliver.parts import records
from narrowcast.deliver.routing.routes import Subscribers, by_flows
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Value
from narrowcast.deliver.transport.nats.gated import cut, unpack_question
from narrowcast.deliver.trust.audit import Audit
from narrowcast.deliver.trust.gate import Gate, _Asker
from narrowcast.deliver.trust.mirror import Mirror
from narrowcast.deliver.wire import Batch, ColumnBatch, Malformed, Marker, decode_entry, decode_payloads, encode_entry
from narrowcast.deliver.wire.columns import encode_columns

ACCOUNTS = {"ann": ("subscriber", "s = 'a'"), "bob": ("subscriber", None), "feed": ("publisher", None)}


class Door:
    """A gate on a log and a registry in memory."""

    def __init__(self, folder: Path, gate: type[Gate] = Gate) -> None:
        self.log, self.registry, self.mirror = MemoryLog(), MemoryRegistry(), Mirror("m")
        self.audit = Audit(folder)
        self.gate = gate(self.log, self.registry, self.mirror, self.audit, 1, "shards = 1")  # type: ignore[arg-type]
        self.revision = 0
        for name, (role, entitled) in ACCOUNTS.items():
            record = {"role": role, "entitled": entitled, "serial": "1"}
            self.note(records.named(records.ACCOUNT, name), records.pack(record))

    def note(self, key: str, data: bytes | None) -> None:
        self.revision += 1
        self.mirror.note(Value(key, data, self.revision))

    def ask(
        self, account: str, what: str, head: Any, body: bytes = b"", reply: str = ""
    ) -> tuple[dict[str, Any], bytes]:
        async def asked() -> bytes | None:
            line = head if isinstance(head, bytes) else json.dumps(head).encode()
            inbox = reply or f"_INBOX.{account.encode().hex()}.1"
            return await self.gate.answer(f"gate.{account.encode().hex()}.{what}", inbox, line + b"\n" + body)

        said = asyncio.run(asked())
        return ({}, b"") if said is None else unpack_question(said)


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


ROWS = [{"s": s, "n": n} for n, s in enumerate("abab")]
ENTRIES = (
    encode_entry(Batch("feed/1", 0, tuple(json.dumps(row).encode() for row in ROWS))),
    encode_entry(ColumnBatch("feed/1", 1, 4, encode_columns(pa.RecordBatch.from_pylist(ROWS)))),
    encode_entry(Batch("feed/1", 2, (b'{"s": "b"}', b"rubbish"))),
    encode_entry(Marker(3)),
    b"nobody knows what this is, s = 'b'",
)


def test_of_the_log_one_reads_what_one_may_see_at_the_places_where_it_is(door: Door) -> None:
    for k, entry in enumerate(ENTRIES):
        asyncio.run(door.log.append(0, entry, dedup=str(k)))
    question = {"shard": 0, "after": 0, "most": 100, "upto": None}
    head, body = door.ask("ann", "read", question)
    datas = cut(body, [size for _, size in head["entries"]])
    assert [sequence for sequence, _ in head["entries"]] == [1, 2, 3, 4, 5]
    for data in datas[:2]:
        batch = decode_entry(data or b"")
        assert isinstance(batch, Batch)
        rows = decode_payloads(batch.payloads)
        assert [None if isinstance(row, Malformed) else row for row in rows] == [ROWS[0], None, ROWS[2], None]
    assert datas[2] == datas[4] == b""
    assert decode_entry(datas[3] or b"") == Marker(3)
    assert b'"b"' not in body
    _, everything = door.ask("bob", "read", question)
    assert everything == b"".join(ENTRIES)


def test_a_publisher_appends_batches_of_its_own_and_nothing_else(door: Door) -> None:
    for k, entry in enumerate(ENTRIES[:2]):
        assert door.ask("feed", "append", {"shard": 0, "dedup": "x"}, entry)[0] == {"sequence": k + 1}
    assert door.ask("feed", "append", {"shard": 0, "dedup": "other"}, ENTRIES[0])[0] == {"sequence": 1}, (
        "known by its name"
    )
    damaged = encode_entry(ColumnBatch("feed/1", 9, 4, b"x" * 50))
    stolen = encode_entry(Batch("bob", 0, (b"{}",)))
    for entry in (*ENTRIES[2:], damaged, stolen, b""):
        assert "error" in door.ask("feed", "append", {"shard": 0, "dedup": "x"}, entry)[0], entry
    assert "error" in door.ask("ann", "append", {"shard": 0, "dedup": "x"}, ENTRIES[0])[0]
    assert "error" in door.ask("feed", "append", {"shard": 1, "dedup": "x"}, ENTRIES[0])[0]
    assert asyncio.run(door.log.last(0)) == 2


def test_of_the_registry_one_sees_and_writes_ones_own(door: Door) -> None:
    who = Subscribers({"ann": "s = 'a'", "bob": "s = 'b'"}, {"ann": "ann", "bob": "bob"})
    door.note("plan.1", by_flows(["s"], {"a": 0, "b": 1}, {0: 0, 1: 1}, who).to_bytes())
    door.note(records.ring_of("ann", 1), b"mine")
    door.note(records.ring_of("bob", 1), b"theirs")
    _, plan = door.ask("ann", "get", {"key": "plan.1"})
    assert Routing.from_bytes(plan).taken == {"ann": (0,)}
    head, body = door.ask("ann", "changes", {"prefix": records.ring_of("ann"), "since": 0, "made": "m"})
    assert (body, head["since"]) == (b"mine", door.revision - 1)
    assert "error" in door.ask("ann", "changes", {"prefix": records.ring_of("bob"), "since": 0, "made": "m"})[0]

    record = {"profile": "n > 0", "edge": "ann/1", "gateway": "v1", "account": "bob"}
    key = records.named(records.SUBSCRIPTION, "ann/x")
    assert "error" not in door.ask("ann", "put", {"key": key, "revision": None}, records.pack(record))[0]
    written = records.unpack(asyncio.run(door.registry.get(key)).data or b"")
    assert written == {"profile": "n > 0 AND s = 'a'", "edge": "ann/1", "gateway": None, "account": "ann"}
    node = records.named(records.NODE, "ann/1")
    data = records.pack({"role": "coordinator", "ready": 3, "account": None})
    assert "error" not in door.ask("ann", "put", {"key": node, "revision": None}, data)[0]
    assert records.unpack(asyncio.run(door.registry.get(node)).data or b"")["role"] == "edge"
    for stolen in ({"edge": "bob"}, {"profile": "s = 'b'"}, {"profile": "s ="}, {"edge": 7}):
        assert "error" in door.ask("ann", "put", {"key": key, "revision": None}, records.pack(record | stolen))[0]
    lines = [json.loads(line) for line in door.audit.path.read_text().splitlines()]
    assert {line["account"] for line in lines} == {"ann"}
    assert any("bob" in line["reason"] for line in lines)
    assert door.audit.path.stat().st_mode & 0o777 == 0o600


def test_an_answer_goes_to_the_inbox_of_who_asked_and_a_stranger_gets_none(door: Door) -> None:
    assert door.ask("ann", "hello", {}, reply="nc.log.0") == ({}, b"")
    assert door.ask("ann", "hello", {}, reply="_INBOX.626f62.1") == ({}, b"")
    assert door.ask("ann", "hello", {})[0]["system"] == "shards = 1"
    assert door.ask("eve", "hello", {})[0]["error"] == "there is no such account"
    door.note(records.named(records.ACCOUNT, "ann"), None)
    assert door.ask("ann", "hello", {})[0]["error"] == "there is no such account"
    assert door.gate.counts["refused"] == 4


@pytest.mark.parametrize("head", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b"9" * 6000, b'{"shard":true,"after":0}'])
@pytest.mark.parametrize("what", ["read", "get", "put", "delete", "changes", "profile", "last", "append", "x"])
def test_rubbish_is_refused_with_a_line(door: Door, what: str, head: bytes) -> None:
    said, _ = door.ask("bob" if what != "append" else "feed", what, head)
    assert said["kind"] in ("final", "input")


def test_whoever_asks_too_much_is_not_listened_to_and_others_are(door: Door) -> None:
    heard = [door.gate.admits("gate.616e6e.hello", 5.0 + k / 10_000) for k in range(5000)]
    assert sum(heard) == pytest.approx(2500, abs=10), "2,000 at once, and 1,000 a second"
    assert door.gate.admits("gate.626f62.hello", 5.5)
    assert door.gate.admits("gate.616e6e.hello", 6.0)
    assert door.gate.counts["throttled"] == 5000 - sum(heard)


def attempts(door: Door) -> list[str]:
    """What somebody gets who should get nothing; the questions of the tests above, of which none may be answered."""
    door.note("seal.1", b"root")
    door.note(records.ring_of("bob", 1), b"theirs")
    asyncio.run(door.log.append(0, ENTRIES[0], dedup="0"))
    won = []
    for key in ("seal.1", records.ring_of("bob", 1), records.named(records.ACCOUNT, "bob"), "lease"):
        won += [] if "error" in door.ask("ann", "get", {"key": key})[0] else [f"read {key}"]
    stolen = records.pack({"profile": "s = 'a'", "edge": "bob"})
    key = records.named(records.SUBSCRIPTION, "ann")
    won += [] if "error" in door.ask("ann", "put", {"key": key, "revision": None}, stolen)[0] else ["another's edge"]
    _, body = door.ask("ann", "read", {"shard": 0, "after": 0, "most": 9, "upto": None})
    won += ["read the log"] if b'"b"' in body else []
    won += [] if "error" in door.ask("ann", "append", {"shard": 0, "dedup": "x"}, ENTRIES[0])[0] else ["appended"]
    won += ["answered elsewhere"] if door.ask("ann", "hello", {}, reply="nc.log.0")[0] else []
    return won


def test_planted_holes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempts(Door(tmp_path)) == []
    gate = "narrowcast.deliver.trust.gate"
    holes: list[tuple[Any, str, Any, str]] = [
        (_Asker, "check_read", lambda *_: None, "read seal.1"),
        (_Asker, "owns", lambda *_: True, "another's edge"),
        (gate, "shown", lambda entries, entitled: entries, "read the log"),
        (gate, "inbox_of", lambda account: "nc.log", "answered elsewhere"),
    ]
    for where, name, hole, found in holes:
        with monkeypatch.context() as patched:
            patched.setattr(import_module(where) if isinstance(where, str) else where, name, hole)
            assert any(each.startswith(found) for each in attempts(Door(tmp_path))), name
