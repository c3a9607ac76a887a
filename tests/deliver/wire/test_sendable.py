"""What is taken comes out as it went in, wherever it is decoded; everything else is refused, by name and at once."""

from __future__ import annotations

import sys
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.client.rows import MessageBatch, payloads
from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.effects import Deliver, Effect, Send
from narrowcast.deliver.parts.events import Arrived, Noted, Subscribe, Tick, WasRead
from narrowcast.deliver.parts.source import Source
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Entry, Unicast
from narrowcast.deliver.wire import (
    MOST_PAYLOAD,
    Batch,
    Frame,
    decode,
    decode_payload,
    encode,
    encode_entry,
    encode_payload,
    end_of,
)
from narrowcast.deliver.wire.sendable import MOST_DEPTH
from narrowcast.errors import InputError
from narrowcast.profiles.parsed import parsed

ALL = parsed("a IS NULL OR NOT (a IS NULL)").text
PLAN = Routing(
    {1: Unicast("u"), 2: Unicast("v")},
    {"all": (1,)},
    key=("a", "b"),
    rest=(1,),
    content={2: "a > 5.5 AND b LIKE '%y'"},
    profiles={"all": ALL},
    edges={"all": "edge"},
)


def deep(depth: int) -> Any:
    """Lists in each other."""
    found: Any = 0
    for _ in range(depth):
        found = [found]
    return found


def same(value: Any) -> Any:
    """What a value must come out as: itself, but for what the docstring of `sendable` says. Written on its own."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, dict):
        return {name: same(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [same(each) for each in value]
    return "not a number" if isinstance(value, float) and value != value else value


def through(data: bytes) -> list[Any]:
    """A message as an application gets it: through the log and a source's frame, and straight from the log."""
    entry = Entry(1, encode_entry(Batch("c", 0, (data, b'{"a":1}'))))
    plan = Noted("plan.1", PLAN.to_bytes(), 1)
    source = Source("source", 0)
    for event in (Tick(), plan, Noted("source.0", records.pack({"sequence": 0, "epoch": 1}), 2)):
        source.step(event, 0.0)
    effects = source.step(WasRead(0, 0, 0, 1, (entry,)), 0.0) + source.step(Tick(), 0.0)
    frames = [e.what for e in effects if isinstance(e, Send) and isinstance(e.what, Frame) and e.what.channel == 1]
    edge = Edge("edge", (0,))
    current = {"term": 1, "current": 1, "next": None, "phase": "steady", "cutover": {}}
    first: list[Effect] = []
    for told in (Subscribe("all", ALL, {0: end_of(0)}), plan, Noted(records.EPOCH, records.pack(current), 3)):
        edge.step(told, 0.0)
    for frame in frames:
        first += edge.step(Arrived(decode(encode(frame))), 0.0)  # type: ignore[arg-type]
    reader = Edge("reader", (0,))
    reader.step(Subscribe("all", ALL, {0: end_of(0)}), 0.0)
    (read,) = (e for e in reader.step(Tick(), 0.0) if type(e).__name__ == "Read")
    second = reader.step(WasRead(read.request, 0, 0, 1, (entry,)), 0.0)  # type: ignore[union-attr]
    return [_first_row(first), _first_row(second)]


def _first_row(effects: list[Effect]) -> Any:
    rows = [message for effect in effects if isinstance(effect, Deliver) for message in effect.messages]
    assert len(rows) == 2, "a message did not arrive"
    return MessageBatch(rows, 0, {})[0]


names = st.one_of(st.sampled_from(["a", "b", "$time", "$decimal", "$bytes"]), st.text(max_size=4))
odd = st.one_of(
    st.characters(categories=["Cs"]),
    st.floats(),
    st.decimals(),
    st.complex_numbers(),
    st.integers(4290, 4310).map(lambda digits: 10**digits),
    st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))])),
    st.sampled_from([datetime.min, datetime.max, datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))]),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.sampled_from([object(), {1, 2}, print, "\ud800", 10**30, b"\xff", "x", True, None]),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=5), odd),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(names, st.integers(), st.none(), st.binary(max_size=2)), inner, max_size=2),
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.one_of(names, st.integers()), values, max_size=3))
def test_any_message_is_refused_in_one_line_or_comes_out_equal_at_every_edge(message: dict[Any, Any]) -> None:
    try:
        data = encode_payload(message)
    except InputError:
        return
    for found in (decode_payload(data), *through(data)):
        assert same(found) == same(message)


