"""Sums finished at the driver or by shuffles make the same files, and so do both ways to take in tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from naive.statistics import statistics
from narrowcast.data.ingest import here
from narrowcast.data.ingest.here import clean_tables
from narrowcast.data.spark.output import read_manifest
from narrowcast.data.statistics import arrays, gather, write
from narrowcast.data.statistics.match import Decay
from narrowcast.data.statistics.measure import MeasureSettings, measure_folder
from narrowcast.errors import InputError

pytestmark = pytest.mark.spark

PROFILES = (
    "symbol = 'a'",
    "symbol = 'a' AND price > 2",
    "symbol IN ('b', 'c') AND price < 4",
    "symbol = 'd' AND price BETWEEN 1 AND 3",
    "price = 0",
    "symbol = 'zz'",
)


def log(rng: np.random.Generator, n: int, folder: Path) -> None:
    """Messages with nulls, and with sizes that are bad."""
    size = rng.integers(-1, 30, n).astype(float)
    symbol = pa.array(rng.choice(list("abcdé"), n), mask=rng.random(n) < 0.1)
    price = pa.array(rng.integers(0, 6, n), mask=rng.random(n) < 0.1)
    ts = pa.array(
        1_700_000_000_000_000 + rng.integers(0, 10**7, n), pa.timestamp("us", "UTC"), mask=rng.random(n) < 0.1
    )
    pq.write_table(pa.table({"symbol": symbol, "price": price, "size": size, "ts": ts}), folder / "messages.parquet")


def subscriptions(rng: np.random.Generator, n: int, folder: Path) -> None:
    pairs = sorted({(f"s{rng.integers(12)}", str(rng.choice(PROFILES))) for _ in range(n)})
    rng.shuffle(pairs)
    who, what = zip(*pairs, strict=True)
    pq.write_table(pa.table({"subscriber": who, "profile": what}), folder / "subscriptions.parquet")


def measured(spark: Any, folder: Path, out: Path, chosen: MeasureSettings, **more: Any) -> tuple[Any, Any]:
    inputs = {name: folder / f"{name}.parquet" for name in ("messages", "subscriptions")}
    measure_folder(spark, inputs, out, chosen, overwrite=True, **more)
    about = read_manifest(out)
    del about["written_at"], about["seconds"]
    return {path.name: path.read_bytes() for path in out.glob("*.parquet")}, about


def both_ways(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int, n: int, by_key: bool, decays: bool
) -> dict[str, bytes]:
    """The files of the driver, which those of Spark equal: when nothing fits, and when only interest does not."""
    rng = np.random.default_rng(seed)
    log(rng, n, folder)
    subscriptions(rng, 14, folder)
    chosen = MeasureSettings(key=("symbol",) if by_key else (), decay=Decay(3.0, 8.0) if decays else Decay())
    wanted = measured(spark, folder, folder / "driver", chosen)
    with monkeypatch.context() as patch:
        # Neither the sums fit nor who has which profile, and Spark takes in all tables.
        patch.setattr(gather, "FIT", 0)
        patch.setattr(write, "MOST_HELD", 0)
        assert measured(spark, folder, folder / "shuffled", chosen, clean={}) == wanted
    with monkeypatch.context() as patch:
        patch.setattr(arrays, "MOST_ROWS", 0)
        assert measured(spark, folder, folder / "some", chosen) == wanted
    tables: dict[str, bytes] = wanted[0]
    return tables


@pytest.mark.parametrize(("by_key", "decays", "n_tables"), [(True, False, 11), (False, True, 12)])
def test_both_ways_make_the_same_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_key: bool, decays: bool, n_tables: int
) -> None:
    assert len(both_ways(spark, tmp_path, monkeypatch, 5, 200, by_key, decays)) == n_tables
    assert pq.read_table(tmp_path / "driver" / "overlap.parquet").num_rows > 0
    assert pq.read_table(tmp_path / "driver" / "audiences.parquet").num_rows > 1


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.integers(0, 60), st.booleans(), st.booleans())
def test_both_ways_make_the_same_files_of_any_log(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, n: int, by_key: bool, decays: bool
) -> None:
    both_ways(spark, tmp_path, monkeypatch, seed, n, by_key, decays)


def test_a_small_log_is_taken_in_and_measured_by_one_job_and_equals_the_definitions(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    log(rng, 400, tmp_path)
    subscriptions(rng, 20, tmp_path)
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    measured(spark, tmp_path, tmp_path / "out", MeasureSettings(key=("symbol",)))
    made = set(tracker.getJobIdsForGroup()) - before
    bad = pq.read_table(tmp_path / "out" / "quarantine.parquet").num_rows
    assert bad > 0
    # One job for all sums, one for the rows that were set aside.
    assert len(made) == 2
    messages = pq.read_table(tmp_path / "messages.parquet").to_pandas()
    messages["symbol"] = messages["symbol"].fillna("\\N")  # as the flow without one is called
    held = pq.read_table(tmp_path / "subscriptions.parquet").to_pandas()
    want = statistics(messages[~(messages["size"] < 0)], held, key="symbol", half_life_s=None, window_s=None)
    pairs = pq.read_table(tmp_path / "out" / "interest.parquet").to_pylist()
    assert [(row["flow"], row["subscriber"]) for row in pairs] == want["interest"]
    rates = pq.read_table(tmp_path / "out" / "profile_rates.parquet").to_pylist()
    assert {row["profile"]: row["messages"] for row in rates} == {k: v[0] for k, v in want["profile_rates"].items()}
    audience = pq.read_table(tmp_path / "out" / "flow_audience.parquet").to_pylist()
    assert {row["flow"]: row["audience"] for row in audience} == want["flow_audience"]


def test_sums_that_do_not_fit_are_left_with_spark_by_their_kind(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    log(rng, 300, tmp_path)
    subscriptions(rng, 20, tmp_path)
    seen: list[gather.Gathered] = []
    real = gather.gathered

    def watched(partials: Any) -> gather.Gathered:
        seen.append(real(partials))
        return seen[-1]

    monkeypatch.setattr("narrowcast.data.statistics.measure.gathered", watched)
    chosen = MeasureSettings(key=("symbol",))
    wanted = measured(spark, tmp_path, tmp_path / "all", chosen)
    handed = dict(seen[0].handed)
    assert not seen[0].late
    # Room for all but the last kind.
    monkeypatch.setattr(gather, "FIT", sum(handed.values()) - 1)
    assert measured(spark, tmp_path, tmp_path / "most", chosen) == wanted
    assert seen[1].late == {"overlap"}
    assert seen[1].handed == handed


CELLS = st.sampled_from(
    ["a", "b", "c", "price > 1", "price > ", " ", "", "a,b", 'say "a"', "x\ny", "1", "2.5", "-1", "é"]
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["subscriptions", "flows", "nodes", "tree", "topology"]),
    st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5),
    st.sampled_from(["csv", "jsonl", "parquet"]),
)
def test_a_table_taken_in_at_the_driver_has_the_rows_that_spark_accepts(
    spark: Any, tmp_path: Path, name: str, rows: list[tuple[str, str, str]], form: str
) -> None:
    """Whatever the driver takes in, Spark takes in with the same rows and without a fault."""
    columns = {
        "subscriptions": ("subscriber", "profile", "extra"),
        "flows": ("flow", "rate", "extra"),
        "nodes": ("node", "role", "extra"),
        "tree": ("node", "parent", "extra"),
        "topology": ("u", "v", "cost"),
    }[name]
    if name == "nodes":
        rows = [(a, "broker", c) for a, _, c in rows]
    path = write_text(tmp_path, name, columns, rows, form)
    found = clean_tables({name: path}).get(name)
    if found is None:
        return
    accepted(spark, name, path, found)


def write_text(folder: Path, name: str, columns: tuple[str, ...], rows: list[tuple[str, str, str]], form: str) -> Path:
    path = folder / f"{name}.{form}"
    if form == "parquet":
        cells = zip(*([cell or None for cell in row] for row in rows), strict=True)
        pq.write_table(pa.table({n: pa.array(c, pa.string()) for n, c in zip(columns, cells, strict=True)}), path)
    elif form == "jsonl":
        amounts = {"rate", "cost"}

        def cell(column: str, text: str) -> Any:
            return json.loads(text) if column in amounts and text in ("1", "2.5", "-1") else text

        lines = [json.dumps({c: cell(c, t) for c, t in zip(columns, row, strict=True)}) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([columns, *rows])
    return path


def accepted(spark: Any, name: str, path: Path, found: here.CleanTable) -> None:
    from narrowcast.data.ingest.take_in import ingest

    table = ingest(spark, path, name)
    assert table.n_bad == {}
    assert table.columns == found.columns
    assert table.uses == found.uses
    want = table.rows.orderBy("_row").drop("_file", "_row").toArrow().to_pylist()
    assert found.table.select(table.rows.drop("_file", "_row").columns).to_pylist() == want
    assert found.numbered().column_names[-2:] == ["_file", "_row"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_clean_table_of_every_kind_needs_no_spark(spark: Any, tmp_path: Path, form: str) -> None:
    from narrowcast import workloads

    taken: dict[str, tuple[Path, here.CleanTable]] = {}
    for kind, tables in {
        "market": ("nodes", "topology", "subscriptions", "flows", "interest"),
        "tree_demand": ("tree", "demand"),
    }.items():
        workloads.write(kind, tmp_path / kind, messages=50, users=16, format=form, seed=1)
        sources = {
            name: tmp_path / kind / f"{name}.{form}" for name in tables if (tmp_path / kind / f"{name}.{form}").exists()
        }
        found = clean_tables(sources)
        assert found.keys() == sources.keys()
        taken |= {name: (sources[name], table) for name, table in found.items()}
    assert len(taken) >= 4
    for name in ("subscriptions", "tree"):
        accepted(spark, name, *taken[name])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("subscriptions", "subscriber,profile\nann,price >\n"),
        ("subscriptions", "subscriber,profile\nann,price > 1\nann,price > 1\n"),
        ("subscriptions", "subscriber,profile\nann, \n"),
        ("subscriptions", 'subscriber,profile\nann,"price > 1\n'),
        ("subscriptions", 'subscriber,profile\nann,"price" > 1\n'),
        ("subscriptions", 'subscriber,profile,extra\nann,price > 1,""\n'),
        ("subscriptions", "subscriber,profile\n\nann,price > 1\n"),
        ("subscriptions", "subscriber,profile\nann\n"),
        ("subscriptions", "subscriber,profile\r\nann,price > 1\r\n"),
        ("flows", "flow,rate\na,-1\n"),
        ("flows", "flow,rate\na,1e400\n"),
        ("flows", "flow,rate\na,\n"),
        ("nodes", "node,role\na,king\n"),
        ("tree", "node,parent\na,\nb,c\nc,b\n"),
        ("tree", "node,parent\na,\nb,\n"),
        ("tree", "node,parent\na,\nb,x\n"),
        ("topology", "u,v\na,a\n"),
        ("topology", "u,v\na,b\nb,a\n"),
        ("demand", "node\na\n"),
    ],
)
def test_a_table_with_any_doubt_is_left_to_spark(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / f"{name}.csv").write_bytes(text.encode())
    assert clean_tables({name: tmp_path / f"{name}.csv"}) == {}


@pytest.mark.parametrize(
    ("text", "profiles"),
    [
        ('subscriber,profile\nann,"a IN (1,2)"\n', ["a IN (1,2)"]),
        ('"subscriber","profile"\n"ann","a > 1"', ["a > 1"]),
        ("subscriber,profile,extra\nann,a > 1,", ["a > 1"]),
        ('subscriber,profile\nann,"a = 1\nOR ""b"" = 2"\nbob,a > 1\n', ['a = 1\nOR "b" = 2', "a > 1"]),
    ],
)
def test_plain_and_quoted_cells_are_read_at_the_driver(tmp_path: Path, text: str, profiles: list[str]) -> None:
    (tmp_path / "subscriptions.csv").write_text(text)
    found = clean_tables({"subscriptions": tmp_path / "subscriptions.csv"})["subscriptions"]
    assert found.table["profile"].to_pylist() == profiles


def test_names_are_looked_up_in_tables_at_the_driver_or_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("flow,rate\na,1\n")
    (tmp_path / "interest.csv").write_text("flow,subscriber\na,x\n")
    sources = {name: tmp_path / f"{name}.csv" for name in ("flows", "interest")}
    assert clean_tables(sources).keys() == sources.keys()
    (tmp_path / "interest.csv").write_text("flow,subscriber\na,x\nb,x\n")
    assert clean_tables(sources).keys() == {"flows"}
    (tmp_path / "flows.csv").write_text("flow,rate\na,-1\nb,1\n")
    assert clean_tables(sources) == {}


def test_strict_measuring_stops_at_a_bad_message_found_while_matching(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    log(rng, 100, tmp_path)
    subscriptions(rng, 5, tmp_path)
    with pytest.raises(InputError, match="size is -1"):
        measured(spark, tmp_path, tmp_path / "out", MeasureSettings(key=("symbol",), strict=True))
    assert not (tmp_path / "out").exists()
