"""Measured tables equal the definitions, recomputed without Spark and without the matcher."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from naive.statistics import statistics
from narrowcast import workloads
from narrowcast.data.spark.output import read_manifest
from narrowcast.data.statistics.match import Decay
from narrowcast.data.statistics.measure import MeasureSettings, find_inputs, measure_folder
from narrowcast.errors import InputError

pytestmark = pytest.mark.spark

HALF_LIFE_S, WINDOW_S = 0.4, 1.5


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 messages of a market, 2 s long, with nulls in price, quantity, venue, headline, size and ts."""
    folder = tmp_path_factory.mktemp("workload") / "market"
    workloads.write("market", folder, messages=20_000, users=300, symbols=2000, seed=3)
    for name in ("flows", "interest", "topology", "nodes"):
        (folder / f"{name}.parquet").unlink()
    messages = pd.read_parquet(folder / "messages.parquet")
    messages["size"] = messages["size"].where(np.arange(len(messages)) % 50 != 7)
    messages["ts"] = messages["ts"].where(np.arange(len(messages)) % 70 != 3)
    messages.to_parquet(folder / "messages.parquet", row_group_size=3000)
    return folder


def settings(key: str | None) -> MeasureSettings:
    return MeasureSettings(key=() if key is None else (key,), decay=Decay(HALF_LIFE_S, WINDOW_S))


def read(folder: Path, table: str) -> pd.DataFrame:
    return pd.read_parquet(folder / f"{table}.parquet")


def rows(folder: Path, table: str, keys: int, *columns: str) -> dict[Any, tuple[Any, ...]]:
    """A table as a dictionary from its first columns to the named ones."""
    frame = read(folder, table)
    names = list(frame.columns[:keys])
    index = frame[names[0]] if keys == 1 else list(zip(*(frame[n] for n in names), strict=True))
    return dict(zip(index, zip(*(frame[c] for c in columns), strict=True), strict=True))


def close(got: dict[Any, tuple[Any, ...]], want: dict[Any, tuple[Any, ...]]) -> None:
    """The same keys with the same numbers, up to what rounding a weight to 2⁻³⁰ can do."""
    assert got.keys() == want.keys()
    assert len(want) > 100
    for column in range(len(next(iter(want.values())))):
        a = np.array([got[k][column] for k in want], float)
        b = np.array([want[k][column] for k in want], float)
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-6)


def check(folder: Path, want: dict[str, Any]) -> None:
    assert read(folder, "profiles").text.tolist() == want["profiles"]
    close(rows(folder, "profile_rates", 1, "messages", "bytes", "rate"), want["profile_rates"])
    close(rows(folder, "selectivity", 1, "weight", "selectivity"), want["selectivity"])
    # Pairs whose whole weight is below the rounding do not occur.
    heavy = {pair: values for pair, values in want["overlap"].items() if values[0] > 1e-8}
    close(rows(folder, "overlap", 2, "weight", "share", "share_of_other"), heavy)
    close(rows(folder, "flows", 1, "messages", "rate", "bytes"), want["flows"])
    pairs = read(folder, "flow_profile")
    assert list(zip(pairs.flow, pairs.profile, strict=True)) == want["flow_profile"]
    interest = read(folder, "interest")
    assert list(zip(interest.flow, interest.subscriber, strict=True)) == want["interest"]
    of_flow = read(folder, "flow_audience")
    assert dict(zip(of_flow.flow, of_flow.audience, strict=True)) == want["flow_audience"]
    audiences = rows(folder, "audiences", 1, "n_flows", "subscribers", "rate")
    got = {a: (n, list(who), pytest.approx(rate, rel=1e-9)) for a, (n, who, rate) in audiences.items()}
    assert want["audiences"] == got


