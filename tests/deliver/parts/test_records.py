"""Rubbish in the registry: counted and passed over by every part, and never the end of one."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.broker import Broker, FilterMode
from narrowcast.deliver.parts.coordinator import Coordinator, CoordinatorSettings
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.effects import PlanWanted, Read, Write
from narrowcast.deliver.parts.events import Arrived, Noted, Planned, Subscribe, Tick, WasRead, Written
from narrowcast.deliver.parts.part import Part
from narrowcast.deliver.parts.source import LOOKS, Source
from narrowcast.deliver.routing import routing as routing_module
from narrowcast.deliver.routing.routes import Subscribers, by_tree
from narrowcast.deliver.routing.routing import MOST_UNPACKED, Routing
from narrowcast.deliver.transport import Entry, Multicast, Overlay, Unicast
from narrowcast.deliver.wire import Batch, Frame, encode_entry, encode_payload, end_of, place
from narrowcast.errors import InfeasibleError

EPOCH = {"term": 1, "current": 1, "next": None, "phase": "steady", "cutover": {"0": 7}}
GOOD: dict[str, dict[str, Any]] = {
    "lease": {"holder": "other", "term": 3},
    "epoch": EPOCH,
    "offer": {"number": 1, "folder": "plans/1", "base": "x"},
    "sub.75": {"profile": "p > 1", "edge": "edge", "gateway": None},
    "node.65646765": {"role": "edge", "ready": 1, "beat": 3},
    "source.0": {"sequence": 5, "epoch": 1},
    "filter.726f6f74": {"state": "active", "version": 1, "epoch": 1},
    "wants.1.726f6f74": {
        "version": 2,
        "up": ["p > 5"],
        "turn": 1,
        "subs": {"u": ["edge", "p > 5", 1, 1]},
        "sure": {"leaf": 1},
        "changes": 1,
    },
}
RUBBISH: list[Any] = [None, True, -1, 1.5, 10**30, "x", "\ud800", [], [[]], {}, {"number": "x"}, "x" * 5000]
BYTES = [b"", b"\xff\xfe", b"{", b"[]", b"3", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"{}"]
WHO = Subscribers({"u": "p > 5"}, {"u": "edge"}, {"edge": "root"})
TREE = by_tree(Overlay("root", (("root", "leaf"),)), ["root"])
CONTENT = Routing(
    {1: Multicast(0, 1), 2: Unicast("u")},
    {"u": (1, 2)},
    key=("p",),
    flows=(("1", (1,)),),
    content={2: "p > 5"},
    profiles={"u": "p > 5"},
    edges={"u": "edge"},
    pulse=Unicast("pulse"),
)
MESSAGES = tuple((place(6, k), 0, encode_payload({"p": k})) for k in range(8))


def spoiled(record: dict[str, Any]) -> list[bytes]:
    """A record with each of its fields missing, or of another kind."""
    found = [{name: value for name, value in record.items() if name != gone} for gone in record]
    found += [record | {name: rubbish} for name in record for rubbish in RUBBISH]
    return [json.dumps(each).encode() for each in found] + BYTES


def parts() -> list[Part]:
    edge = Edge("edge", (0,))
    edge.step(Subscribe("u", "p > 5", {0: end_of(5)}), 0.0)
    coordinator = Coordinator("boss", (0,), CoordinatorSettings(ttl=1.0, pause=0.1, prepare=0.2, retry=0.1))
    return [edge, Source("source", 0), Broker("root"), coordinator]


def live(part: Part, now: float) -> float:
    """Let a part work for a while, its questions answered."""
    entry = Entry(6, encode_entry(Batch("c", 0, tuple(payload for _, _, payload in MESSAGES))))
    for _ in range(12):
        now += 0.3
        for effect in part.step(Tick(), now):
            if isinstance(effect, Write):
                part.step(Written(effect.request, int(now * 1000)), now)
            elif isinstance(effect, PlanWanted):
                part.step(Planned(effect.request, Routing({})), now)
            elif isinstance(effect, Read):
                part.step(WasRead(effect.request, 0, 5, 6, (entry,)), now)
    for channel in (0, 1, 2):
        part.step(Arrived(Frame(0, channel, 1, end_of(5), end_of(6), MESSAGES)), now)
    return now


@pytest.mark.parametrize("key", GOOD)
def test_no_record_ends_a_part_and_those_that_are_none_are_counted(key: str) -> None:
    records.read(key, records.pack(GOOD[key]))
    for data in spoiled(GOOD[key]):
        for part in parts():
            now = live(part, 0.0)
            part.step(Noted("plan.1", CONTENT.to_bytes(), 1), now)
            part.step(Noted(key, data, 10_000), now)
            live(part, now)
    counts = []
    for part in parts():
        part.step(Noted(key, b"{", 1), 0.0)
        counts.append(part.counts["malformed records"])
    assert sum(counts) >= 1, "nobody noticed"


@pytest.mark.parametrize("key", ["sub.zz", "sub.ff", "node.", "plan.x", "plan.-1", f"plan.{1 << 40}", "source.", "x"])
def test_a_key_that_names_nobody_is_counted(key: str) -> None:
    for part in parts():
        for data in (b"{}", None, records.pack(GOOD["sub.75"]), records.pack(GOOD["node.65646765"])):
            part.step(Noted(key, data, 5), 0.0)
        live(part, 0.0)


@pytest.mark.parametrize("good", [TREE, CONTENT], ids=["tree", "content"])
def test_a_plan_spoiled_anywhere_ends_nobody(good: Routing) -> None:
    body = json.loads(zlib.decompress(good.to_bytes()))
    rng = Random(7)
    for _ in range(300):
        found = json.loads(json.dumps(body))
        _spoil(found, rng)
        packed = zlib.compress(json.dumps(found).encode())
        for part in parts()[:3]:
            part.step(Noted("plan.1", packed, 1), 0.0)
            part.step(Noted("epoch", records.pack(EPOCH), 2), 0.0)
            part.step(Noted("source.0", records.pack(GOOD["source.0"]), 3), 0.0)
            live(part, 0.0)


def _spoil(found: Any, rng: Random) -> None:
    """Put rubbish into one place of a JSON value."""
    at = found
    while True:
        where = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
        deeper = at[where]
        if not isinstance(deeper, dict | list) or not deeper or rng.random() < 0.3:
            at[where] = rng.choice(RUBBISH)
            return
        at = deeper


@given(st.binary(max_size=200))
def test_bytes_that_are_no_plan_are_refused(data: bytes) -> None:
    for each in (data, zlib.compress(data)):
        with pytest.raises(ValueError):
            Routing.from_bytes(each)


def test_a_value_that_unpacks_to_far_more_than_it_is_is_not_unpacked() -> None:
    bomb = zlib.compress(b'{"addresses":{},"key":["' + b"x" * 200_000_000 + b'"]}')
    assert len(bomb) < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"more than {MOST_UNPACKED} bytes"):
            Routing.from_bytes(bomb)
        assert tracemalloc.get_traced_memory()[1] < 3 * MOST_UNPACKED
    finally:
        tracemalloc.stop()


def test_a_plan_too_large_to_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing_module, "MOST_UNPACKED", 100)
    with pytest.raises(InfeasibleError, match="at most 100 bytes, got"):
        CONTENT.to_bytes()
    found = Coordinator("boss", (0,), CoordinatorSettings(ttl=1.0))
    found.step(Tick(), 0.0)
    (asked,) = (e for e in found.step(Tick(), 1.0) if isinstance(e, Write))
    wanted: list[PlanWanted] = []
    for effect in found.step(Written(asked.request, 1), 1.0):
        if isinstance(effect, Write):
            wanted += [e for e in found.step(Written(effect.request, 2), 1.0) if isinstance(e, PlanWanted)]
    effects = found.step(Planned(wanted[0].request, CONTENT), 1.1)
    assert not [e for e in effects if isinstance(e, Write) and e.key.startswith(records.PLAN)]
    assert found.counts["plans refused"] == 1


def test_a_source_whose_checkpoint_is_rubbish_begins_where_the_plan_in_force_did() -> None:
    source = Source("source", 0)
    source.step(Tick(), 0.0)
    source.step(Noted("source.0", b"rubbish", 3), 0.0)
    assert source.sequence == -1, "it began before it knew where"
    source.step(Noted("epoch", records.pack(EPOCH), 4), 0.0)
    source.step(Noted("source.0", b"rubbish", 3), 0.3)
    assert (source.sequence, source.in_force) == (7, 1)
    alone = Source("source", 0)
    for k in range(LOOKS):
        alone.step(Noted("source.0", b"rubbish", 3), 0.3 * k)
    assert (alone.sequence, alone.in_force) == (0, 0)


def test_whoever_leads_writes_the_epoch_again_over_rubbish() -> None:
    found = Coordinator("boss", (0,), CoordinatorSettings(ttl=1.0, pause=0.1))
    found.step(Noted("epoch", records.pack(EPOCH), 1), 0.0)
    found.step(Noted("lease", b"\xff", 2), 0.0)
    (campaign,) = (e for e in found.step(Tick(), 0.1) if isinstance(e, Write))
    assert (campaign.key, campaign.revision) == ("lease", 2), "a lease that is rubbish is nobody's"
    effects = found.step(Written(campaign.request, 3), 0.1)
    (own,) = (e for e in effects if isinstance(e, Write))
    found.step(Written(own.request, 4), 0.1)
    effects = found.step(Noted("epoch", b"[]", 5), 0.2)
    (again,) = (e for e in effects if isinstance(e, Write) and e.key == "epoch")
    assert again.revision == 5
    assert records.unpack(again.data or b"")["current"] == 1


def test_one_subscription_with_a_profile_that_is_none_does_not_keep_the_others_from_a_plan() -> None:
    found = Coordinator("boss", (0,), CoordinatorSettings(ttl=1.0, pause=0.1))
    found.step(Noted("node.65646765", records.pack(GOOD["node.65646765"]), 1), 0.0)
    found.step(Noted("sub.75", records.pack(GOOD["sub.75"]), 2), 0.0)
    found.step(Noted("sub.76", records.pack({"profile": "p >", "edge": "edge", "gateway": None}), 3), 0.0)
    (campaign,) = (e for e in found.step(Tick(), 1.1) if isinstance(e, Write))
    (own,) = (e for e in found.step(Written(campaign.request, 4), 1.1) if isinstance(e, Write))
    (wanted,) = (e for e in found.step(Written(own.request, 5), 1.1) if isinstance(e, PlanWanted))
    assert wanted.subscriptions == {"u": "p > 1"}
    assert found.counts["malformed records"] == 1


def test_a_filter_in_a_state_that_is_none_passes_everything_on() -> None:
    found = Broker("root")
    for data in (b"{", b"[]", b'{"state":[]}', b'{"state":"asleep"}'):
        found.step(Noted("filter.726f6f74", data, 1), 0.0)
        assert found.mode is FilterMode.PASSIVE
