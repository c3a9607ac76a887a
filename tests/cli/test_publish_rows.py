"""The same row is the same message, whichever way it is published."""

from __future__ import annotations

import gzip
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from narrowcast.cli.deliver.publish import message_rows
from narrowcast.errors import InputError

LINES = """{"ts": "2026-01-05T09:30:00Z", "price": 101, "tags": ["a"]}
{"ts": "2026-01-05T09:30:01Z", "price": 101.5, "symbol": null, "big": 123456789012345678901234567890}

{"ts": "2026-01-05T09:30:02Z", "price": "n/a"}
"""


@pytest.mark.parametrize("types", [None, ["ts=timestamp"]])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.ndjson", "a.jsonl.gz"])
def test_lines_of_a_file_are_those_of_standard_input(
    name: str, types: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES.encode()) if name.endswith(".gz") else LINES.encode())
    monkeypatch.setattr("sys.stdin", io.StringIO(LINES))
    piped = list(message_rows("-", types))
    assert repr(list(message_rows(str(path), types))) == repr(piped)
    assert [row["price"] for row in piped] == [101, 101.5, "n/a"]
    moment = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    assert piped[0]["ts"] == ("2026-01-05T09:30:00Z" if types is None else moment)


@pytest.mark.parametrize(
    ("pair", "value", "found"),
    [
        ("a=int", "7", 7),
        ("a=int", 7.0, 7),
        ("a=double", 7, 7.0),
        ("a=text", 7, "7"),
        ("a=bool", "True", True),
        ("a=timestamp", 0, datetime(1970, 1, 1, tzinfo=UTC)),
        ("a=date", "1970-01-02", datetime(1970, 1, 2, tzinfo=UTC)),
        ("b=int", "x", "x"),
    ],
)
def test_a_type_that_is_given_holds(
    pair: str, value: object, found: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"a": value})))
    (row,) = message_rows("-", [pair])
    assert repr(row["a"]) == repr(found)


@pytest.mark.parametrize("pair", ["a=int", "a=timestamp", "a=bool"])
def test_a_value_of_another_type_is_refused_by_name(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": "maybe"}'))
    with pytest.raises(InputError, match=r"message 1: a must be a .*, got 'maybe'"):
        list(message_rows("-", [pair]))


def test_a_line_that_is_no_object_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n[1]\n')
    with pytest.raises(InputError, match=r"a\.jsonl, line 2: must be a JSON object"):
        list(message_rows(str(path)))
