"""In a session that somebody else made: their settings, views, caches and active session are as they were."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pyspark
import pytest

import narrowcast as nc
from narrowcast.cli.spark import spark_settings
from narrowcast.data.answer.answer import answer
from narrowcast.data.planning.replay import replay
from narrowcast.data.spark.home import CarriedValue
from narrowcast.data.spark.java import java_home
from narrowcast.errors import InputError

# A stranger's choices: other names, times, arithmetic, ways of execution and numbers of tasks than ours.
STRANGE = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "77",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "3",
}


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


def everything(spark: Any) -> dict[str, Any]:
    """All that a session is: its settings, its context's, its views, what is kept, and who is active."""
    inside = spark._jsparkSession
    return {
        "settings": dict(spark.conf.getAll),
        "context": sorted(spark.sparkContext.getConf().getAll()),
        "views": sorted(row["viewName"] for row in spark.sql("SHOW VIEWS").collect()),
        "nothing kept": inside.sharedState().cacheManager().isEmpty(),
        "description": spark.sparkContext.getLocalProperty("spark.job.description"),
        "active": str(pyspark.sql.SparkSession.getActiveSession()._jsparkSession),
        "of an RDD": pyspark.RDD.toDF,  # type: ignore[attr-defined]
    }


@pytest.fixture
def market(tmp_path: Path) -> Path:
    nc.workloads.write("market", tmp_path / "market", messages=600, users=20, symbols=60, seed=6)
    return tmp_path / "market"


@pytest.fixture
def stranger(spark: Any) -> Iterator[Any]:
    active = pyspark.sql.SparkSession.getActiveSession()
    other = spark.newSession()
    for name, value in STRANGE.items():
        other.conf.set(name, value)
    other.createDataFrame([(1,)], "theirs int").createTempView("theirs")
    yield other
    other.catalog.dropTempView("theirs")
    spark.createDataFrame([], "a int")  # makes it the active session again
    assert pyspark.sql.SparkSession.getActiveSession() is active


def jobs(spark: Any) -> list[tuple[int, str]]:
    """Every job so far with its description, as Spark's page of jobs shows them."""
    listed = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = []
    for k in range(listed.size()):
        said = listed.apply(k).description()
        found.append((listed.apply(k).jobId(), said.get() if said.isDefined() else ""))
    return sorted(found)


@pytest.mark.spark
def test_a_strangers_session_is_left_as_it_was_and_the_tables_are_the_same(
    spark: Any, stranger: Any, market: Path, tmp_path: Path
) -> None:
    paths = market / "messages.parquet", market / "subscriptions.parquet"
    nc.measure(*paths, key="symbol", out=tmp_path / "ours", spark=spark)
    frames = [stranger.read.parquet(str(path)) for path in paths]
    before, done = everything(stranger), len(jobs(stranger))
    demand = nc.measure(*frames, key="symbol", out=tmp_path / "theirs")
    made = jobs(stranger)[done:]
    assert everything(stranger) == before
    assert {name: stranger.conf.get(name) for name in STRANGE} == STRANGE
    ours, theirs = tables(tmp_path / "ours"), tables(tmp_path / "theirs")
    assert len(ours) >= 9
    assert {name for name in ours if ours[name] != theirs.get(name)} == set()
    # Each job says what it is for.
    assert made
    assert [said for _, said in made if not said.startswith("narrowcast: ")] == []
    assert {"narrowcast: taking in subscriptions", "narrowcast: matching messages"} <= {said for _, said in made}
    # The result as frames of their session.
    interest = nc.frame(demand, "interest", stranger)
    assert interest.sparkSession is stranger
    assert interest.count() == pq.read_metadata(tmp_path / "ours" / "interest.parquet").num_rows
    with pytest.raises(InputError, match=r"name must be one of audiences, .* got 'nonsense'"):
        nc.frame(demand, "nonsense", stranger)


