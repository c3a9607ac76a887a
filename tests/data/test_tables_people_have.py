"""Tables as people have them: nothing is passed over in silence, and one bad profile never stops the others."""

from __future__ import annotations

import gzip
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from narrowcast.data.ingest.find import check_enough, find_inputs
from narrowcast.data.ingest.key import known_columns
from narrowcast.data.ingest.take_in import ingest
from narrowcast.data.measure import measure
from narrowcast.data.statistics.measure import Measured, MeasureSettings, measure_folder
from narrowcast.errors import InputError
from narrowcast.model.text_files import check_text

LOG = pa.table({"symbol": [f"s{i % 5}" for i in range(40)], "price": [i + 0.5 for i in range(40)]})
SUBSCRIPTIONS = "subscriber,profile\nann,symbol = 's1' AND price > 10\nbob,price < 12\n"


def folder_with(place: Path, subscriptions: str = SUBSCRIPTIONS) -> Path:
    place.mkdir()
    (place / "subscriptions.csv").write_text(subscriptions)
    return place


def measured(spark: Any, place: Path, key: Sequence[str] = ("symbol",), **more: Any) -> Measured:
    out = place.parent / f"{place.name}-out"
    return measure_folder(spark, find_inputs(place), out, MeasureSettings(key=tuple(key), **more))


def rows(result: Measured, table: str) -> list[dict[str, Any]]:
    return pq.read_table(result.folder / f"{table}.parquet").to_pylist()


def test_everything_in_a_folder_is_a_table_or_named(tmp_path: Path) -> None:
    place = folder_with(tmp_path / "in")
    (place / "messages.parquet").mkdir()
    (place / "nodes.csv.gz").touch()
    for name in ("README.md", "flow.csv", "manifest.json", ".hidden", "_SUCCESS"):
        (place / name).touch()
    (place / "plots").mkdir()
    said: list[str] = []
    found = find_inputs(place, said.append)
    names = {"messages": "messages.parquet", "nodes": "nodes.csv.gz", "subscriptions": "subscriptions.csv"}
    assert {name: path.name for name, path in found.items()} == names
    assert said == [
        "measure ignores README.md: not the name of a table",
        "measure ignores flow.csv: not the name of a table (did you mean flows?)",
        "measure ignores plots: not the name of a table",
    ]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["messages.csv.zip"], r"messages\.csv\.zip: the messages table has an ending that cannot be read"),
        (["messages.csv", "messages.csv.gz"], r"both messages\.csv and messages\.csv\.gz are the messages table"),
        (["Messages.csv"], r"no input table here.*ignores Messages\.csv.*did you mean messages\?"),
    ],
)
def test_what_looks_like_a_table_and_is_none_is_refused(tmp_path: Path, names: list[str], says: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=says):
        find_inputs(tmp_path)


def test_tables_that_give_no_result_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing can be measured from subscriptions alone"):
        check_enough(find_inputs(folder_with(tmp_path / "in")))
    with pytest.raises(
        InputError, match=r"inputs must be a folder, or a URL of s3, s3a, gs, hdfs, file, got ftp://host/in"
    ):
        find_inputs("ftp://host/in")


def test_columns_of_packed_text_and_json_are_known_without_spark(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"symbol,price\nx,1\n"))
    (tmp_path / "b.jsonl").write_text('{"Pid": 1}\nno row\n{"PID": 2, "n": null}\n')
    assert known_columns(tmp_path / "a.csv.gz") == ("symbol", "price")
    assert known_columns(tmp_path / "b.jsonl") == ("Pid", "PID", "n")


@pytest.mark.spark
def test_folders_of_parts_and_packed_text_are_read_as_one_file_is(spark: Any, tmp_path: Path) -> None:
    pq.write_table(LOG, folder_with(tmp_path / "file") / "messages.parquet")
    parts = folder_with(tmp_path / "parts") / "messages.parquet"
    parts.mkdir()
    for k in range(2):
        pq.write_table(LOG.slice(k * 20, 20), parts / f"data_{k}.parquet")
    (parts / "_SUCCESS").touch()
    text = pa.BufferOutputStream()
    pyarrow.csv.write_csv(LOG, text)
    (folder_with(tmp_path / "packed") / "messages.csv.gz").write_bytes(gzip.compress(text.getvalue().to_pybytes()))
    results = [measured(spark, tmp_path / name) for name in ("file", "parts", "packed")]
    for table in ("flows", "interest", "profile_rates", "overlap"):
        assert rows(results[0], table)
        assert rows(results[0], table) == rows(results[1], table) == rows(results[2], table)


