"""`format("narrowcast")`: Spark reads the log and sends to subscribers, found by its name alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles
from pyspark.sql.types import LongType, StructField, StructType

import narrowcast as nc
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.spark.log import Place
from narrowcast.deliver.spark.options import ReadOptions, WriteOptions
from narrowcast.deliver.spark.rows import column
from narrowcast.deliver.spark.source import LogStreamReader, Range, Scan
from narrowcast.deliver.transport.nats.link import connect_nats
from narrowcast.deliver.wire import Marker, encode_entry
from narrowcast.errors import InputError, TransportError
from running import running

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SCHEMA = "_shard int, _sequence bigint, _index int, symbol string, price double, n bigint, ts timestamp"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of a log with two shards; an epoch's marker stands between messages."""
    place = tmp_path_factory.mktemp("nats")
    with running(place, shards=2) as url:
        with nc.connect(url) as connection:
            connection.publish([{"symbol": "IBM", "price": k / 2, "n": k, "ts": NOON} for k in range(2500)], shard=0)
            asyncio.run(_mark(url))
            strange = {"symbol": 7, "price": "much", "n": 1.5}
            connection.publish([{"symbol": "MSFT", "price": 3, "n": 2500}, strange, {}], shard=0)
            connection.publish([{"symbol": "SAP", "n": k} for k in range(2501, 2600)], shard=1)
        yield place


async def _mark(url: str) -> None:
    bone = await backbone(url, name="marks")
    await bone.log.append(0, encode_entry(Marker(9)), dedup="epoch-9")
    await bone.close()


async def _sinks(url: str) -> list[str]:
    """Those that have a record in the registry."""
    bone = await backbone(url, name="looks")
    try:
        return [records.name_of(value.key) for value in await bone.registry.listed(records.SINK)]
    finally:
        await bone.close()


def read(spark: Any, folder: Path, schema: str | None = SCHEMA, **options: str) -> Any:
    reader = spark.read.format("narrowcast").option("url", str(folder)).options(**options)
    return (reader if schema is None else reader.schema(schema)).load()


@pytest.mark.spark
def test_what_is_in_the_log_is_read_with_the_columns_one_asks_for(spark: Any, folder: Path) -> None:
    frame = read(spark, folder, partitions="2")
    assert frame.rdd.getNumPartitions() == 4  # the second shard has a single entry behind its first
    rows = frame.collect()
    assert Counter(row.symbol for row in rows) == {"IBM": 2500, "MSFT": 1, "SAP": 99, None: 2}
    assert sorted(row.n for row in rows if row.n is not None) == list(range(2600))
    first = min(rows, key=lambda row: (row["_shard"], row["_sequence"], row["_index"]))
    assert (first.symbol, first.price, first.ts.astimezone(UTC)) == ("IBM", 0.0, NOON)
    # What is of another type is null, as it is to a profile; a whole number is a number.
    assert [(r.price, r.n) for r in rows if r.symbol is None] == [(None, None)] * 2
    assert [r.price for r in rows if r.symbol == "MSFT"] == [3.0]
    places = [(row["_shard"], row["_sequence"], row["_index"]) for row in rows]
    assert len(set(places)) == len(rows)


@pytest.mark.spark
def test_without_a_schema_there_is_the_payload_and_where_it_stands(spark: Any, folder: Path) -> None:
    row = read(spark, folder, None, start='{"0": 2, "1": 3}', end="2").orderBy("_index").first()
    assert row["_payload"].startswith('{"symbol":"IBM","price":0.0,"n":0')
    assert abs((row["_time"].astimezone(UTC) - datetime.now(UTC)).total_seconds()) < 3600
    assert row.ts.astimezone(UTC) == NOON


