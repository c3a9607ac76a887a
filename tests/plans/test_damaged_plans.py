"""Damaged plan folders: cut, flipped, changed by hand, or written by something else. One error class, soon."""

from __future__ import annotations

import json
import random
import resource
import shutil
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.errors import InputError, NarrowcastError
from narrowcast.model.folder import fingerprint
from narrowcast.plans.kinds import KINDS
from narrowcast.plans.network.plan import make
from narrowcast.plans.verbs import check_tables, read_tables
from plans.network.small import small_queries

OLD = sorted(path for path in (Path(__file__).parent / "format_1").iterdir() if path.is_dir())
NETWORKS = (10, 103)  # one sends directly and merges queries, one has filters and sessions: no table without rows
LOT = 50
MEMORY = 1 << 20  # KiB that one folder may cost
ODD: list[Any] = [
    None, -1, 0, 1, 2**31, 2**63, 2**64, 10**30, 1e308, -1.5, float("nan"), "x", "", "é\0", [], {}, True, [1, 2], ["x"]
]  # fmt: skip
CELLS: dict[type, list[Any]] = {
    str: [None, "", "x", "' OR", "é\u202e", "A" * 5000, "price > 'x' AND (", "-1"],
    int: [None, -1, -2, 0, 2**31, 10**9, 2**62, -(2**62)],
    float: [None, float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 1e308],
    list: [None, [], [None], [-1], [2**40]],
}


@cache
def network_folders() -> list[Path]:
    """Network plans with queries."""
    place = Path(_kept.name)
    for seed in NETWORKS:
        plan = make(small_queries(seed, flows=2), channels=1, filters=2, price_filter=0.0, price_group=1e-6)
        plan.save(place / f"network-{seed}")
    return sorted(place.iterdir())


_kept = tempfile.TemporaryDirectory()


def sound_folders() -> list[Path]:
    """Plans of every kind, still sound."""
    return OLD + network_folders()