@pytest.mark.spark
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_table_of_3001_columns_takes_about_as_long_as_one_of_two(spark: Any, tmp_path: Path, form: str) -> None:
    rng = np.random.default_rng(0)
    wide = LOG
    for k in range(2999):
        wide = wide.append_column(f"x{k}", pa.array(rng.random(LOG.num_rows)))
    seconds = {}
    for name, log in (("first", LOG), ("narrow", LOG), ("wide", wide)):
        place = folder_with(tmp_path / name)
        if form == "parquet":
            pq.write_table(log, place / "messages.parquet")
        else:
            pyarrow.csv.write_csv(log, place / "messages.csv")
        start = time.perf_counter()
        result = measured(spark, place)
        seconds[name] = time.perf_counter() - start
        types = json.loads((result.folder / "manifest.json").read_text())["inputs"]["messages"]["types"]
        assert types == {"symbol": "string", "price": "double"}
    assert seconds["wide"] < 4 * seconds["narrow"] + 5
    for path in sorted((tmp_path / "narrow-out").glob("*.parquet")):
        assert path.read_bytes() == (tmp_path / "wide-out" / path.name).read_bytes()


@pytest.mark.spark
def test_a_bad_cell_in_a_column_that_nobody_names_sets_nothing_aside(spark: Any, tmp_path: Path) -> None:
    lines = [f"s{i},{i},{'soon' if i == 7 else i}" for i in range(100)]
    place = folder_with(tmp_path / "in")
    (place / "messages.csv").write_text("\n".join(["symbol,price,later", *lines]))
    assert measured(spark, place).set_aside["messages"] == 0
    with pytest.raises(InputError, match=r"types must be columns of the messages, got 'latr'.*did you mean 'later'"):
        ingest(spark, place / "messages.csv", "messages", types={"latr": "double"})


@pytest.mark.spark
def test_a_profile_that_compares_a_number_with_text_is_set_aside_and_the_others_go_on(
    spark: Any, tmp_path: Path
) -> None:
    place = folder_with(tmp_path / "in", SUBSCRIPTIONS + "eve,price = 'high'\nann,price = 'high'\n")
    pq.write_table(LOG, place / "messages.parquet")
    result = measured(spark, place)
    assert result.set_aside == {"subscriptions": 2, "messages": 0}
    aside = rows(result, "quarantine")
    assert [(row["row"], row["kind"]) for row in aside] == [(3, "wrong type"), (4, "wrong type")]
    says = "eve compares the column 'price' with text, but it holds a number: price = 'high' (a number stands"
    assert aside[0]["reason"].startswith(says)
    assert json.loads(aside[0]["raw"]) == {"subscriber": "eve", "profile": "price = 'high'"}
    assert {row["subscriber"] for row in rows(result, "interest")} == {"ann", "bob"}
    with pytest.raises(InputError, match=r"row 3: eve compares the column 'price' with text"):
        measure_folder(spark, find_inputs(place), tmp_path / "strict", MeasureSettings(strict=True))
    (place / "subscriptions.csv").write_text("subscriber,profile\neve,price = 'high'\n")
    with pytest.raises(InputError, match=r"at least one valid row, got none \(row 1 of 1: eve compares"):
        measure_folder(spark, find_inputs(place), tmp_path / "none")