def test_tables_by_key_equal_a_recomputation(spark: Any, market: Path, tmp_path: Path) -> None:
    measure_folder(spark, find_inputs(market), tmp_path / "out", settings("symbol"))
    messages, subscriptions = (pd.read_parquet(market / f"{n}.parquet") for n in ("messages", "subscriptions"))
    assert messages.isna().any().sum() >= 5
    want = statistics(messages, subscriptions, key="symbol", half_life_s=HALF_LIFE_S, window_s=WINDOW_S)
    check(tmp_path / "out", want)
    assert min(v[0] for v in want["selectivity"].values()) < 0.5 < max(v[0] for v in want["selectivity"].values())


@pytest.mark.nightly
def test_tables_by_content_class_equal_a_recomputation(spark: Any, market: Path, tmp_path: Path) -> None:
    measure_folder(spark, find_inputs(market), tmp_path / "out", settings(None))
    messages, subscriptions = (pd.read_parquet(market / f"{n}.parquet") for n in ("messages", "subscriptions"))
    check(
        tmp_path / "out",
        statistics(messages, subscriptions, key=None, half_life_s=HALF_LIFE_S, window_s=WINDOW_S),
    )


@pytest.mark.nightly
def test_any_number_of_partitions_and_a_second_run_give_the_same_bytes(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workloads.write("market", tmp_path / "w", messages=3000, users=60, symbols=300, seed=4)
    inputs = {n: p for n, p in find_inputs(tmp_path / "w").items() if n in ("messages", "subscriptions")}

    def run(name: str, partitions: int) -> tuple[dict[str, bytes], dict[str, Any]]:
        chosen = MeasureSettings(decay=Decay(HALF_LIFE_S, WINDOW_S), partitions=partitions)
        measure_folder(spark, inputs, tmp_path / name, chosen)
        manifest = read_manifest(tmp_path / name)
        del manifest["written_at"], manifest["seconds"]
        return {p.name: p.read_bytes() for p in (tmp_path / name).glob("*.parquet")}, manifest

    first = run("one", 1)
    assert len(first[0]) == 12
    for name, partitions in (("again", 1), ("two", 2), ("eight", 8)):
        tables, manifest = run(name, partitions)
        assert [table for table in first[0] if tables.get(table) != first[0][table]] == []
        assert (tables.keys(), manifest) == (first[0].keys(), first[1])
    # The settings for large inputs: adaptive execution and generated code.
    monkeypatch.setattr("narrowcast.data.spark.sizing.SMALL_BYTES", 0)
    assert run("large", 2) == first


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("market", "csv"),
        ("rectangles", "jsonl"),
        ("tree_demand", "parquet"),
        pytest.param("market", "parquet", marks=pytest.mark.nightly),
    ],
)
def test_a_hundredth_of_bad_rows_of_many_kinds_is_found_exactly(
    spark: Any, tmp_path: Path, kind: str, form: str
) -> None:
    from narrowcast.data.ingest.tables import SPECS
    from narrowcast.data.ingest.take_in import Ingested, ingest

    size = {"market": {"users": 500, "symbols": 2000}, "tree_demand": {"users": 128}, "rectangles": {"users": 1200}}
    workloads.write(kind, tmp_path / "w", messages=2000, format=form, seed=5, bad_rows=0.01, **size[kind])
    planted = [json.loads(line) for line in (tmp_path / "w" / "planted.jsonl").read_text().splitlines()]
    sources = find_inputs(tmp_path / "w")
    taken: dict[str, Ingested] = {}
    for name in SPECS:
        if name in sources:
            taken[name] = ingest(spark, sources[name], name, known=taken)
    found = {(name, r["row"]) for name, t in taken.items() for r in t.quarantine.collect()}
    assert found == {(p["table"], p["row"]) for p in planted}
    assert len({p["kind"] for p in planted}) >= 10
    for table in taken.values():
        assert table.n_quarantined == sum(p["table"] == table.name for p in planted)
        assert table.rows.count() == table.n_accepted == table.n_in - table.n_quarantined