def changed(rng: random.Random, value: Any) -> Any:
    """JSON with one thing in it gone, new or other."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(sorted(value))
        if rng.random() < 0.1:
            return {key: each for key, each in value.items() if key != name}
        return value | {rng.choice([name, name, "odd"]): changed(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], *([] if rng.random() < 0.2 else [changed(rng, value[at])]), *value[at + 1 :]]
    return rng.choice(ODD)


def other(rng: random.Random, table: pa.Table) -> pa.Table:
    """A table with a column gone or of another type, rows gone or twice, or a cell that cannot be."""
    at = rng.randrange(table.num_columns)
    name, cells = table.column_names[at], table.column(at).to_pylist()
    whole: list[Callable[[], Any]] = [
        lambda: table.drop_columns([name]),
        lambda: table.slice(0, rng.randrange(table.num_rows + 1)),
        lambda: pa.concat_tables([table, table]),
        lambda: table.set_column(at, name, pa.array([str(cell) for cell in cells], pa.string())),
        lambda: table.set_column(at, name, pa.nulls(len(cells))),
        lambda: table.set_column(at, name, pa.array([[1]] * len(cells))),
    ]
    if rng.random() < 0.5 or not cells:
        return rng.choice(whole)()
    row = rng.randrange(len(cells))
    cells[row] = rng.choice(CELLS.get(type(cells[row]), [None]))
    return table.set_column(at, name, pa.array(cells, table.schema.field(at).type))


def damage(rng: random.Random, folder: Path) -> None:
    files = sorted(folder.iterdir())
    head = folder / "plan.json"
    way = rng.random()
    if way < 0.2:
        file = rng.choice(files)
        data = bytearray(file.read_bytes())
        at = rng.randrange(len(data))
        data[at : rng.choice([at, at + 1, len(data)])] = rng.randbytes(rng.choice([0, 1, 20]))
        file.write_bytes(data)
        if file != head and rng.random() < 0.5:
            with_digest(folder, file.stem)
    elif way < 0.5:
        head.write_text(json.dumps(changed(rng, json.loads(head.read_text()))))
    else:
        name = rng.choice(sorted(json.loads(head.read_text())["tables"]))
        pq.write_table(other(rng, pq.read_table(folder / f"{name}.parquet")), folder / f"{name}.parquet")
        with_digest(folder, name)


def with_digest(folder: Path, name: str) -> None:
    """Write down the digest of a table, as somebody would who means it."""
    head = json.loads((folder / "plan.json").read_text())
    head["tables"][name] = fingerprint(folder / f"{name}.parquet")
    (folder / "plan.json").write_text(json.dumps(head))


def with_number(folder: Path, table: str, name: str, number: int, *, every: bool = False) -> None:
    """Write this number into a column, in its last row or in all."""
    rows = pq.read_table(folder / f"{table}.parquet")
    at, kept = rows.column_names.index(name), [] if every else rows[name].to_pylist()[:-1]
    numbers = pa.array([*kept, *[number] * (rows.num_rows - len(kept))], rows.schema.field(at).type)
    pq.write_table(rows.set_column(at, name, numbers), folder / f"{table}.parquet")
    with_digest(folder, table)


def refused(work: Callable[[], Any]) -> Any:
    """What it gives; None if it says in one line why not. Whatever else is raised fails the test."""
    try:
        return work()
    except NarrowcastError as error:
        (_,) = str(error).splitlines()
        return None


def run_lot(first: int, folder: Path) -> None:
    for seed in range(first, first + LOT):
        rng = random.Random(seed)
        place = folder / str(seed)
        shutil.copytree(rng.choice(sound_folders()), place)
        damage(rng, place)
        begin, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = refused(lambda place=place: read_tables(place))  # type: ignore[misc]
        verdict = None if found is None else check_tables(found)
        plan = refused(lambda place=place: nc.load(place))  # type: ignore[misc]
        assert time.process_time() - begin < 1.0, seed
        if plan is not None and verdict is not None:
            refused(lambda plan=plan: nc.diff(plan, plan))  # type: ignore[misc]
            refused(lambda plan=plan, place=place: nc.export(plan, "csv", place / "csv"))  # type: ignore[misc]
            if seed % 10 == 0:
                refused(lambda plan=plan, place=place: nc.report(plan, place / "report.html"))  # type: ignore[misc]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < MEMORY, seed
        shutil.rmtree(place)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Compiled kernels are not part of a folder's second."""
    for folder in sound_folders():
        nc.check(nc.load(folder))


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(LOT, 10_000, LOT))])
def test_a_damaged_folder_is_refused_in_one_line_or_judged(first: int, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_lot(first, tmp_path)


def test_the_lot_holds_every_kind_and_every_table_of_a_network() -> None:
    assert {nc.load(folder).kind for folder in sound_folders()} == set(KINDS)
    filled = [
        {path.stem for path in folder.glob("*.parquet") if pq.read_metadata(path).num_rows}
        for folder in network_folders()
    ]
    assert set().union(*filled) == set(KINDS["network"].judge.COLUMNS) - {"grid", "grid_edges", "points"}
    queries = [nc.load(folder).demand.queries for folder in network_folders()]
    assert any(len(asked.sets) < len(asked.every) for asked in queries)


def test_a_plan_with_a_hole_is_called_damaged_not_a_bug(tmp_path: Path) -> None:
    folder = shutil.copytree(OLD[0], tmp_path / "plan")
    rows = pq.read_table(folder / "session_group.parquet")
    pq.write_table(rows.slice(1), folder / "session_group.parquet")
    with_digest(folder, "session_group")
    plan = nc.load(folder)
    assert not nc.check(plan).sound
    with pytest.raises(InputError, match=r"the plan is damaged: .* \(narrowcast check lists all faults\)"):
        nc.diff(plan, plan)


@pytest.mark.parametrize("where", ["text", "name"])
def test_text_that_is_not_unicode_is_damage(tmp_path: Path, where: str) -> None:
    folder = shutil.copytree(OLD[0], tmp_path / "plan")
    path = next(file for file in sorted(folder.glob("*.parquet")) if pa.string() in pq.read_schema(file).types)
    rows = pq.read_table(path)
    at = rows.schema.types.index(pa.string())
    word = rows.column_names[at] if where == "name" else rows.column(at)[0].as_py()
    pq.write_table(rows, path, compression="none", use_dictionary=False, store_schema=False)
    path.write_bytes(path.read_bytes().replace(word.encode(), b"\xff" * len(word.encode())))
    with_digest(folder, path.stem)
    with pytest.raises(InputError, match=rf"{path.name} is damaged"):
        nc.load(folder)


@pytest.mark.parametrize(
    ("kind", "table", "name", "bound"),
    [
        ("channels", "session_group", "session", 1 << 24),
        ("channels", "session_group", "group", 1 << 24),
        ("network", "session_group", "session", 1 << 16),
        ("network", "session_group", "group", 1 << 16),
        ("network", "flow_session", "session", 1 << 16),
        ("network", "flow_channel", "channel", 1 << 16),
        ("network", "trees", "channel", 1 << 16),
    ],
)
def test_a_number_that_would_fill_the_memory_is_refused(
    tmp_path: Path, kind: str, table: str, name: str, bound: int
) -> None:
    folder = shutil.copytree(OLD[0] if kind == "channels" else network_folders()[-1], tmp_path / "plan")
    with_number(folder, table, name, bound)
    with pytest.raises(InputError, match=rf"{name} must be below {bound:,}, got {bound:,}"):
        nc.load(folder)


@pytest.mark.parametrize(("table", "name"), [("flow_session", "session"), ("session_group", "session")])
def test_a_large_number_costs_the_judge_of_a_network_no_memory(tmp_path: Path, table: str, name: str) -> None:
    folder = shutil.copytree(network_folders()[-1], tmp_path / "plan")
    with_number(folder, table, name, 1 << 31)
    tracemalloc.start()
    try:
        assert not check_tables(read_tables(folder)).sound
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("number", [0, 65_535])
def test_networks_with_large_numbers_are_compared_without_memory(tmp_path: Path, number: int) -> None:
    plans = []
    for at, far in enumerate((0, number)):
        folder = shutil.copytree(network_folders()[-1], tmp_path / f"plan-{at}")
        for table, name in (("flow_session", "session"), ("session_group", "session"), ("session_group", "group"),
                            ("flow_channel", "channel"), ("trees", "channel")):  # fmt: skip
            with_number(folder, table, name, far, every=True)
        plans.append(nc.load(folder))
    tracemalloc.start()
    try:
        assert nc.diff(plans[0], plans[1]).steps == ()
        assert nc.diff(plans[1], plans[0]).steps == ()
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_a_plan_without_one_of_its_tables_is_judged() -> None:
    for folder in sound_folders():
        tables = read_tables(folder)
        for name in tables.tables:
            rest = {key: table for key, table in tables.tables.items() if key != name}
            assert not check_tables(replace(tables, tables=rest)).sound, (folder.name, name)
