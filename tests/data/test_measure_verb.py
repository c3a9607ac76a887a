"""`nc.measure`: whatever the tables come as, the demand is the same, and it knows its key."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from narrowcast import workloads
from narrowcast.data.ingest.key import known_columns
from narrowcast.data.measure import measure
from narrowcast.errors import InputError
from narrowcast.model.demand import Demand
from narrowcast.model.tables import key_in


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workload") / "market"
    workloads.write("market", folder, messages=800, users=20, symbols=60, seed=6)
    return folder


def content(demand: Demand) -> tuple[Any, ...]:
    n = demand.interest
    return demand.key, n.flow_names, n.user_names, n.rates.tolist(), n.offsets.tolist(), n.users.tolist()


@pytest.mark.spark
def test_paths_arrow_tables_and_frames_of_pandas_and_spark_give_the_same_demand(
    spark: Any, market: Path, tmp_path: Path
) -> None:
    messages, subscriptions = market / "messages.parquet", market / "subscriptions.parquet"
    first = measure(messages, str(subscriptions), out=tmp_path / "out", spark=spark)
    assert first.key == ("symbol",)  # as the manifest beside the messages says
    assert first.folder == tmp_path / "out"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["key"] == ["symbol"]
    assert key_in(pq.read_schema(tmp_path / "out" / "flows.parquet")) == ("symbol",)
    assert key_in(pq.read_schema(tmp_path / "out" / "interest.parquet")) is None
    frames = [spark.read.parquet(str(path)) for path in (messages, subscriptions)]
    pandas = pd.read_parquet(messages)
    pandas["ts"] = pandas["ts"].astype("datetime64[ns, UTC]")
    mixed = [
        (pq.read_table(messages), pq.read_table(subscriptions)),
        (frames[0], frames[1]),
        (pandas, frames[1]),
    ]
    for wanted in mixed:
        found = measure(*wanted, key="symbol")
        assert content(found) == content(first)
        assert found.inputs == first.inputs
    assert [row for row in spark.sql("SHOW VIEWS").collect() if row["viewName"].startswith("narrowcast_")] == []


@pytest.mark.spark
def test_a_demand_without_a_folder_of_its_own_has_one_for_as_long_as_it_lives(spark: Any, market: Path) -> None:
    demand = measure(market / "messages.parquet", market / "subscriptions.parquet", key=())
    folder = demand.folder
    assert folder is not None
    assert demand.key == ()  # content classes, though the manifest says symbol
    assert key_in(pq.read_schema(folder / "flows.parquet")) == ()
    assert (folder / "classes.parquet").is_file()
    del demand
    gc.collect()
    assert not folder.parent.exists()
    with pytest.raises(InputError, match="out must not be the folder of the inputs"):
        measure(market / "messages.parquet", market / "subscriptions.parquet", out=market, overwrite=True)


@pytest.mark.parametrize("form", ["path", "csv", "arrow", "pandas"])
def test_a_key_that_is_no_column_is_refused_before_spark_starts(
    form: str, market: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*words: Any, **more: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("narrowcast.data.spark.session.session", no_spark)
    messages: Any = market / "messages.parquet"
    if form == "csv":
        messages = tmp_path / "messages.csv"
        pd.read_parquet(market / "messages.parquet").to_csv(messages, index=False)
    elif form != "path":
        messages = pq.read_table(messages) if form == "arrow" else pd.read_parquet(messages)
    says = r"key must be columns of the messages, got 'symbl'; they have ts, source, symbol, .*did you mean 'symbol'\?"
    with pytest.raises(InputError, match=says):
        measure(messages, market / "subscriptions.parquet", key=["venue", "symbl"])
    with pytest.raises(InputError, match=r"messages must be a path, .* got list"):
        measure([], market / "subscriptions.parquet")


def test_columns_are_known_without_spark_where_the_file_says_them(market: Path, tmp_path: Path) -> None:
    assert known_columns(market / "interest.parquet") == ("flow", "subscriber")
    (tmp_path / "a.csv").write_text('\ufeff"symbol, long",price\nx,1\n', encoding="utf-8")
    assert known_columns(tmp_path / "a.csv") == ("symbol, long", "price")
    (tmp_path / "parts" / "day=1").mkdir(parents=True)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "bad.parquet").write_text("text")
    for name in ("parts", "nowhere.parquet", "empty.csv", "bad.parquet", "a.jsonl"):
        assert known_columns(tmp_path / name) is None
