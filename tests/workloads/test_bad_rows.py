"""Planted bad rows: known share, known places, truly bad, and the good rows untouched."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.errors import ProfileError
from narrowcast.model.intake import read_demand, read_demand_tables, read_tree
from narrowcast.model.quarantine import Quarantine
from narrowcast.workloads.tables import faults
from narrowcast.workloads.tables.write import TABLES

EVERY = pytest.mark.parametrize("kind", TABLES)
SMALL: dict[str, dict[str, Any]] = {
    "market": {"symbols": 1000},
    "random": {"flows": 400, "share": 0.5},
    "mechanical": {"topics": 200},
    "overlay": {"brokers": 50},
}


def both(kind: str, folder: Path, **options: Any) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """The same workload clean and with bad rows, and where these are."""
    options = {"messages": 1500, "users": 32, "seed": 6, **SMALL.get(kind, {}), **options}
    share = options.pop("bad_rows", 0.1)
    clean = nc.workloads.write(kind, folder / "clean", **options)
    dirty = nc.workloads.write(kind, folder / "dirty", bad_rows=share, **options)
    planted = [json.loads(line) for line in (folder / "dirty" / "planted.jsonl").read_text().splitlines()]
    return clean, dirty, planted


def lines(path: Path) -> list[str]:
    """The data rows of a text file."""
    rows = path.read_text(encoding="utf-8").splitlines()
    return rows[1:] if path.suffix == ".csv" else rows


@EVERY
def test_without_the_bad_rows_the_table_is_the_clean_one(kind: str, tmp_path: Path) -> None:
    clean, dirty, planted = both(kind, tmp_path)
    for name, table in dirty.items():
        bad = {p["row"] - 1 for p in planted if p["table"] == name}
        rows = pq.read_table(table.path)
        assert rows.num_rows == table.rows == clean[name].rows + len(bad)
        good = rows.take(pa.array([i for i in range(rows.num_rows) if i not in bad]))
        assert good.equals(pq.read_table(clean[name].path))


@EVERY
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_places_are_right_in_text_files_too(kind: str, format: str, tmp_path: Path) -> None:
    clean, dirty, planted = both(kind, tmp_path, format=format)
    for name, table in dirty.items():
        bad = {p["row"] - 1 for p in planted if p["table"] == name}
        good = [line for i, line in enumerate(lines(table.path)) if i not in bad]
        expected = lines(clean[name].path)
        if format == "csv":  # with bad rows every cell is text and stands in quotes
            good, expected = ([line.replace('"', "") for line in rows] for rows in (good, expected))
        assert good == expected


@EVERY
def test_the_share_of_bad_rows_is_the_one_asked_for(kind: str, tmp_path: Path) -> None:
    clean, dirty, planted = both(kind, tmp_path, bad_rows=0.03)
    for name, table in dirty.items():
        assert table.planted == sum(p["table"] == name for p in planted)
        # Who wanted what when is for replays, which take it as it was recorded.
        assert table.planted == (0 if name == "wishes" else -(-clean[name].rows * 3 // 100))


def test_there_are_at_least_ten_kinds(tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    for kind in TABLES:
        for format in ("parquet", "jsonl"):
            _, _, planted = both(kind, tmp_path / kind / format, bad_rows=0.4, format=format)
            kinds.update(p["kind"] for p in planted)
            assert len({p["kind"] for p in planted if p["table"] == "subscriptions"}) >= 10
    assert len(kinds) >= 25


@EVERY
def test_every_planted_profile_fault_is_refused_by_the_language(kind: str, tmp_path: Path) -> None:
    _, dirty, planted = both(kind, tmp_path, bad_rows=0.4)
    of_profile = set(faults.profile_faults()) - {"missing profile"}
    for name in {"subscriptions", "queries"} & set(dirty):
        texts = pq.read_table(dirty[name].path)["profile"].to_pylist()
        for p in planted:
            if p["table"] == name and p["kind"] in of_profile:
                with pytest.raises(ProfileError):
                    nc.Profile.parse(texts[p["row"] - 1])


def test_bad_rows_of_flows_and_interest_are_the_ones_set_aside(tmp_path: Path) -> None:
    _, dirty, planted = both("random", tmp_path)
    aside = Quarantine()
    read_demand_tables(dirty["flows"].path, dirty["interest"].path, aside)
    found = {(Path(file).name, row) for file, row, _ in aside.rows}
    assert found == {(p["file"], p["row"]) for p in planted if p["table"] in ("flows", "interest")}


def test_bad_rows_of_demand_are_the_ones_set_aside(tmp_path: Path) -> None:
    clean, dirty, planted = both("tree_demand", tmp_path)
    aside = Quarantine()
    read_demand(dirty["demand"].path, read_tree(clean["tree"].path), aside)
    found = {row for _, row, _ in aside.rows}
    expected = {p["row"]: p["kind"] for p in planted if p["table"] == "demand"}
    assert found == {row for row, kind in expected.items() if kind != "duplicate key"}


def test_a_clean_workload_has_no_list_of_bad_rows(tmp_path: Path) -> None:
    nc.workloads.write("random", tmp_path / "w", messages=10, users=5)
    assert not (tmp_path / "w" / "planted.jsonl").exists()
