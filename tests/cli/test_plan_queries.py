"""`narrowcast plan queries`, from the table to a checked plan, a map and one clear line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.cli.app import app
from narrowcast.errors import InputError
from narrowcast.model.folder import read_tables
from narrowcast.plans.queries import judge


def run(*arguments: object) -> None:
    import typer

    typer.main.get_command(app).main(["plan", "queries", *map(str, arguments)], standalone_mode=False)


ORACLE = (
    "query,client,profile\n"
    "q1,ann,x BETWEEN 0 AND 2 AND y BETWEEN 0 AND 1\n"
    "q2,bob,x BETWEEN 0 AND 1 AND y BETWEEN 0 AND 2\n"
    "q1,bob,x BETWEEN 1 AND 2 AND y BETWEEN 1 AND 2\n"
)
BAD = (
    "q9,ann,x BETWEEN\n"
    "q8,ann,x < 1 OR x > 2\n"
    "q1,ann,x BETWEEN 5 AND 6 AND y BETWEEN 5 AND 6\n"
    ",ann,x = 1\n"
    "q7,,x = 1\n"
    "q6,ann,\n"
    "q5,ann,name = 'a'\n"
    "q4,ann,x > 2 AND x < 1\n"
)


@pytest.fixture
def oracle(tmp_path: Path) -> Path:
    path = tmp_path / "queries.csv"
    path.write_text(ORACLE + BAD)
    return path


def test_the_three_query_oracle_is_planned_checked_and_written(oracle, tmp_path, capsys):
    run(oracle, "--method", "partition", "--km", 10, "--kt", 9, "--ku", 4, "--out", tmp_path / "plan", "--json")
    result = json.loads(capsys.readouterr().out)
    assert (result["queries"], result["merged"], result["cost"]["total"], result["set_aside"]) == (3, 1, 74, 8)
    assert (result["attributes"], result["baselines"]) == (["x", "y"], {"apart": 75})
    plan = read_tables(tmp_path / "plan")
    assert judge.faults(plan) == []
    assert judge.cost(plan)["total"] == 74
    aside = pq.read_table(tmp_path / "plan" / "quarantine.parquet").to_pylist()
    assert [row["row"] for row in aside] == list(range(4, 12))
    reasons = " | ".join(row["reason"] for row in aside)
    for part in ("not a range", "appears twice", "query is empty", "client is empty", "profile is empty"):
        assert part in reasons


def test_strict_stops_at_the_first_bad_row(oracle):
    with pytest.raises(InputError, match="row 4: profile"):
        run(oracle, "--strict")


def test_people_see_what_is_merged_and_saved(oracle, capsys):
    run(oracle, "--method", "partition", "--km", 10, "--kt", 9, "--ku", 4)
    shown = capsys.readouterr()
    assert "3 queries of 2 clients answered by 1 on 1 channel: cost 74, 1.3% below" in " ".join(shown.out.split())
    assert "set aside" in shown.err


@pytest.mark.parametrize("sizes", ["counts", "histogram"])
def test_sizes_come_from_data_when_there_is_a_table(tmp_path, capsys, sizes):
    queries, data = tmp_path / "queries.csv", tmp_path / "data.parquet"
    queries.write_text("query,client,profile\na,c,x >= 0 AND y < 5\nb,c,x > 1\nc,c,x BETWEEN 90 AND 95\n")
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({"x": rng.uniform(0, 100, 500), "y": rng.uniform(0, 10, 500)}), data)
    run(queries, "--table", data, "--sizes", sizes, "--km", 1, "--kt", 1, "--ku", 0.01, "--json")
    result = json.loads(capsys.readouterr().out)
    assert result["attributes"] == ["x"]
    assert [s["query"] for s in result["sets"][0]][:2] == ["a", "b"]


def test_the_map_is_drawn_for_planes_lines_and_open_sides(tmp_path, capsys):
    boxes = nc.workloads.rectangles(n=60, seed=4)
    rows = [
        f"q{i},c{i % 7},x BETWEEN {a} AND {b} AND y BETWEEN {c} AND {d}" for i, ((a, b), (c, d)) in enumerate(boxes)
    ]
    (tmp_path / "queries.csv").write_text("\n".join(["query,client,profile", *rows]))
    for attributes in ("x,y", "y"):
        path = tmp_path / f"{attributes}.svg"
        run(tmp_path / "queries.csv", "--attributes", attributes, "--picture", path, "--json")
        assert json.loads(capsys.readouterr().out)["queries"] == 60
        assert path.read_text().count('class="query"') == 60
    (tmp_path / "open.csv").write_text("query,client,profile\na,c,x > 1 AND y < 3\nb,c,x < 9 AND y > 2\n")
    pq.write_table(pa.table({"x": [1.0, 2.0, None], "y": [1, 2, 3]}), tmp_path / "data.parquet")
    run(tmp_path / "open.csv", "--table", tmp_path / "data.parquet", "--picture", tmp_path / "open.png")
    assert (tmp_path / "open.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        ("a,c,x > 1\n", (), "is unbounded along x"),
        ("a,c,x = 1\nb,c,y = 1\n", (), "share no attribute"),
        ("a,c,x = 1\n", ("--attributes", "z"), "attributes must be among x, got 'z'"),
        ("a,c,x = 1\n", ("--sizes", "counts"), "needs --table"),
        ("a,c,x LIKE 'a'\n", (), "no valid row: profile: not a range"),
        ("", (), "no valid row: the table is empty"),
        ("a,c,x = 1\n", ("--picture", "map.bmp"), "picture must end in"),
    ],
)
def test_what_cannot_be_planned_is_one_clear_line(tmp_path, rows, options, says):
    (tmp_path / "queries.csv").write_text("query,client,profile\n" + rows)
    with pytest.raises(InputError, match=says):
        run(tmp_path / "queries.csv", *options)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_plan(oracle, tmp_path):
    for name in ("one", "two"):
        run(oracle, "--method", "directed", "--out", tmp_path / name, "--seed", 3)
    for file in ("plan.json", "merges.parquet", "channels.parquet", "queries.parquet"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