def test_tree_demand_counts_what_is_wanted_below_each_vertex(spark: Any, tmp_path: Path) -> None:
    workloads.write("tree_demand", tmp_path / "w", messages=100, users=32, items=40, seed=2)
    inputs = {n: p for n, p in find_inputs(tmp_path / "w").items() if n in ("tree", "demand")}
    demand = pd.read_parquet(inputs["demand"])
    item_size = {item: 1 + i / 7 for i, item in enumerate(sorted(set(demand["item"])))}
    demand["size"] = demand["item"].map(item_size)
    demand.to_parquet(inputs["demand"])
    measure_folder(spark, inputs, tmp_path / "out")
    parent = dict(pd.read_parquet(inputs["tree"])[["node", "parent"]].itertuples(index=False))
    below: dict[str, set[str]] = {node: set() for node in parent}
    for node, item in zip(demand.node, demand["item"], strict=True):
        at = node
        while at is not None:
            below[at].add(item)
            at = parent[at]
    got = rows(tmp_path / "out", "tree_demand", 1, "items", "size")
    assert {n: v[0] for n, v in got.items()} == {n: len(items) for n, items in below.items()}
    for node, items in below.items():
        assert got[node][1] == pytest.approx(sum(item_size[i] for i in items), rel=1e-5)


def test_query_sizes_are_exact_and_the_grid_holds_every_message(spark: Any, tmp_path: Path) -> None:
    workloads.write("rectangles", tmp_path / "w", messages=5000, users=30, seed=2)
    inputs = {n: p for n, p in find_inputs(tmp_path / "w").items() if n in ("queries", "messages")}
    measure_folder(spark, inputs, tmp_path / "out", MeasureSettings(grid_cells=7))
    points, queries = pd.read_parquet(inputs["messages"]), pd.read_parquet(inputs["queries"])
    sizes = rows(tmp_path / "out", "query_sizes", 1, "messages", "bytes")
    for query, text in zip(queries["query"], queries.profile, strict=True):
        a, b, c, d = (
            float(word) for word in text.replace("BETWEEN", "").replace("AND", "").split() if word not in "xy"
        )
        inside = points[points.x.between(a, b) & points.y.between(c, d)]
        assert sizes[query] == (len(inside), inside["size"].sum())
    cells = read(tmp_path / "out", "grid")
    assert cells.messages.sum() == 5000
    x, y = points.x, points.y
    want, _, _ = np.histogram2d(x, y, bins=7, range=[[x.min(), x.max()], [y.min(), y.max()]])
    got = np.zeros((7, 7))
    got[cells.x_cell, cells.y_cell] = cells.messages
    # A point on a line between cells may fall to either side of it by a rounding.
    assert np.abs(got - want).sum() <= 2


def test_flows_with_the_same_subscribers_are_one_audience_whatever_the_hash(spark: Any) -> None:
    from narrowcast.data.statistics.tables import audience_of_flow

    rng = np.random.default_rng(0)
    wanted = {f"f{k:03d}": sorted(rng.choice(list("abcde"), rng.integers(1, 4), replace=False)) for k in range(120)}
    pairs = spark.createDataFrame(
        [(f, str(s)) for f, who in wanted.items() for s in who], "flow string, subscriber string"
    )
    first: dict[tuple[str, ...], str] = {}
    want = {f: first.setdefault(tuple(who), f) for f, who in wanted.items()}
    for bits in (64, 2):
        got = {r["flow"]: r["audience"] for r in audience_of_flow(pairs, hash_bits=bits).collect()}
        assert got == want


def test_a_run_that_fails_leaves_nothing_and_the_next_one_completes(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("flow,rate\na,1\nb,2\n")
    (tmp_path / "interest.csv").write_text("flow,subscriber\na,x\nb,x\n")
    inputs = find_inputs(tmp_path)
    out = tmp_path / "out"

    def stop(step: Any) -> None:
        if step.table == "flow_audience":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_folder(spark, inputs, out, explain=stop)
    assert not out.exists()
    measure_folder(spark, inputs, out)
    assert read(out, "audiences").n_flows.tolist() == [2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["flows.csv", "interest.csv", "out"]
    with pytest.raises(InputError, match="already exists"):
        measure_folder(spark, inputs, out)
    measure_folder(spark, inputs, out, overwrite=True)
    assert read_manifest(out)["tables"]["audiences"] == 1