@pytest.mark.spark
def test_names_of_the_catalog_are_tables_too(spark: Any, stranger: Any, market: Path, tmp_path: Path) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    try:
        for name in ("messages", "subscriptions"):
            spark.read.parquet(str(market / f"{name}.parquet")).write.saveAsTable(f"shop.{name}")
        before = everything(stranger)
        nc.measure("shop.messages", "shop.subscriptions", key="symbol", out=tmp_path / "named", spark=stranger)
        assert everything(stranger) == before
        nc.measure(market / "messages.parquet", market / "subscriptions.parquet", out=tmp_path / "paths", spark=spark)
        assert tables(tmp_path / "named") == tables(tmp_path / "paths")
        with pytest.raises(InputError, match=r"shop\.nothing: no such file, and no table of Spark's catalog"):
            nc.measure("shop.nothing", "shop.subscriptions", key="symbol", spark=stranger)
        with pytest.raises(InputError, match=r"got 'symbl'; they have .*did you mean 'symbol'"):
            nc.measure("shop.messages", "shop.subscriptions", key="symbl", spark=stranger)
    finally:
        spark.sql("DROP DATABASE shop CASCADE")


@pytest.mark.spark
def test_what_fails_leaves_a_strangers_session_as_it_was_too(stranger: Any, market: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("subscriber,profile\nann,symbol = \n")
    before = everything(stranger)
    with pytest.raises(InputError, match="at least one valid row"):
        nc.measure(market / "messages.parquet", tmp_path / "bad.csv", key="symbol", spark=stranger)
    assert everything(stranger) == before


@pytest.mark.spark
def test_replaying_and_answering_leave_a_strangers_session_as_it_was(
    stranger: Any, market: Path, tmp_path: Path
) -> None:
    demand = nc.measure(market / "messages.parquet", market / "subscriptions.parquet", spark=stranger)
    nc.plan(demand, groups=3, sessions=6).save(tmp_path / "plan")
    (tmp_path / "queries.csv").write_text("query,client,profile\nq1,ann,price BETWEEN 1 AND 50\n")
    before, done = everything(stranger), len(jobs(stranger))
    replay(stranger, tmp_path / "plan", market / "messages.parquet", subscriptions=market / "subscriptions.parquet")
    answer(stranger, tmp_path / "queries.csv", market / "messages.parquet", tmp_path / "answers")
    assert everything(stranger) == before
    made = jobs(stranger)[done:]
    assert [said for _, said in made if not said.startswith("narrowcast: ")] == []


def test_a_carried_value_is_unpacked_once_in_a_process() -> None:
    carried = CarriedValue({"rates": np.arange(3)})
    first = carried.value
    assert first["rates"].tolist() == [0, 1, 2]
    assert carried.value is first
    for k in range(10):  # others push it out, and it is unpacked again
        assert CarriedValue(k).value == k
    assert carried.value is not first


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("spark.executor.memory", "--conf must be NAME=VALUE, e.g. spark.executor.memory=4g, got"),
        ("executor.memory=4g", "--conf must be NAME=VALUE"),
        ("spark.master=yarn", r"--conf must not set spark\.master, got .* \(use --master\)"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(given: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        spark_settings([given])
    assert spark_settings(None) == {}
    assert spark_settings(["spark.a=b=c"]) == {"spark.a": "b=c"}


SCRIPT = """
import sys
import narrowcast as nc
from pyspark.sql import SparkSession

demand = nc.measure(sys.argv[1], sys.argv[2], key="symbol", out=sys.argv[3])
spark = SparkSession.active()
context = spark.sparkContext
print("as submitted:", context.master, context.appName, spark.conf.get("spark.sql.shuffle.partitions"))
print("interest:", nc.frame(demand, "interest").count())
"""


@pytest.mark.spark
@pytest.mark.nightly
def test_a_script_under_spark_submit_works_as_it_was_submitted(market: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    words = ["--master", "local[1]", "--name", "a script", "--conf", "spark.sql.shuffle.partitions=5"]
    words += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    inputs = [market / "messages.parquet", market / "subscriptions.parquet", tmp_path / "out"]
    command = [submit, *words, tmp_path / "script.py", *inputs]
    own = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        list(map(str, command)), env={**os.environ, **own}, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "as submitted: local[1] a script 5" in done.stdout
    rows = pq.read_metadata(tmp_path / "out" / "interest.parquet").num_rows
    assert f"interest: {rows}" in done.stdout