REFUSED: dict[str, dict[Any, Any]] = {
    "a tag with a moment beyond all years": {"x": {"$time": 10**30}},
    "a tag that would be a moment": {"x": {"$time": 5}},
    "bytes that are none": {"x": {"$bytes": "?"}},
    "a decimal that is none": {"x": [{"$decimal": "x"}]},
    "a tag alone": {"$time": 5},
    "a moment after 9999": {"x": datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))},
    "a moment before 1": {"x": datetime.min.replace(tzinfo=timezone(timedelta(hours=12)))},
    "NaN as a decimal": {"x": Decimal("NaN")},
    "a signalling NaN": {"x": Decimal("sNaN")},
    "an infinite decimal": {"x": Decimal("-Infinity")},
    "half a character": {"x": "\ud800"},
    "half a character in a name": {"x": {"\udfff": 1}},
    "a name that is a number": {"x": {1: 2}},
    "a number for a name": {7: 2},
    "two names that look alike": {"1": 1, 1: 2},
    "deep lists": {"x": deep(100_000)},
    "just too deep": {"x": deep(MOST_DEPTH + 1)},
    "a huge number": {"x": 10**4300},
    "a set": {"x": {1}},
    "an object": {"x": object()},
    "nanoseconds beyond all years": {"x": np.datetime64("30000-01-01")},
    "a difference of times": {"x": np.timedelta64(5, "ns")},
    "a record of NumPy": {"x": np.zeros(1, dtype=[("p", "i4")])},
    "a long double": {"x": np.longdouble(1)},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_come_out_the_same_is_refused_with_the_name_of_its_attribute(name: str) -> None:
    message = REFUSED[name]
    with pytest.raises(InputError) as caught:
        encode_payload(message)
    wrong = next(reversed(message))
    assert repr(wrong) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        (np.int64(3), 3),
        (np.array([[1.5, 2.5]]), [[1.5, 2.5]]),
        (np.datetime64("2024-01-02T03:04:05.000006789"), datetime(2024, 1, 2, 3, 4, 5, 6, UTC)),
        (np.array(["2024-01-02", "NaT"], "datetime64[ns]"), [datetime(2024, 1, 2, tzinfo=UTC), None]),
        (pd.Timestamp("2024-01-02"), datetime(2024, 1, 2, tzinfo=UTC)),
        (pd.NaT, None),
        (bytearray(b"x"), b"x"),
        (MappingProxyType({"p": (1, 2)}), {"p": [1, 2]}),
        (OrderedDict(q=date(2024, 1, 2)), {"q": datetime(2024, 1, 2, tzinfo=UTC)}),
        ({"$time": "noon"}, {"$time": "noon"}),
        ({"$decimal": Decimal("5.0")}, {"$decimal": Decimal("5.0")}),
        (10**4299, 10**4299),
        (deep(MOST_DEPTH), deep(MOST_DEPTH)),
        (Decimal("1E+999999"), Decimal("1E+999999")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_many_kinds_travel(sent: Any, got: Any) -> None:
    data = encode_payload({"a": sent})
    assert decode_payload(data) == {"a": got}
    assert through(data) == [{"a": got}, {"a": got}]


def test_a_value_that_holds_itself_or_one_thing_a_billion_times_is_refused_at_once() -> None:
    loop: list[Any] = []
    loop.append(loop)
    wide: Any = "x" * 1000
    for _ in range(30):
        wide = [wide] * 10
    with pytest.raises(InputError, match="'x' cannot be sent: values must be nested at most"):
        encode_payload({"x": loop})
    with pytest.raises(InputError, match=f"message must be at most {MOST_PAYLOAD} bytes, got more"):
        encode_payload({"x": wide})


def test_a_process_that_reads_longer_numbers_still_sends_none() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(InputError, match="at most 4300 digits"):
            encode_payload({"x": 10**5000})
    finally:
        sys.set_int_max_str_digits(before)


def test_sizes_are_checked_to_the_byte() -> None:
    rest = len(encode_payload({"x": ""}))
    assert len(encode_payload({"x": "y" * (MOST_PAYLOAD - rest)})) == MOST_PAYLOAD
    with pytest.raises(InputError, match=f"message must be at most {MOST_PAYLOAD} bytes, got {MOST_PAYLOAD + 1}"):
        encode_payload({"x": "y" * (MOST_PAYLOAD - rest + 1)})
    with pytest.raises(InputError, match="message must be at most 20 bytes, got 29"):
        list(payloads([{"x": "y"}, {"x": "y" * 21}], most=20))


def test_a_column_of_arrow_that_python_cannot_read_is_named() -> None:
    far = pa.table({"n": [1], "at": pa.array([10**18], pa.timestamp("us"))})
    with pytest.raises(InputError, match="attribute 'at' cannot be sent"):
        list(payloads(far))