@pytest.mark.spark
def test_names_that_differ_only_in_case_are_two_columns(spark: Any, tmp_path: Path) -> None:
    place = folder_with(tmp_path / "in", "subscriber,profile\nann,Pid = 1\nbob,PID = 1\ncid,pid = 1\n")
    lines = [{"Pid": i % 4, "PID": i % 2, "kind": "x"} for i in range(20)]
    (place / "messages.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = measured(spark, place, key=("PID",))
    profiles = {row["text"]: row["profile"] for row in rows(result, "profiles")}
    matches = {row["profile"]: row["messages"] for row in rows(result, "profile_rates")}
    assert {text: matches[i] for text, i in profiles.items()} == {"Pid = 1": 5, "PID = 1": 10, "pid = 1": 0}
    assert result.remarks == (
        "the messages have no column 'pid', so it is null in 1 profile: cid (did you mean 'PID'?)",
        "1 of 3 profiles matched no message: pid = 1 (cid)",
    )


@pytest.mark.spark
def test_messages_without_a_key_are_counted_and_their_flow_is_named(spark: Any, tmp_path: Path) -> None:
    place = folder_with(tmp_path / "in", "subscriber,profile\nann,price > 1\n")
    nulls = [None, "a\\N", "x|\\N", "\\N|", None]
    pq.write_table(
        pa.table({"symbol": nulls, "venue": ["N"] * 4 + [None], "price": [2.0] * 5}), place / "messages.parquet"
    )
    line = "2 messages have no symbol; their flows are called \\N (\\N is null)"
    assert line in measured(spark, place).remarks
    two = measure_folder(spark, find_inputs(place), tmp_path / "two", MeasureSettings(key=("symbol", "venue")))
    says = "2 messages have no symbol or venue; their flows are called \\N|N, \\N|\\N (\\N is null)"
    assert says in two.remarks


@pytest.mark.spark
def test_an_empty_result_says_why(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = folder_with(tmp_path / "in", "subscriber,profile\nann,prise > 1\nbob,prise > 1\n")
    pq.write_table(LOG, place / "messages.parquet")
    result = measured(spark, place)
    assert rows(result, "interest") == []
    assert result.remarks == (
        "nobody wants anything: no profile matches any of 40 messages",
        "the messages have no column 'prise', so it is null in 1 profile: ann and 1 more (did you mean 'price'?)",
        "1 of 1 profile matched no message: prise > 1 (ann and 1 more)",
    )
    with caplog.at_level(logging.WARNING), pytest.raises(InputError, match="nobody wants any flow"):
        measure(place / "messages.parquet", place / "subscriptions.csv", key="symbol", spark=spark)
    assert result.remarks[0] in caplog.text


@pytest.mark.spark
def test_an_empty_cell_of_a_number_column_is_null_in_quotes_too(spark: Any, tmp_path: Path) -> None:
    lines = [f'"{i}","s{i}",2020-01-0{1 + i % 9}' if i % 3 else '"","",""' for i in range(30)]
    path = tmp_path / "messages.csv"
    path.write_text("\n".join(["year,symbol,day", *lines]))
    table = ingest(spark, path, "messages", types={"day": "date"})
    assert dict(table.types) == {"year": "bigint", "symbol": "string", "day": "date"}
    assert table.n_quarantined == 0
    found = [(row["year"], row["symbol"], str(row["day"])) for row in table.rows.orderBy("_row").collect()]
    assert found[:2] == [(None, "", "None"), (1, "s1", "2020-01-02")]


def test_a_url_that_nobody_can_write_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*words: Any, **more: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("narrowcast.data.spark.session.session", no_spark)
    with pytest.raises(InputError, match="out must be a folder, or a URL of s3, s3a, gs, hdfs, file, got ftp://host/x"):
        measure(LOG, pa.table({"subscriber": ["a"], "profile": ["price > 1"]}), out="ftp://host/x")
    with pytest.raises(InputError, match="the type of 'price' must be one of bigint"):
        measure(LOG, pa.table({"subscriber": ["a"], "profile": ["price > 1"]}), types={"price": "money"})


@pytest.mark.spark
def test_json_arrays_and_lines_that_are_no_json_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    array = folder_with(tmp_path / "array")
    (array / "messages.json").write_text(json.dumps(LOG.to_pylist(), indent=1))
    assert measured(spark, array).rows_in["messages"] == LOG.num_rows
    lines = folder_with(tmp_path / "lines")
    rows = "".join(json.dumps(row) + "\n" for row in LOG.to_pylist())
    (lines / "messages.jsonl").write_text("# exported by hand\n" + rows)
    assert measured(spark, lines).set_aside["messages"] == 1


def test_a_reader_of_lines_alone_says_how_an_array_becomes_some(tmp_path: Path) -> None:
    (tmp_path / "flows.json").write_text('[{"flow": "a"}]')
    with pytest.raises(InputError, match=r"must be an object, got .* \(convert it: jq -c '\.\[\]' flows\.json"):
        check_text(tmp_path / "flows.json", "flows")


@pytest.mark.spark
@pytest.mark.parametrize("rows", [0, 40], ids=["a header alone", "a column without a value"])
def test_a_column_without_a_value_is_null_whatever_profiles_compare_it_with(
    spark: Any, tmp_path: Path, rows: int
) -> None:
    place = folder_with(tmp_path / "in", "subscriber,profile\nann,price > 10 OR symbol = 's1'\nbob,price = 'low'\n")
    (place / "messages.csv").write_text("symbol,price\n" + "".join(f"s{i % 5},\n" for i in range(rows)))
    result = measured(spark, place)
    assert result.set_aside == {"subscriptions": 0, "messages": 0}
    counts = pq.read_table(result.folder / "profile_rates.parquet")["messages"].to_pylist()
    assert counts == [0, rows // 5]
