"""The service on Spark: one scan a period, and every client takes out exactly what `WHERE` would give it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.data.answer.answer import answer
from narrowcast.data.answer.serve import serve_periods
from narrowcast.data.statistics.query_sizes import grid
from narrowcast.errors import InputError
from narrowcast.model.quarantine import Quarantine
from narrowcast.plans.queries.api import AnswerReceiver, Client, QueryService, read_answers
from narrowcast.plans.queries.intake import measured_grid, read_queries
from narrowcast.plans.queries.plan import make
from narrowcast.plans.queries.result import QueryDemand

pytestmark = pytest.mark.spark


def places(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(rows) < 0.02, np.nan, rng.integers(0, 100, rows).astype(float))
    names = pa.array([None if i % 17 == 0 else f"p{i}" for i in range(rows)])
    return pa.table({"x": x, "y": rng.uniform(0, 100, rows), "name": names})


def queries(n: int, seed: int, clients: int = 6) -> pa.Table:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 90, n), rng.uniform(0, 85, n)
    texts = [f"x BETWEEN {a} AND {a + 10} AND y >= {b:.2f} AND y < {b + 15:.2f}" for a, b in zip(x, y, strict=True)]
    names = [f"q{seed}-{i}" for i in range(n)]
    columns = {"query": names, "client": [f"c{i % clients}" for i in range(n)], "profile": texts}
    return pa.table({**columns, "every": [1 + i % 2 for i in range(n)]})


def written(folder: Path, asked: pa.Table, rows: int = 3000) -> nc.Plan:
    """The two tables, and a plan for them."""
    pq.write_table(asked, folder / "queries.parquet")
    pq.write_table(places(rows, 0), folder / "places.parquet")
    found = read_queries(folder / "queries.parquet", Quarantine())
    boxes = nc.queries.range_boxes([q.profile for q in found], ["x", "y"])
    demand = QueryDemand(boxes, ("x", "y"), tuple(q.query for q in found), tuple(q.client for q in found))
    return make(demand, km=30, kt=1, ku=0.05, channels=3)


def direct(asked: pa.Table, data: pa.Table, index: int) -> dict[tuple[str, str], Counter[str]]:
    """What each query that is due gets alone, as rows counted."""
    found = {}
    for row in asked.to_pylist():
        if index % row["every"] == 0:
            at, _ = nc.Matcher([row["profile"]]).match(data)
            found[row["client"], row["query"]] = Counter(map(repr, data.take(at).to_pylist()))
    return found


@pytest.mark.parametrize("tags", [False, True])
def test_every_client_gets_what_its_queries_ask_for_in_every_period(spark: Any, tmp_path: Path, tags: bool) -> None:
    asked = queries(40, 1)
    service = QueryService(written(tmp_path, asked))
    receivers = {f"c{i}": AnswerReceiver(f"c{i}") for i in range(6)}
    got: dict[int, dict[tuple[str, str], Counter[str]]] = {}

    def publish(messages: list[dict[str, Any]]) -> None:
        for message in messages:
            for client, receiver in receivers.items():
                for found in receiver.take(message):
                    for query, table in found.answers.items():
                        rows = Counter(map(repr, table.to_pylist()))
                        got.setdefault(found.period, {})[client, query] = rows

    served = serve_periods(
        spark, tmp_path / "queries.parquet", tmp_path / "places.parquet", service, publish, first=0, tags=tags
    )
    for index, report in enumerate(islice(served, 3)):
        data = pq.read_table(tmp_path / "places.parquet")
        assert got[index] == direct(asked, data, index)
        assert report.queries == 40
        assert report.set_aside == index  # a bad row more in each
        if index:
            assert (report.new, report.gone) == (2, 2)
        asked = pa.concat_tables([asked.slice(2), queries(2, 10 + index)])
        one = pa.table({"query": ["b"], "client": ["c0"], "profile": ["x LIKE"], "every": [1]})
        bad = pa.concat_tables([one] * (index + 1))
        pq.write_table(pa.concat_tables([asked, bad]), tmp_path / "queries.parquet")
        pq.write_table(places(3000, index + 1), tmp_path / "places.parquet")
    assert len(got) == 3


def test_tags_send_no_row_that_nobody_wants(spark: Any, tmp_path: Path) -> None:
    plan = written(tmp_path, queries(30, 2))
    rows = {}
    for tags in (False, True):
        paths = tmp_path / "queries.parquet", tmp_path / "places.parquet"
        served = serve_periods(spark, *paths, QueryService(plan), lambda messages: None, first=0, tags=tags)
        rows[tags] = next(served).rows
    assert 0 < rows[True] < rows[False]


def test_queries_that_cannot_be_read_for_a_while_are_answered_as_before(spark: Any, tmp_path: Path) -> None:
    plan = written(tmp_path, queries(8, 3))
    paths = tmp_path / "queries.parquet", tmp_path / "places.parquet"
    served = serve_periods(spark, *paths, QueryService(plan), lambda messages: None, first=0)
    first = next(served)
    paths[0].write_bytes(b"half")
    second = next(served)
    assert (second.queries, bool(second.kept)) == (first.queries, True)
    with pytest.raises(InputError):
        next(serve_periods(spark, *paths, QueryService(plan), lambda messages: None))


@pytest.mark.parametrize("procedure", ["rectangle", "exact"])
def test_answer_follows_a_plan_for_other_queries_than_it_was_made_for(
    spark: Any, tmp_path: Path, procedure: str
) -> None:
    written(tmp_path, queries(12, 4))
    found = read_queries(tmp_path / "queries.parquet", Quarantine())
    boxes = nc.queries.range_boxes([q.profile for q in found], ["x", "y"])
    demand = QueryDemand(boxes, ("x", "y"), tuple(q.query for q in found), tuple(q.client for q in found))
    plan = make(demand, procedure=procedure, km=3, kt=1, ku=0.05)
    asked = pa.concat_tables([queries(12, 4).slice(3), queries(4, 5)])
    pq.write_table(asked, tmp_path / "queries.parquet")
    answer(spark, tmp_path / "queries.parquet", tmp_path / "places.parquet", tmp_path / "out", plan=plan)
    got = {}
    for name in {f"c{i}" for i in range(6)}:
        client = Client(name)
        for one in read_answers(tmp_path / "out", name):
            client.receive(one)
        got |= {(name, q): Counter(map(repr, table.to_pylist())) for q, table in client.answers.items()}
    data = pq.read_table(tmp_path / "places.parquet")
    assert got == direct(asked.set_column(3, "every", pa.array([1] * 13)), data, 0)


def test_the_planner_reads_the_grid_that_spark_counted(spark: Any, tmp_path: Path) -> None:
    rows = places(2000, 6).drop_columns(["name"])
    pq.write_table(rows, tmp_path / "places.parquet")
    frame = spark.read.parquet(str(tmp_path / "places.parquet"))
    pq.write_table(grid(frame, ["x", "y"], cells=16).toArrow(), tmp_path / "grid.parquet")
    found = measured_grid(tmp_path, ["x", "y"])
    usable = rows.filter(pa.compute.invert(pa.compute.is_nan(rows["x"])))
    assert found.counts.sum() == usable.num_rows
    edges = np.array([[[cuts[3], cuts[9]] for cuts in found.edges]])
    x, y = usable["x"].to_numpy(), usable["y"].to_numpy()
    low, high = edges[0, :, 0], edges[0, :, 1]
    inside = (x >= low[0]) & (x < high[0]) & (y >= low[1]) & (y < high[1])
    assert found(edges)[0] == pytest.approx(inside.sum())
    assert measured_grid(tmp_path, ["y"]).counts.sum() == usable.num_rows
    with pytest.raises(InputError, match="the grid has no attribute 'z'"):
        measured_grid(tmp_path, ["z"])


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_ten_thousand_queries_over_ten_million_rows_on_fifty_channels(tmp_path: Path) -> None:
    """The benchmark raises where an answer is not what its query gets alone; its figures are for people."""
    script = Path(__file__).parents[2] / "benchmarks" / "speed" / "query_service.py"
    done = subprocess.run(
        [sys.executable, str(script), "--periods", "2"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["queries"], last["new"]) == (10_000, 100)
    assert last["cost_to_anew"] < 1.1
