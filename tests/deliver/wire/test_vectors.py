"""The test vectors on the page about the wire are what the code writes and reads, byte for byte."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from narrowcast.deliver.wire import (
    Attach,
    Batch,
    ColumnBatch,
    Frame,
    Malformed,
    Marker,
    Pulse,
    Seal,
    decode,
    decode_entry,
    decode_payloads,
    encode,
    encode_entry,
    encode_payload,
)
from narrowcast.deliver.wire.columns import Columns, decode_columns, rows_of

PAGE = Path(__file__).parents[3] / "docs" / "wire.md"
VECTORS: list[dict[str, Any]] = json.loads(re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.S)[-1])


def value(found: Any) -> Any:
    """A value as Python has it, of what the page says."""
    if isinstance(found, list):
        return [value(each) for each in found]
    if not isinstance(found, dict):
        return found
    if found.keys() == {"time"}:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=found["time"])
    if found.keys() == {"decimal"}:
        return Decimal(found["decimal"])
    if found.keys() == {"bytes"}:
        return base64.b64decode(found["bytes"])
    return {name: value(each) for name, each in found.items()}


def entry_of(found: dict[str, Any], data: bytes) -> Batch | ColumnBatch | Marker:
    if found["kind"] == "marker":
        return Marker(found["epoch"])
    rows = [value(each) for each in found["messages"]]
    name, number = found["publisher"], found["number"]
    if found["kind"] == "batch":
        return Batch(name, number, tuple(encode_payload(row) for row in rows))
    arrow = data[15 + len(name) : -4]  # another Arrow may write the same with other offsets
    assert rows_of(decode_columns(arrow, len(rows))) == rows
    return ColumnBatch(name, number, len(rows), arrow)


def frame_of(found: dict[str, Any], data: bytes) -> Frame | Pulse | Attach:
    if found["kind"] == 2:
        return Attach(found["edge"], found["epoch"], found["channel"], found["on"], found["turn"])
    shard, epoch, after, upto = found["shard"], found["epoch"], int(found["after"]), int(found["upto"])
    if found["kind"] == 3:
        return Pulse(shard, epoch, after, upto, tuple((channel, int(at)) for channel, at in found["lately"]))
    places = [int(each["place"]) for each in found["messages"]]
    flows, rows = [each["flow"] for each in found["messages"]], [value(each["message"]) for each in found["messages"]]
    if found["kind"] == 1:
        messages = tuple(zip(places, flows, (encode_payload(row) for row in rows), strict=True))
        return Frame(shard, found["channel"], epoch, after, upto, messages)
    arrow = data[60 + 6 * len(rows) : -4]
    base = places[0] >> 16 << 16
    columns = Columns(base, np.array(places) - base - 1, None, arrow, np.array(flows))
    assert rows_of(columns.batch) == rows
    return Frame(shard, found["channel"], epoch, after, upto, columns)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_vector_of_the_page_is_what_the_code_writes_and_reads(vector: dict[str, Any]) -> None:
    data, found = bytes.fromhex(vector["hex"]), vector["found"]
    if data[:2] == b"nl":
        entry = entry_of(found, data)
        assert encode_entry(entry) == data
        assert decode_entry(data) == entry
        if isinstance(entry, Batch):
            assert decode_payloads(entry.payloads) == [value(each) for each in found["messages"]]
        return
    system, plan = int(found["system"]), found["plan"]
    if "key" in vector:
        seal = Seal(system, sealed=True, name=vector.get("edge", ""))
        seal.know(found["epoch"], plan)
        seal.add_keys(found["epoch"], plan, {found["channel"]: bytes.fromhex(vector["key"])})
        opened = seal.open(data)
        assert not isinstance(opened, Malformed)
        assert seal.open(data) == Malformed("replayed")
        data = opened
    frame = frame_of(found, data)
    assert encode(frame, system, plan) == data
    assert decode(data) == frame


def test_the_page_has_a_vector_of_every_kind() -> None:
    kinds = {vector["found"]["kind"] for vector in VECTORS}
    assert kinds == {"batch", "columns", "marker", 1, 2, 3, 4}
    assert sum("key" in vector for vector in VECTORS) == 2
