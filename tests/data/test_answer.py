"""Merged queries on Spark: what clients take out of the channels' files is what `WHERE` would give them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.plans.queries.api import Client, Header, read_answers

pytestmark = pytest.mark.spark

PROFILES = [
    "x BETWEEN 1 AND 4 AND y BETWEEN 1 AND 4",
    "x BETWEEN 2 AND 6 AND y BETWEEN 2 AND 6",
    "x BETWEEN 4 AND 8 AND y BETWEEN 4 AND 8",
    "x > 4 AND x < 7 AND y >= 0",
    "x BETWEEN 1 AND 4 AND y BETWEEN 1 AND 4",
    "x >= 7 AND y < 3 AND n <= 2",
    "x = 3 AND y = 3",
    "x BETWEEN 100 AND 200 AND y BETWEEN 0 AND 9",
]
CONSTANTS = nc.queries.Constants(km=1.0, kt=1e-3, ku=1e-3)


def a_table(rows: int = 400, seed: int = 0) -> pa.Table:
    """Whole coordinates, so that rows repeat and lie on borders; some are null or NaN."""
    rng = np.random.default_rng(seed)

    def column() -> pa.Array:
        values = rng.integers(0, 10, rows).astype(float)
        values[rng.random(rows) < 0.05] = np.nan
        return pa.array(values.tolist(), mask=rng.random(rows) < 0.1, type=pa.float64(), from_pandas=False)

    times = pa.array(rng.integers(0, 10**15, rows), pa.timestamp("us", "UTC"))
    n = pa.array(rng.integers(0, 4, rows), pa.int32(), mask=rng.random(rows) < 0.1)
    table = pa.table({"x": column(), "y": column(), "n": n, "name": rng.choice(["a", "b"], rows), "at": times})
    return pa.concat_tables([table, table.slice(0, rows // 4)])


def write_inputs(tmp_path: Path) -> tuple[Path, Path]:
    rows = [{"query": f"q{i // 2}", "client": f"c{i % 2}", "profile": text} for i, text in enumerate(PROFILES)]
    bad = [{"query": "q0", "client": "c0", "profile": "x = 1 AND y = 1"}, {"query": "z", "client": "c", "profile": "x"}]
    pq.write_table(pa.Table.from_pylist(rows + bad), tmp_path / "queries.parquet")
    pq.write_table(a_table(), tmp_path / "table.parquet", row_group_size=100)
    return tmp_path / "queries.parquet", tmp_path / "table.parquet"


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path]:
    return write_inputs(tmp_path)


def answer(spark: Any, inputs: tuple[Path, Path], out: Path, procedure: str = "rectangle", **options: Any) -> Any:
    from narrowcast.data.answer.answer import Merging
    from narrowcast.data.answer.answer import answer as run

    return run(spark, *inputs, out, Merging(procedure=procedure, constants=CONSTANTS), **options)


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(str(row) for row in table.to_pylist())


def extracted(folder: Path) -> dict[tuple[str, str], Counter[str]]:
    found = {}
    for name in ("c0", "c1"):
        client = Client(name)
        for got in read_answers(folder, name):
            client.receive(got)
        found |= {(name, query): rows_of(table) for query, table in client.answers.items()}
    return found


def direct(spark: Any, table: Path) -> dict[tuple[str, str], Counter[str]]:
    frame = spark.read.parquet(str(table))
    return {(f"c{i % 2}", f"q{i // 2}"): rows_of(frame.where(text).toArrow()) for i, text in enumerate(PROFILES)}


@pytest.mark.long
@pytest.mark.parametrize("procedure", ["rectangle", "polygon", "exact"])
def test_extracted_answers_are_those_of_where(spark: Any, inputs: Any, tmp_path: Path, procedure: str) -> None:
    result = answer(spark, inputs, tmp_path / "out", procedure)
    assert extracted(tmp_path / "out") == direct(spark, inputs[1])
    assert (result.queries, result.set_aside) == (len(PROFILES), 2)
    about = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert len(about["channels"]) == result.channels
    assert sum(channel["rows"] for channel in about["channels"]) == result.rows
    if procedure != "exact":
        assert result.channels < len(PROFILES)
    assert {p.name for p in (tmp_path / "out").iterdir() if p.name[0] in "._"} == set()
    aside = pq.read_table(tmp_path / "out" / "quarantine.parquet")
    assert aside["row"].to_pylist() == [len(PROFILES) + 1, len(PROFILES) + 2]


def test_the_table_is_read_once_for_all_queries(spark: Any, inputs: Any) -> None:
    from narrowcast.data.answer.answer import answered, table_rows

    queries = [nc.queries.Query(str(i), "c", nc.Profile.parse(text)) for i, text in enumerate(PROFILES)]
    channels = [Header(i, query.profile, (query,)) for i, query in enumerate(queries)]
    rows, _ = table_rows(spark, inputs[1], queries)
    plan = answered(rows, channels)._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan") == 1


@pytest.mark.parametrize("procedure", ["rectangle", "exact"])
def test_only_what_is_new_is_sent_and_added_up_it_is_the_whole_answer(
    spark: Any, inputs: Any, tmp_path: Path, procedure: str
) -> None:
    table = inputs[1]
    first = answer(spark, inputs, tmp_path / "one", procedure, incremental=tmp_path / "state")
    assert first.fresh
    before = extracted(tmp_path / "one")
    assert before == direct(spark, table)
    # One more copy of rows that are there already, and new ones.
    more = pa.concat_tables([a_table(), a_table().slice(0, 30), a_table(60, seed=9)])
    pq.write_table(more, table)
    second = answer(spark, inputs, tmp_path / "two", procedure, incremental=tmp_path / "state")
    assert (second.fresh, second.gone, second.channels) == (False, 0, first.channels)
    assert 0 < second.rows < first.rows
    new, now = extracted(tmp_path / "two"), direct(spark, table)
    assert {key: before[key] + new[key] for key in now} == now
    third = answer(spark, inputs, tmp_path / "three", procedure, incremental=tmp_path / "state")
    assert (third.rows, third.gone) == (0, 0)
    # Empty channels are there, with their columns.
    assert {len(got.table.column_names) for got in read_answers(tmp_path / "three")} == {5}
    pq.write_table(a_table(), table)
    fourth = answer(spark, inputs, tmp_path / "four", procedure, incremental=tmp_path / "state")
    assert (fourth.rows, fourth.gone) == (0, second.rows)


def test_other_queries_make_a_new_start_and_a_strange_folder_is_left_alone(
    spark: Any, inputs: Any, tmp_path: Path
) -> None:
    answer(spark, inputs, tmp_path / "one", incremental=tmp_path / "state")
    changed = pq.read_table(inputs[0]).slice(1)
    pq.write_table(changed, inputs[0])
    again = answer(spark, inputs, tmp_path / "two", incremental=tmp_path / "state")
    assert again.fresh
    assert again.rows > 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="not a folder of answer state"):
        answer(spark, inputs, tmp_path / "three", incremental=tmp_path / "mine")
    assert not (tmp_path / "three").exists()
    assert (tmp_path / "mine" / "letter.txt").exists()


def test_a_run_that_dies_before_its_folder_is_there_sends_the_same_again(
    spark: Any, inputs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from narrowcast.data.answer import answer as module

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_manifest", dies)
        with pytest.raises(KeyboardInterrupt):
            answer(spark, inputs, tmp_path / "out", incremental=tmp_path / "state")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "state").exists()
    assert answer(spark, inputs, tmp_path / "out", incremental=tmp_path / "state").fresh
    assert extracted(tmp_path / "out") == direct(spark, inputs[1])
    assert not list(tmp_path.glob(".*"))


def test_text_tables_are_typed_and_missing_columns_named(spark: Any, inputs: Any, tmp_path: Path) -> None:
    import pyarrow.csv as csv

    csv.write_csv(
        pa.table({"x": [1, 4, 3], "y": [1.5, 4.0, 2.0], "n": [1, 1, 1], "size": [1, 1, -1]}), tmp_path / "table.csv"
    )
    result = answer(spark, (inputs[0], tmp_path / "table.csv"), tmp_path / "out")
    assert result.set_aside == 3
    assert pq.read_table(tmp_path / "out" / "table_quarantine.parquet")["row"].to_pylist() == [3]
    client = Client("c0")
    for got in read_answers(tmp_path / "out", "c0"):
        client.receive(got)
    assert sorted(client.answers["q0"]["x"].to_pylist()) == [1, 4]
    (tmp_path / "short.csv").write_text("x\n1\n")
    with pytest.raises(InputError, match="no column 'y', which query q0 of c0"):
        answer(spark, (inputs[0], tmp_path / "short.csv"), tmp_path / "out2")
    with pytest.raises(InputError, match="already exists"):
        answer(spark, inputs, tmp_path / "out")


def test_an_empty_table_gives_empty_answers(spark: Any, inputs: Any, tmp_path: Path) -> None:
    pq.write_table(a_table().slice(0, 0), inputs[1])
    assert answer(spark, inputs, tmp_path / "out", incremental=tmp_path / "state").rows == 0
    assert extracted(tmp_path / "out") == direct(spark, inputs[1])