@pytest.mark.spark
def test_a_stream_goes_on_from_its_checkpoint_and_a_query_can_send_what_it_reads(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    url = (folder / "nats.url").read_text().strip()

    def run() -> None:
        stream = spark.readStream.format("narrowcast").option("url", str(folder)).schema("symbol string, n bigint")
        frame = (
            stream.option("maxEntriesPerTrigger", 2).load().where("symbol = 'SAP'").selectExpr("n", "'again' AS word")
        )
        writer = frame.writeStream.format("narrowcast").option("url", str(folder)).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()

    run()
    with nc.connect(url) as connection:
        connection.publish([{"symbol": "SAP", "n": 2600}], shard=1)
        run()
        got = []
        for batch in connection.subscribe("word = 'again'", from_start=True, timeout=2.0):
            got += [row["n"] for row in batch]
    assert sorted(got) == list(range(2501, 2601))


@pytest.mark.spark
def test_a_job_with_a_name_is_sent_once_however_often_it_runs(spark: Any, folder: Path) -> None:
    frame = spark.range(3000).selectExpr("id AS n", "'job' AS word", "CAST(id AS DECIMAL(10,2)) AS d")
    url = (folder / "nats.url").read_text().strip()
    for _ in range(2):
        frame.write.format("narrowcast").option("url", url).option("name", "nightly").mode("append").save()
    with nc.connect(url) as connection:
        batches = list(connection.subscribe("word = 'job'", from_start=True, timeout=2.0))
    assert sorted(row["n"] for batch in batches for row in batch) == list(range(3000))
    assert str(batches[0][0]["d"]) == f"{batches[0][0]['n']}.00"
    frame.limit(5).write.format("narrowcast").option("url", url).mode("append").save()
    assert [name for name in asyncio.run(_sinks(url)) if not name.startswith("query-")] == ["name-nightly"]
    with pytest.raises(PySparkException, match="mode must be append, got overwrite"):
        frame.write.format("narrowcast").option("url", url).mode("overwrite").save()


def test_entries_that_the_log_has_dropped_are_an_error_unless_allowed(tmp_path: Path) -> None:
    with running(tmp_path / "nats") as url:
        with nc.connect(url) as connection:
            for k in range(4):
                connection.publish([{"n": k}])

        async def drop() -> None:  # the entry that begins the generation, and the first two
            link = await connect_nats(url)
            await link.js.purge_stream("nc-log-0", keep=2)
            await link.close()

        asyncio.run(drop())
        schema = StructType([StructField("n", LongType())])
        strict, easy = (
            Scan(Place(url, "nc"), schema, ReadOptions.of({"failOnDataLoss": text})) for text in ("true", "false")
        )
        with pytest.raises(TransportError, match="entries 1 to 3 of shard 0 are no longer in the log"):
            list(strict.read(Range(0, 0, 5)))
        assert [b.column("n").to_pylist() for b in easy.read(Range(0, 0, 5))] == [[2, 3]]
        follower = LogStreamReader(strict)
        try:
            assert follower.initialOffset() == {"0": 3}
            assert follower.latestOffset({"0": 3}, ReadMaxFiles(1)) == {"0": 4}
            with pytest.raises(TransportError, match="ends at entry 5, and the checkpoint has read up to 99"):
                follower.latestOffset({"0": 99}, ReadAllAvailable())
        finally:
            follower.stop()


@pytest.mark.parametrize(
    ("type_", "values", "kept"),
    [
        (pa.int32(), [1, 2.0, 2.5, True, "3", 1 << 40], [1, 2, None, None, None, None]),
        (pa.float64(), [1, 2.5, True, "3", 1 << 70], [1.0, 2.5, None, None, float(1 << 70)]),
        (pa.string(), ["a", 1, None, NOON], ["a", None, None, None]),
        (pa.bool_(), [True, 1, "true"], [True, None, None]),
        (pa.timestamp("us", "UTC"), [NOON, 5, "2026-01-05"], [NOON, None, None]),
        (pa.decimal128(10, 2), [Decimal("1.5"), Decimal("1.555"), "x"], [Decimal("1.50"), None, None]),
        (pa.list_(pa.int64()), [[1, 2], ["x"], 3], [[1, 2], None, None]),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_null(type_: pa.DataType, values: list[Any], kept: list[Any]) -> None:
    assert column(values, type_).to_pylist() == kept


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"strat": "latest"}, "option must be one of .*, got 'strat'.*did you mean start"),
        ({"start": "noon"}, "start must be earliest, latest.*got 'noon'"),
        ({"partitions": "0"}, "partitions must be a whole number of at least 1, got '0'"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false, got 'maybe'"),
    ],
)
def test_options_for_reading_that_are_wrong_are_named(options: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        ReadOptions.of(options)


def test_options_for_writing_that_are_wrong_are_named() -> None:
    with pytest.raises(InputError, match="batch requires name"):
        WriteOptions.of({"batch": "3"})
    with pytest.raises(InputError, match=r"option must be one of .*, got 'start'"):
        WriteOptions.of({"start": "latest"})
