"""Fields inside fields, JSON arrays and records of Kafka: read as the plain table with the same content is."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

import narrowcast as nc
from narrowcast.data.ingest.key import known_columns
from narrowcast.data.ingest.take_in import ingest
from narrowcast.errors import InputError

ROWS = [{"id": i, "payload": {"symbol": f"s{i % 5}", "tick": {"price": i + 0.5}}} for i in range(40)]
WISHES = pa.table(
    {
        "subscriber": ["ann", "bob", "cid"],
        "profile": ["payload.symbol = 's1' AND payload.tick.price > 10", "payload.tick.price < 12", "payload.pric > 1"],
    }
)
# As Spark's connector describes a batch of Kafka (its integration guide, "Schema").
KAFKA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"


def files(folder: Path) -> dict[str, Path]:
    """The same rows as Parquet with structs, JSON lines, and an array of JSON over several lines."""
    found = {name: folder / f"messages.{name}" for name in ("parquet", "jsonl", "json")}
    pq.write_table(pa.Table.from_pylist(ROWS), found["parquet"])
    found["jsonl"].write_text("\n".join(map(json.dumps, ROWS)))
    found["json"].write_text(json.dumps(ROWS, indent=2))
    return found


def counts(demand: Any) -> dict[str, Any]:
    tables = {name: pq.read_table(demand.folder / f"{name}.parquet") for name in ("flows", "interest", "profile_rates")}
    return {name: table.to_pylist() for name, table in tables.items()}


def test_names_inside_are_known_before_spark_starts(tmp_path: Path) -> None:
    for path in files(tmp_path).values():
        assert known_columns(path) == ("id", "payload.symbol", "payload.tick.price")


@pytest.mark.spark
def test_nested_fields_are_attributes_and_keys_in_every_format(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = pa.table(
        {"payload.symbol": [f"s{i % 5}" for i in range(40)], "payload.tick.price": [i + 0.5 for i in range(40)]}
    )
    expected = counts(nc.measure(plain, WISHES, key="payload.symbol", spark=spark))
    assert sorted(row["messages"] for row in expected["profile_rates"]) == [0, 6, 12]
    for form, path in files(tmp_path).items():
        caplog.clear()
        demand = nc.measure(path, WISHES, key="payload.symbol", spark=spark)
        assert counts(demand) == expected, form
        assert "no column 'payload.pric', so it is null in 1 profile: cid" in caplog.text
        with pytest.raises(InputError, match=r"got 'payload\.symbl'; they have id, .*did you mean 'payload\.symbol'"):
            nc.measure(path, WISHES, key="payload.symbl", spark=spark)
    frame = spark.read.parquet(str(tmp_path / "messages.parquet"))
    assert counts(nc.measure(frame, WISHES, key="payload.symbol", spark=spark)) == expected


@pytest.mark.spark
def test_elements_of_an_array_that_are_no_objects_are_set_aside(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "messages.json").write_text('[{"a": 1}, 7,\n {"a": null, "b": {"c": "x"}}, {"a": "one"}]')
    taken = ingest(spark, tmp_path / "messages.json", "messages", types={"a": "bigint"})
    assert (taken.n_in, dict(taken.n_bad)) == (4, {"malformed": 1, "wrong type": 1})
    assert sorted(row["row"] for row in taken.quarantine.collect()) == [2, 4]
    good = {row["_row"]: (row["a"], row["b.c"]) for row in taken.rows.collect()}
    assert good == {1: (1, None), 3: (None, "x")}


@pytest.mark.spark
def test_records_of_kafka_are_messages_and_say_where_they_stood(spark: Any, tmp_path: Path) -> None:
    at = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
    values = [json.dumps(row).encode() for row in ROWS] + [b"no object"]
    records = [(None, bytearray(value), "ticks", i % 2, 100 + i, at, 0) for i, value in enumerate(values)]
    topic = spark.createDataFrame(records, StructType.fromDDL(KAFKA))
    demand = nc.measure(topic, WISHES, key="payload.symbol", spark=spark, out=tmp_path / "topic")
    expected = nc.measure(files(tmp_path)["jsonl"], WISHES, key="payload.symbol", spark=spark)
    assert counts(demand) == counts(expected)
    aside = pq.read_table(tmp_path / "topic" / "quarantine.parquet").to_pylist()
    assert [(row["file"], row["row"], row["kind"], row["raw"]) for row in aside] == [
        ("ticks-0", 141, "malformed", "no object")
    ]
    with pytest.raises(
        InputError, match=r"no connector for Kafka .*spark\.jars\.packages=org\.apache\.spark:spark-sql"
    ):
        nc.measure("kafka://127.0.0.1:9092/ticks", WISHES, key="payload.symbol", spark=spark)
    with pytest.raises(InputError, match=r"messages must be kafka://host:port/topic, got kafka://127\.0\.0\.1:9092"):
        nc.measure("kafka://127.0.0.1:9092", WISHES, key="payload.symbol", spark=spark)


@pytest.mark.spark
def test_a_file_system_that_spark_lacks_is_named(spark: Any) -> None:
    with pytest.raises(InputError, match=r"oss://bucket/log: cannot be read: this Spark has no file system for it"):
        nc.measure("oss://bucket/log", WISHES, key="symbol", spark=spark)


@pytest.mark.spark
def test_files_may_be_named_by_urls_and_so_may_the_result(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    found = files(tmp_path / "a b")
    wishes = tmp_path / "a b" / "wishes.parquet"
    pq.write_table(WISHES, wishes)
    out = tmp_path / "a b" / "out"
    nc.measure(found["parquet"].as_uri(), wishes.as_uri(), key="payload.symbol", out=out.as_uri(), spark=spark)
    assert (out / "manifest.json").is_file()
    with pytest.raises(InputError, match="already exists"):
        nc.measure(found["parquet"].as_uri(), wishes.as_uri(), key="payload.symbol", out=out.as_uri(), spark=spark)
    assert [path.name for path in out.parent.iterdir() if path.name.startswith(".")] == []
