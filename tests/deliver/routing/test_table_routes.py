"""Columns are routed and matched exactly as their rows are, one by one."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.parts.effects import PlanWanted
from narrowcast.deliver.routing.routes import Subscribers, by_content, by_flows
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.table_routes import TableRoutes
from narrowcast.deliver.routing.table_tests import TableTests
from narrowcast.deliver.transport import Multicast
from narrowcast.deliver.wire.columns import rows_of
from narrowcast.profiles import Profile
from narrowcast.profiles.flow_key import flow_name
from simulator.parts import random_plan
from simulator.workload import TEXTS, message

PROFILES = [
    *TEXTS, "p = 'x'", "p > 1.5", "p IN (1, 2, 9)", "s < 'c'", "t >= TIMESTAMP '2026-01-01 00:00:00'", "b = TRUE",
    "missing IS NULL", "missing > 3", "NOT (p > 3)", "d BETWEEN 1.05 AND 2", "s LIKE '%a%' AND l IS NOT NULL",
    "l IS NULL",
]  # fmt: skip
VALUES: dict[str, tuple[pa.DataType, ...]] = {
    "s": (pa.string(), pa.int64(), pa.null(), pa.binary()),
    "p": (pa.int64(), pa.int8(), pa.float64(), pa.float32(), pa.string(), pa.bool_(), pa.null(), pa.decimal128(5, 2)),
    "t": (pa.timestamp("us", "UTC"), pa.string(), pa.int64()),
    "b": (pa.bool_(), pa.string()),
    "d": (pa.decimal128(5, 2), pa.decimal256(40, 3), pa.float64()),
    "l": (pa.list_(pa.int64()), pa.struct([("x", pa.int64())])),
}


def _value(type_: pa.DataType, rng: Random) -> Any:
    k = rng.randrange(10)
    if k == 9 or pa.types.is_null(type_):
        return None
    if pa.types.is_string(type_):
        return rng.choice(("a", "b", "c", "d", "new", "x", ""))
    if pa.types.is_binary(type_):
        return b"a"
    if pa.types.is_list(type_):
        return [k]
    if pa.types.is_struct(type_):
        return {"x": k}
    if pa.types.is_boolean(type_):
        return k > 4
    if pa.types.is_timestamp(type_):
        return 1_767_225_600_000_000 + k - 4
    if pa.types.is_floating(type_):
        return rng.choice((float("nan"), float("inf"), k + 0.5, float(k)))
    return Decimal(k) / 4 if pa.types.is_decimal(type_) else k


def any_batch(rng: Random) -> pa.RecordBatch:
    names = [name for name in VALUES if rng.random() < 0.8] or ["s"]
    n, types = rng.randrange(1, 40), [rng.choice(VALUES[name]) for name in names]
    arrays = [pa.array([_value(t, rng) for _ in range(n)], t) for t in types]
    return pa.RecordBatch.from_arrays(arrays, names=names)


@given(st.integers(0, 1 << 30))
def test_all_profiles_together_match_the_rows_that_each_matches_as_messages(seed: int) -> None:
    rng = Random(seed)
    batch = any_batch(rng)
    profiles = [Profile.parse(text) for text in rng.sample(PROFILES, 6)]
    found = TableTests(profiles)(batch)
    rows = rows_of(batch)
    for profile, matched in zip(profiles, found, strict=True):
        assert matched.tolist() == [k for k, row in enumerate(rows) if profile.matches(row)], profile.text


def slow_routes(routing: Routing, rows: list[dict[str, Any]]) -> tuple[list[int], dict[int, list[int]]]:
    found: dict[int, list[int]] = {}
    flows = []
    for k, row in enumerate(rows):
        flow, channels = routing.route(row)
        flows.append(flow)
        for channel in dict.fromkeys(channels):
            found.setdefault(channel, []).append(k)
    return flows, found


def check(routing: Routing, batch: pa.RecordBatch) -> None:
    flows, found = TableRoutes(routing)(batch)
    slow = slow_routes(routing, rows_of(batch))
    assert (flows.tolist(), {channel: rows.tolist() for channel, rows in found.items()}) == slow


@pytest.mark.parametrize("seed", range(60))
def test_plans_of_all_kinds_send_rows_where_they_send_messages(seed: int) -> None:
    rng = Random(seed)
    names = [f"s{k}" for k in range(8)]
    wanted = PlanWanted(
        1, 1, {name: rng.choice(TEXTS) for name in names}, {name: f"edge-{k % 3}" for k, name in enumerate(names)},
        {"edge-0": "broker-1", "edge-1": "broker-2", "edge-2": "broker-0"}, ("broker-0", "broker-1", "broker-2"),
    )  # fmt: skip
    routing = random_plan(wanted, rng)
    check(routing, pa.RecordBatch.from_pylist([message(k, rng) for k in range(rng.randrange(1, 60))]))
    check(routing, any_batch(rng))


@pytest.mark.parametrize("seed", range(30))
def test_keys_of_any_type_and_number_make_the_flows_that_messages_have(seed: int) -> None:
    rng = Random(seed)
    key = rng.sample(("s", "p", "t", "b", "d", "missing"), rng.randrange(1, 4))
    batches = [any_batch(rng) for _ in range(4)]
    rows = [row for batch in batches for row in rows_of(batch) if rng.random() < 0.4]
    flows = {flow_name(row, key): rng.randrange(3) for row in rows}
    who = Subscribers({"u": "s = 'a'"}, {"u": "e"})
    routing = by_flows(key, flows, {0: 0, 1: 0, 2: 1}, who, unicast=[(flow, "u") for flow in list(flows)[:2]])
    for batch in batches:
        check(routing, batch)


def test_floats_that_are_equal_and_look_different_are_flows_of_their_own() -> None:
    routing = by_flows(["p"], {"0.0": 0, "-0.0": 1}, {0: 0, 1: 0}, Subscribers({"u": "p = 0"}, {"u": "e"}))
    check(routing, pa.record_batch({"p": [0.0, -0.0, float("nan"), 0.0]}))


def test_ten_thousand_rows_go_through_one_matcher() -> None:
    contents = {c: Profile.parse(f"p BETWEEN {c} AND {c + 10} OR s = 'S{c}'") for c in range(40)}
    who = Subscribers({"u": "p = 5"}, {"u": "e"})
    routing = by_content(contents, {c: Multicast(0, c) for c in contents}, who)
    rng = np.random.default_rng(1)
    symbols = pa.array([f"S{k}" for k in rng.integers(0, 60, 10_000)])
    check(routing, pa.record_batch({"s": symbols, "p": rng.integers(0, 70, 10_000)}))
