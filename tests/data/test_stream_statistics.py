"""Statistics of a followed log equal those that `measure` makes of the same messages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from data.same_statistics import assert_same
from naive.recent_rates import recent_rates
from narrowcast import workloads
from narrowcast.data.statistics.follow import Following, follow
from narrowcast.data.statistics.match import Decay
from narrowcast.data.statistics.measure import MeasureSettings, measure_folder
from narrowcast.errors import InputError, NarrowcastError
from narrowcast.model import snapshot as snapshots
from running import running

pytestmark = pytest.mark.spark

HALF_LIFE_S = 0.05  # the log is 0.3 s long: its oldest messages weigh a hundredth
SCHEMA = (
    "_shard int, _sequence bigint, symbol string, market string, sector string, kind string, price double, "
    "quantity double, venue string, halted boolean, headline string, size double, ts timestamp"
)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 messages of a market with nulls everywhere, also in ts, not in the order of their times."""
    folder = tmp_path_factory.mktemp("workload") / "market"
    workloads.write("market", folder, messages=3000, users=120, symbols=400, seed=5)
    for name in ("flows", "interest", "topology", "nodes"):
        (folder / f"{name}.parquet").unlink()
    messages = pd.read_parquet(folder / "messages.parquet").sample(frac=1.0, random_state=1).reset_index(drop=True)
    messages["size"] = messages["size"].where(np.arange(len(messages)) % 50 != 7)
    messages["ts"] = messages["ts"].where(np.arange(len(messages)) % 70 != 3)
    messages.to_parquet(folder / "messages.parquet")
    return folder


@pytest.fixture(scope="module")
def log(market: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same messages in a log of two shards."""
    messages = pq.read_table(market / "messages.parquet")
    with running(tmp_path_factory.mktemp("nats"), shards=2) as url:
        with nc.connect(url) as connection:
            for start in range(0, messages.num_rows, 150):
                connection.publish(messages.slice(start, 150), shard=start // 150 % 2)
        yield url


def stream(spark: Any, url: str, entries: int) -> Any:
    reader = spark.readStream.format("narrowcast").schema(SCHEMA).option("url", url)
    return reader.option("maxEntriesPerTrigger", entries).load()


def followed(spark: Any, url: str, subscriptions: Any, folder: Path, **more: Any) -> Following:
    settings = {"key": ("symbol",), "half_life_s": HALF_LIFE_S, "available_now": True} | more
    entries = settings.pop("entries", 8)
    return follow(
        spark,
        stream(spark, url, entries),
        subscriptions,
        checkpoint=folder / "checkpoint",
        out=folder / "out",
        **settings,
    )


@pytest.mark.long
def test_the_statistics_of_a_log_equal_those_of_its_messages(
    spark: Any, market: Path, log: str, tmp_path: Path
) -> None:
    query = followed(spark, log, market / "subscriptions.parquet", tmp_path)
    assert query.wait(200)
    inputs = {name: market / f"{name}.parquet" for name in ("messages", "subscriptions")}
    measure_folder(spark, inputs, tmp_path / "measured", MeasureSettings(key=("symbol",), decay=Decay(HALF_LIFE_S)))
    found = query.latest()
    assert found is not None
    assert_same(found, tmp_path / "measured")
    # Twenty entries and two that begin a generation, four of each shard at a time; the last snapshots stay.
    assert (found.number, found.messages, found.position) == (2, 3000, {0: 11, 1: 11})
    assert snapshots.numbers(tmp_path / "out") == [0, 1, 2]
    messages = pd.read_parquet(market / "messages.parquet")
    want_rates = recent_rates(messages, "symbol", HALF_LIFE_S)
    got_rates = dict(zip(found.flows["flow"].to_pylist(), found.flows["recent_rate"].to_pylist(), strict=True))
    assert got_rates == pytest.approx(want_rates, rel=1e-6, abs=1e-6)
    assert found.as_interest().n_flows == found.flows.num_rows
    # Spark's half of the checkpoint without ours, or ours without Spark's, would count wrongly.
    for half in ("offsets", "commits"):
        shutil.rmtree(tmp_path / "checkpoint" / half)
    with pytest.raises(NarrowcastError, match="the state is at micro-batch 2, but Spark continues with 0"):
        followed(spark, log, market / "subscriptions.parquet", tmp_path).wait(200)


def test_a_profile_counts_from_when_it_appears_and_is_gone_when_it_goes(spark: Any, log: str, tmp_path: Path) -> None:
    asked = []

    def subscriptions() -> list[tuple[str, str]]:
        asked.append(len(asked))
        both = [("ann", "price > 0"), ("bob", "price > 0"), ("cid", "this is no profile")]
        return [*both, ("dan", "quantity > 0")] if asked[-1] in (1, 2) else both

    query = followed(spark, log, subscriptions, tmp_path, entries=4, half_life_s=None, keep=9)
    assert query.wait(200)
    taken = [snapshots.load(snapshots.folder_of(tmp_path / "out", number)) for number in range(5)]
    texts = [s.tables["profiles"]["text"].to_pylist() for s in taken]
    assert texts == [["price > 0"], *[["price > 0", "quantity > 0"]] * 2, ["price > 0"], ["price > 0"]]
    rates = [s.tables["profile_rates"]["messages"].to_pylist() for s in taken]
    counts = [dict(zip(names, found, strict=True)) for names, found in zip(texts, rates, strict=True)]
    seen = [count["price > 0"] for count in counts]
    assert seen == sorted(seen)
    assert 0 < counts[1]["quantity > 0"] <= 600 < counts[2]["quantity > 0"]
    assert taken[0].tables["holders"]["subscriber"].to_pylist() == ["ann", "bob"]
    assert taken[2].tables["overlap"].num_rows == 1
    assert taken[4].tables["overlap"].num_rows == 0


def test_a_stream_that_cannot_be_followed_is_refused_with_one_line(spark: Any, log: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the stream has no column 'venu'"):
        followed(spark, log, list, tmp_path, key=("venu",))
    with pytest.raises(InputError, match="whole microseconds"):
        followed(spark, log, list, tmp_path, half_life_s=1 / 3)
    query = followed(spark, log, tmp_path / "nobody.parquet", tmp_path)
    with pytest.raises(NarrowcastError, match=r"nobody.parquet: no such file"):
        query.wait(60)
