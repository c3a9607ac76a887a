"""Any mix of dicts and columns reaches the same subscribers with the same values; damaged columns stop nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.deliver.client.rows import ColumnChunk, MessageBatch, entries
from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.edge import Edge, EdgeSettings
from narrowcast.deliver.parts.effects import Acked, Append, Deliver, Effect, Send
from narrowcast.deliver.parts.events import (
    Appended,
    Arrived,
    Consumed,
    Noted,
    Publish,
    PublishColumns,
    Subscribe,
    Tick,
    WasRead,
)
from narrowcast.deliver.parts.publisher import Publisher
from narrowcast.deliver.parts.source import Source, SourceSettings
from narrowcast.deliver.routing.routes import Subscribers, by_content, by_flows
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Entry, Multicast
from narrowcast.deliver.wire import (
    MOST_PAYLOAD,
    ColumnBatch,
    Frame,
    decode,
    decode_payloads,
    encode,
    encode_entry,
    end_of,
    place,
)
from narrowcast.deliver.wire.columns import Columns, decode_columns, encode_columns, rows_of
from narrowcast.errors import InputError
from narrowcast.profiles import Profile

PROFILES = {
    "ann": "s IN ('a', 'b') AND p > 2", "bob": "p < 4", "cyd": "s IS NULL OR s LIKE 'n%'", "dan": "d >= 1.5",
    "eve": "t >= TIMESTAMP '2026-01-01 00:00:00' AND NOT (s = 'c')", "fay": "more IS NOT NULL OR x = 'z'",
}  # fmt: skip
WHO = Subscribers(PROFILES, dict.fromkeys(PROFILES, "edge"))
SESSIONS = by_flows(["s"], {"a": 0, "b": 1, "c": 1}, {0: 0, 1: 1}, WHO, unicast=[("c", "bob")])
PLANS: list[Routing] = [
    SESSIONS,
    by_content({k: Profile.parse(text) for k, text in enumerate(PROFILES.values())},
               {k: Multicast(0, k) for k in range(len(PROFILES))}, WHO),
    replace(SESSIONS, pulse=None),
]  # fmt: skip


def row(n: int, rng: Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "n": n,
        "s": rng.choice(("a", "b", "c", "new", None)),
        "p": rng.choice((1, 3, 5, None)),
        "d": rng.choice((Decimal("1.50"), Decimal("0.25"), None)),
        "t": rng.choice((datetime(2026, 1, 1, tzinfo=UTC), datetime(2025, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))),
        "x": rng.choice(("z", "")),
        "b": rng.choice((b"\0\xff", None)),
        "l": [{"at": datetime(2026, 3, 1, 12, tzinfo=UTC), "v": [1, None]}] if rng.random() < 0.5 else None,
    }
    return found


def publish(publisher: Publisher, rows: list[dict[str, Any]], columns: bool, log: list[Entry]) -> None:
    """As the client does; the log takes everything at once."""
    table: Any = pa.RecordBatch.from_pylist(rows) if columns else rows
    for token, chunk in enumerate(entries(table)):
        event: Publish | PublishColumns
        if isinstance(chunk, ColumnChunk):
            event = PublishColumns(token, 0, chunk.n_rows, chunk.data)
        else:
            event = Publish(token, 0, chunk)
        effects = [*publisher.step(event, 0.0), *publisher.step(Tick(), 0.0)]
        (append,) = [effect for effect in effects if isinstance(effect, Append)]
        log.append(Entry(len(log) + 1, append.data))
        (acked,) = publisher.step(Appended(append.request, len(log)), 0.0)
        assert isinstance(acked, Acked)


def a_source(routing: Routing, **settings: Any) -> Source:
    source = Source("source", 0, SourceSettings(**settings))
    source.step(Tick(), 0.0)
    source.step(Noted("plan.1", routing.to_bytes(), 1), 0.0)
    source.step(Noted("source.0", records.pack({"sequence": 0, "epoch": 1}), 2), 0.0)
    return source


def an_edge(routing: Routing | None, credit: int | None = None) -> Edge:
    edge = Edge("edge", (0,), EdgeSettings(tail=0.1))
    for name, text in PROFILES.items():
        edge.step(Subscribe(name, text, {0: end_of(0)}, credit), 0.0)
    if routing is not None:
        edge.step(Noted("plan.1", routing.to_bytes(), 1), 0.0)
        record = {"term": 1, "current": 1, "next": None, "phase": "steady", "cutover": {"0": 0}}
        edge.step(Noted(records.EPOCH, records.pack(record), 101), 0.0)
    return edge


def sent(source: Source, log: list[Entry]) -> list[Any]:
    found = source.step(WasRead(0, 0, 0, len(log), tuple(log)), 0.0) + source.step(Tick(), 0.0)
    return [effect.what for effect in found if isinstance(effect, Send)]


def got(effects: Sequence[Effect]) -> dict[str, list[tuple[int, str]]]:
    """What each subscription got: place and exact values."""
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in PROFILES}
    for effect in effects:
        if isinstance(effect, Deliver) and len(effect.messages):
            batch = MessageBatch(effect.messages, 0, {})
            assert effect.position >= batch.places[-1]
            found[effect.subscription] += [(at, repr(each)) for at, each in zip(batch.places, batch, strict=True)]
    return found


def values(found: dict[str, list[tuple[int, str]]]) -> dict[str, list[str]]:
    assert all([at for at, _ in each] == sorted({at for at, _ in each}) for each in found.values()), "once, in order"
    return {name: [text for _, text in each] for name, each in found.items()}


@settings(max_examples=10)
@given(st.integers(0, 1 << 30), st.sampled_from(range(len(PLANS))), st.sampled_from((300, 900, 60_000)))
def test_any_mix_of_both_payloads_gives_the_same_deliveries(seed: int, plan: int, most: int) -> None:
    rng = Random(seed)
    batches = [[row(100 * k + j, rng) for j in range(rng.randrange(1, 12))] for k in range(rng.randrange(1, 6))]
    wanted: dict[str, list[str]] = {name: [] for name in PROFILES}
    for each in (each for batch in batches for each in batch):
        for name, text in PROFILES.items():
            if Profile.parse(text).matches(each):
                wanted[name].append(repr(each))
    for share in (0.0, 0.5, 1.0):
        log: list[Entry] = []
        publisher = Publisher("desk")
        for batch in batches:
            publish(publisher, batch, rng.random() < share, log)
        frames = sent(a_source(PLANS[plan], most_columns=most), log)
        edge = an_edge(PLANS[plan])
        again = [*frames, *rng.sample(frames, len(frames) // 2)]
        effects = [effect for what in again for effect in edge.step(Arrived(decode(encode(what))), 0.01)]
        assert values(got(effects)) == wanted
        from_log = an_edge(None)
        asked = from_log.step(Tick(), 0.0)
        effects = [
            effect
            for read in asked
            if hasattr(read, "most")
            for effect in from_log.step(WasRead(read.request, 0, 0, len(log), tuple(log)), 0.01)
        ]
        assert values(got(effects)) == wanted


def plain_row(n: int, rng: Random) -> dict[str, Any]:
    return {"n": n, "s": rng.choice(("a", "b", "c", "new")), "p": rng.choice((1, 3, 5)), "x": rng.choice(("z", ""))}


@pytest.mark.parametrize("routing", PLANS)
def test_channels_that_get_a_few_rows_of_an_entry_get_them_as_messages_and_subscribers_the_same(
    routing: Routing,
) -> None:
    rng = Random(4)
    log: list[Entry] = []
    publisher = Publisher("desk")
    for k in range(6):
        publish(publisher, [plain_row(20 * k + j, rng) for j in range(rng.choice((1, 5, 20)))], True, log)
    kinds, found = [], []
    for few in (0, 4, 1000):
        frames = sent(a_source(routing, few=few), log)
        with_rows = [f for f in frames if isinstance(f, Frame) and len(f.messages)]
        kinds.append({isinstance(f.messages, Columns) for f in with_rows})
        edge = an_edge(routing)
        effects = [effect for frame in frames for effect in edge.step(Arrived(decode(encode(frame))), 0.01)]
        found.append(values(got(effects)))
    assert kinds == [{True}, {True, False}, {False}]
    assert found[0] == found[1] == found[2]
    assert sum(map(len, found[0].values())) > 60


ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from((1, 2.5, "a"))
ALIKE = [st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3), st.booleans(), st.none(), ANY, st.datetimes()]


@st.composite
def listed(draw: st.DrawFn) -> list[Any]:
    """Rows that are mostly alike."""
    names = draw(st.lists(st.sampled_from(("s", "p", "$time", "ü", "\ud800", 7)), max_size=3, unique=True))
    kinds = {name: draw(st.sampled_from(ALIKE)) | draw(st.sampled_from((st.nothing(), st.none()))) for name in names}
    rows: list[Any] = [{name: draw(kind) for name, kind in kinds.items()} for _ in range(draw(st.integers(2, 6)))]
    if draw(st.integers(0, 4)) == 0:
        rows[draw(st.integers(0, len(rows) - 1))] = draw(st.sampled_from(({"p": 1}, {}, {"s": 1, "q": 2}, None, 3)))
    return rows


def decoded(rows: list[Any]) -> tuple[list[str], set[type]]:
    """What a list means to subscribers, or what is wrong with it, and how it went."""
    found, kinds = [], set()
    try:
        for chunk in entries(rows):
            if isinstance(chunk, ColumnChunk):
                batch = decode_columns(chunk.data, chunk.n_rows)
                assert isinstance(batch, pa.RecordBatch)
                found += rows_of(batch)
            else:
                found += decode_payloads(chunk)
            kinds.add(type(chunk))
    except InputError as error:
        return [str(error)], kinds
    return [repr(sorted(each.items(), key=repr)) if isinstance(each, dict) else repr(each) for each in found], kinds


@settings(max_examples=300)
@given(rows=listed())
def test_a_list_of_dicts_means_the_same_whether_it_goes_as_columns_or_one_by_one(rows: list[Any]) -> None:
    one_by_one = decoded(rows)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("narrowcast.deliver.client.rows.MANY", 2)
        assert decoded(rows)[0] == one_by_one


def test_a_long_list_of_like_dicts_goes_as_columns_and_any_other_does_not() -> None:
    rows = [{"s": "a", "p": k, "x": None if k % 2 else 1.5} for k in range(300)]
    assert decoded(rows)[1] == {ColumnChunk}
    for other in (rows[:200], [*rows, {"s": "a"}], [*rows, rows[0] | {"p": 1.5}], [*rows, rows[1] | {"s": None}]):
        assert decoded(other)[1] == ({tuple} if other[-1]["s"] else {ColumnChunk})
    large = [{"s": "a" * 100, "p": k} for k in range(300)] + [{"s": "b" * MOST_PAYLOAD, "p": 0}]
    with pytest.raises(InputError, match="message must be at most"):
        list(entries(large))
    large[-1]["s"] = "b" * (MOST_PAYLOAD - 30)
    assert decoded(large)[0][-1].endswith("b')]")


def test_one_by_one_and_as_columns_a_subscriber_gets_no_more_than_its_credit() -> None:
    rng = Random(1)
    log: list[Entry] = []
    publisher = Publisher("desk")
    for k in range(6):
        publish(publisher, [row(10 * k + j, rng) for j in range(7)], k % 2 == 0, log)
    edge = an_edge(PLANS[0], credit=3)
    effects = [e for what in sent(a_source(PLANS[0]), log) for e in edge.step(Arrived(what), 0.01)]
    total: dict[str, list[tuple[int, str]]] = {name: [] for name in PROFILES}
    while effects:
        found = got(effects)
        effects = []
        for name, each in found.items():
            assert len(each) <= 3
            total[name] += each
            if each:
                effects += edge.step(Consumed(name, len(each)), 0.02)
    free = an_edge(PLANS[0])
    assert total == got([e for what in sent(a_source(PLANS[0]), log) for e in free.step(Arrived(what), 0.01)])


def test_an_entry_that_came_both_ways_is_delivered_once_and_in_order() -> None:
    rng = Random(2)
    rows = [row(k, rng) | {"p": 1} for k in range(6)]
    log: list[Entry] = []
    publish(Publisher("desk"), rows, True, log)
    routing = by_content(
        {0: Profile.parse("p < 4")}, {0: Multicast(0, 0)}, Subscribers({"bob": "p < 4"}, {"bob": "edge"})
    )
    (frame, *_) = sent(a_source(replace(routing, pulse=None)), log)
    first = replace(frame, upto=place(1, 2), messages=tuple(frame.messages)[:3])
    edge = an_edge(replace(routing, pulse=None))
    effects = [*edge.step(Arrived(replace(frame, after=place(1, 2))), 0.0), *edge.step(Arrived(first), 0.0)]
    assert [at for at, _ in got(effects)["bob"]] == [place(1, k) for k in range(6)]


def _damaged(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 3))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def test_damaged_columns_in_the_log_or_in_a_frame_stop_neither_source_nor_edge() -> None:
    rng = Random(3)
    batch = pa.RecordBatch.from_pylist([row(k, rng) for k in range(5)])
    (chunk,) = entries(batch)
    log = [Entry(k, encode_entry(ColumnBatch("d", k, 5, _damaged(rng, chunk.data)))) for k in range(1, 201)]
    log.append(Entry(201, encode_entry(ColumnBatch("d", 0, 5, chunk.data))))
    source, edge = a_source(PLANS[0], read_most=1000), an_edge(None)
    frames = sent(source, log)
    assert source.counts["entry columns"] > 20
    assert source.sequence == 201
    for read in [e for e in edge.step(Tick(), 0.0) if hasattr(e, "most")]:
        edge.step(WasRead(read.request, 0, 0, 201, tuple(log)), 0.0)
    assert all(r.mark >= end_of(201) for each in edge.subscriptions.values() for r in each.readers.values())
    taker = an_edge(PLANS[0])
    whole = next(f for f in frames if isinstance(f, Frame) and isinstance(f.messages, Columns))
    for k in range(300):
        rows = Columns(whole.messages.base, whole.messages.indices, None, _damaged(rng, whole.messages.data))
        taker.step(Arrived(replace(whole, messages=rows)), 0.001 * k)
    assert taker.counts["malformed columns"] > 30
    bob = taker.subscriptions["bob"].readers[0]
    seen = bob.seen.get((1, whole.channel))
    assert seen is None or taker.counts["malformed columns"] < 300


def test_a_frame_that_cannot_be_read_makes_no_claim() -> None:
    taker = an_edge(PLANS[0])
    rows = Columns(1 << 16, np.arange(2), None, b"nonsense")
    for channel in PLANS[0].addresses:
        assert taker.step(Arrived(Frame(0, channel, 1, end_of(0), end_of(1), rows)), 0.0) == []
    assert all(r.mark == end_of(0) for each in taker.subscriptions.values() for r in each.readers.values())


def test_frames_of_columns_stay_within_their_size_and_a_row_that_no_frame_holds_is_left_to_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("narrowcast.deliver.parts.source.MOST_BYTES", 3000)
    rows = [{"s": "a", "x": "y" * (5000 if k == 7 else 20 * k)} for k in range(30)]
    log: list[Entry] = []
    publish(Publisher("desk"), rows, True, log)
    source = a_source(replace(PLANS[0], pulse=None), most_columns=2000)
    mine = [f for f in sent(source, log) if isinstance(f, Frame) and f.channel == 0]
    assert source.counts["too large"] == 1
    assert all(len(encode(f)) <= 2000 for f in mine)
    assert [at for f in mine for at, _, _ in f.messages] == [place(1, k) for k in range(30) if k != 7]
    claims = [(f.after, f.upto) for f in mine]
    gaps = [(a[1], b[0]) for a, b in pairwise(claims) if a[1] != b[0]]
    assert gaps == [(place(1, 6), place(1, 7))]


def test_the_publisher_refuses_columns_that_are_too_large_or_too_many_and_keeps_the_order_of_both() -> None:
    publisher = Publisher("desk")
    with pytest.raises(InputError, match="columns must be at most"):
        publisher.step(PublishColumns(1, 0, 1, b"x" * (1 << 21)), 0.0)
    with pytest.raises(InputError, match="1 to 65534"):
        publisher.step(PublishColumns(1, 0, 70_000, b"x"), 0.0)
    data = encode_columns(pa.record_batch({"p": [1]}))
    events: list[Any] = [
        Publish(1, 0, (b"{}",)),
        Publish(2, 0, (b"{}",)),
        PublishColumns(3, 0, 1, data),
        Publish(4, 0, (b"{}",)),
    ]
    effects = [effect for event in events for effect in publisher.step(event, 0.0)]
    tokens = []
    for sequence in range(1, 6):
        appends = [effect for effect in effects if isinstance(effect, Append)]
        if not appends:
            break
        assert len(appends) == 1
        effects = publisher.step(Appended(appends[0].request, sequence), 0.0)
        tokens.append([effect.token for effect in effects if isinstance(effect, Acked)])
    assert tokens == [[1], [2], [3], [4]]
