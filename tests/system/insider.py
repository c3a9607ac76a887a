"""Somebody with the credential of one subscriber, who tries whatever NATS and the gate may let through.

Speaks NATS itself, not through our client. Every attempt is one that must fail; whatever comes back is looked at, and
`won` has what should never have come.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import nats

from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.system import read_credential
from narrowcast.deliver.transport.nats.link import target_of, tokens
from narrowcast.deliver.wire import Batch, Marker, decode_entry, encode_entry

KEYS = (
    "lease",
    "epoch",
    "offer",
    "plan.1",
    "plan.9",
    "seal.1",
    "seal.",
    "source.0",
    "system",
    "account.",
    "sub.",
    "node.",
)
JETSTREAM = (
    "STREAM.INFO.{s}", "DIRECT.GET.{s}", "DIRECT.GET.{s}.nc.log.0", "STREAM.MSG.GET.{s}", "CONSUMER.CREATE.{s}",
    "CONSUMER.CREATE.{s}.x.nc.log.0", "CONSUMER.DURABLE.CREATE.{s}.x", "CONSUMER.LIST.{s}", "STREAM.PURGE.{s}",
    "STREAM.DELETE.{s}", "STREAM.UPDATE.{s}", "STREAM.SNAPSHOT.{s}", "STREAM.NAMES", "STREAM.LIST", "INFO",
    "CONSUMER.MSG.NEXT.{s}.x", "STREAM.CREATE.mine",
)  # fmt: skip


class Insider:
    """`account` is whose credential it has, `victim` another account's name, `mark` a text that it may never see."""

    def __init__(self, credential: Path, victim: str, mark: bytes, seed: int = 1) -> None:
        self._target = target_of(read_credential(credential))
        self.account, self.victim, self._mark = self._target.account, victim, mark
        self._hex, self._theirs = self.account.encode().hex(), victim.encode().hex()
        self._random = Random(seed)
        self._inbox = f"_INBOX.{self._hex}.evil"
        self._legal: dict[int, str] = {}  # questions that may be answered, by number, and what of
        self.tried: Counter[str] = Counter()
        self.won: list[str] = []
        self.read = 0  # answers to legal questions

    async def start(self) -> None:
        async def quiet(error: Exception) -> None:
            """Violations are what we came for."""

        self._nc = await nats.connect(
            servers=list(self._target.servers), tls=self._target.context(), error_cb=quiet,
            inbox_prefix=f"_INBOX.{self._hex}", pending_size=64 << 20,
        )  # fmt: skip
        await self._nc.subscribe(f"{self._inbox}.*", cb=self._heard, pending_msgs_limit=-1)
        self._number = 0

    async def stop(self) -> None:
        await self._nc.close()

    async def attack(self, attempts: int) -> None:
        """So many, of every kind in turn."""
        kinds: list[tuple[str, Callable[[], Any]]] = [
            ("listen", self._listen), ("jetstream", self._jetstream), ("publish", self._publish),
            ("impersonate", self._impersonate), ("gate: read", self._foreign_key), ("gate: write", self._foreign_write),
            ("gate: log", self._log), ("gate: profile", self._profile), ("gate: rubbish", self._rubbish),
            ("gate: reply elsewhere", self._elsewhere),
        ]  # fmt: skip
        for k in range(attempts):
            name, attempt = kinds[k % len(kinds)]
            self.tried[name] += 1
            await attempt()
            if k % 50 == 49:  # a gate looks at 1,000 questions of an account a second, and 64 at a time
                await self._nc.flush(timeout=30)
                await asyncio.sleep(0.04)
        await self._nc.flush(timeout=30)
        await asyncio.sleep(1.0)

    # What comes back.

    async def _heard(self, message: Any) -> None:
        number = int(message.subject.rpartition(".")[2])
        legal = self._legal.pop(number, None)
        if self._mark in message.data:
            self.won.append(f"saw {self._mark!r} in answer {number}")
        if number == 0:
            self.won.append(f"heard {message.data[:80]!r}")
            return
        try:
            head = json.loads(message.data.partition(b"\n")[0])
        except ValueError:
            head = {}
        if legal is None and not (isinstance(head, dict) and "error" in head):
            self.won.append(f"answer {number}: {message.data[:120]!r}")
        elif legal == "read" and "error" not in head:
            self.read += 1
            at = len(message.data.partition(b"\n")[0]) + 1
            for _, size in head["entries"]:
                batch = decode_entry(message.data[at : at + size])
                at += size
                if isinstance(batch, Batch) and any(self._mark in payload for payload in batch.payloads):
                    self.won.append("read a message of somebody else")

    # Attempts.

    async def _listen(self) -> None:
        names = ("to", "node", "live", "log", "gate", "stats", "disk")
        subject = self._random.choice(
            [
                f"nc.{self._random.choice(names)}.>",
                ">",
                "_INBOX.>",
                "$KV.nc.>",
                "nc.live.0.>",
                "nc.log.0",
                "$JS.EVENT.>",
            ]
            + [f"nc.{way}.{self._theirs}{rest}" for way in ("to", "node", "gate") for rest in ("", ".>", ".*")]
            + [f"nc.to.{tokens(self.victim + '/x')}", f"_INBOX.{self._theirs}.>", "nc.to.*", "*.*.*"]
        )

        async def heard(message: Any) -> None:
            self.won.append(f"listened to {subject}: {message.subject}")

        await self._nc.subscribe(subject, cb=heard)

    async def _jetstream(self) -> None:
        stream = self._random.choice(("nc-log-0", "KV_nc"))
        call = self._random.choice(JETSTREAM).format(s=stream)
        config = {"deliver_subject": f"{self._inbox}.0", "ack_policy": "none", "filter_subject": "nc.log.0"}
        body = self._random.choice([{"seq": 1, "batch": 10}, {"stream_name": stream, "config": config}, {"seq": 1}, {}])
        await self._nc.publish(f"$JS.API.{call}", json.dumps(body).encode(), reply=f"{self._inbox}.0")

    async def _publish(self) -> None:
        entry = encode_entry(self._random.choice([Batch("x", 0, (b'{"s":"a","n":-666}',)), Marker(99)]))
        subject, data = self._random.choice([
            ("nc.log.0", entry), ("nc.log.0.generations", entry), ("nc.disk", b"full"), ("nc.live.0.x", entry),
            (f"$KV.nc.{self._random.choice(KEYS)}", b"{}"), (f"$KV.nc.sub.{self._theirs}", b""),
            (f"nc.to.{tokens('~pulse')}", os.urandom(60)), (f"nc.to.{self._theirs}", os.urandom(60)),
            (f"nc.stats.{self._theirs}", b"{}"), (f"_INBOX.{self._theirs}.x", b"{}"), ("_INBOX.x", b"{}"),
        ])  # fmt: skip
        await self._nc.publish(subject, data, reply=f"{self._inbox}.0")

    async def _impersonate(self) -> None:
        what = self._random.choice(("hello", "read", "last", "get", "put", "append", "changes"))
        head = {"key": "epoch", "prefix": "epoch", "shard": 0, "after": 0, "most": 9, "since": 0, "made": ""}
        await self._nc.publish(
            f"nc.gate.{self._theirs}.{what}", json.dumps(head).encode() + b"\n", reply=f"{self._inbox}.0"
        )

    async def _ask(self, what: str, head: Any, body: bytes = b"", legal: str | None = None) -> None:
        self._number += 1
        if legal is not None:
            self._legal[self._number] = legal
        data = (head if isinstance(head, bytes) else json.dumps(head).encode()) + b"\n" + body
        await self._nc.publish(f"nc.gate.{self._hex}.{what}", data, reply=f"{self._inbox}.{self._number}")

    async def _foreign_key(self) -> None:
        theirs = [
            f"ring.{self._theirs}.",
            f"ring.{self._theirs}.1",
            f"sub.{self._theirs}",
            f"node.{self._theirs}",
            "ring.",
        ]
        mine = [f"ring.{self._hex}", "ring..1", f"wants.1.{self._hex}", f"account.{self._hex}", "plan.x", "plan.-1", ""]
        other = records.named(records.SUBSCRIPTION, f"{self.account}x")  # a name that only begins alike
        keys = [key for key in (*KEYS, *theirs, *mine, other) if key not in ("epoch", "plan.1", "plan.9")]
        if self._random.random() < 0.5:
            await self._ask("get", {"key": self._random.choice(keys)})
        else:
            await self._ask("changes", {"prefix": self._random.choice(keys), "since": 0, "made": ""})

    async def _foreign_write(self) -> None:
        record = {"profile": "s = 'a'", "edge": self.account, "gateway": None, "role": "source", "ready": 0}
        keys = [*KEYS, f"sub.{self._theirs}", f"node.{self._theirs}", f"ring.{self._hex}.1", f"account.{self._hex}"]
        if self._random.random() < 0.3:  # its own, at the edge of another
            key, record = f"sub.{self._hex}", record | {"edge": self.victim}
        else:
            key = self._random.choice(keys)
        what = self._random.choice(("put", "put", "delete")) if record["edge"] == self.account else "put"
        await self._ask(what, {"key": key, "revision": None}, records.pack(record))

    async def _log(self) -> None:
        if self._random.random() < 0.5:
            after = self._random.choice((0, 0, self._random.randrange(1 << 60)))
            await self._ask("read", {"shard": 0, "after": after, "most": 64, "upto": None}, legal="read")
        else:
            entry = encode_entry(self._random.choice([Batch(self.account, 0, (b'{"s":"a","n":-666}',)), Marker(99)]))
            await self._ask("append", {"shard": 0, "dedup": "x"}, entry)

    async def _profile(self) -> None:
        wish = self._random.choice(("s = 'b'", "s = 'b' AND n > 3", "s IN ('b', 'c')", "s > 'b'", "s =", "", "(" * 300))
        await self._ask("profile", {"profile": wish})

    async def _rubbish(self) -> None:
        head: Any = self._random.choice([
            b"", b"[]", b"{", b"\xff\xfe", b"[" * 50_000, b'{"a":' * 20_000, b"9" * 6000, {"shard": -1}, {"shard": 1.5},
            {"shard": 7, "after": 0, "most": 1}, {"shard": 0, "after": 1 << 200, "most": 1}, {"key": ["a"]},
            {"prefix": None}, {"shard": 0, "after": "0", "most": 9}, os.urandom(40).replace(b"\n", b""),
        ])  # fmt: skip
        await self._ask(self._random.choice(("read", "get", "put", "changes", "delete", "append", "nothing")), head)

    async def _elsewhere(self) -> None:
        """Have the gate's answer, which we choose, go where we may not publish."""
        reply = self._random.choice(
            ("nc.log.0", "$KV.nc.epoch", f"nc.to.{self._theirs}", "nc.disk", f"_INBOX.{self._hex}")
        )
        await self._nc.publish(f"nc.gate.{self._hex}.hello", b"{}\n", reply=reply)
