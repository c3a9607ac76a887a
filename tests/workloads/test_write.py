"""Workloads as tables: complete or not there, in every format, with profiles that mean what they should."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.model.intake import read_demand, read_demand_tables, read_measured, read_tree
from narrowcast.model.quarantine import Quarantine
from narrowcast.model.tables import key_in, read_table
from narrowcast.workloads.tables.source import BATCH
from narrowcast.workloads.tables.write import FORMATS, TABLES

COLUMNS = {
    "subscriptions": ("subscriber", "profile"),
    "wishes": ("subscriber", "profile", "since", "until"),
    "messages": ("ts",),
    "flows": ("flow", "rate"),
    "interest": ("flow", "subscriber"),
    "topology": ("u", "v", "cost", "delay"),
    "nodes": ("node", "role"),
    "tree": ("node", "parent"),
    "demand": ("node", "item", "size"),
    "queries": ("query", "client", "profile"),
    "sites": ("site", "gateway", "groups", "sessions"),
    "hosts": ("host", "site", "multicast"),
    "sources": ("flow", "site"),
}
EVERY = pytest.mark.parametrize("kind", TABLES)
SMALL: dict[str, dict[str, Any]] = {
    "market": {"symbols": 2000},
    "overlay": {"brokers": 50},
    "network": {"sites": 3, "symbols": 200},
}


def written(kind: str, folder: Path, **options: Any) -> dict[str, pa.Table]:
    made = nc.workloads.write(kind, folder, **{"messages": 400, "users": 24, **SMALL.get(kind, {}), **options})
    return {name: read_table(table.path, name=name, columns=COLUMNS[name]) for name, table in made.items()}


@EVERY
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_holds_the_same_rows(kind: str, format: str, tmp_path: Path) -> None:
    tables = written(kind, tmp_path / "text", format=format)
    for name, expected in written(kind, tmp_path / "parquet").items():
        found = tables[name]
        assert found.column_names == expected.column_names
        for column in expected.column_names:
            assert found[column].cast(expected[column].type).to_pylist() == expected[column].to_pylist(), column


@EVERY
def test_messages_are_in_order_of_time_and_as_many_as_asked(kind: str, tmp_path: Path) -> None:
    messages = written(kind, tmp_path / "w", messages=2 * BATCH + 7)["messages"]
    assert messages.num_rows == 2 * BATCH + 7
    assert (np.diff(messages["ts"].cast("int64").to_numpy()) >= 0).all()
    assert pq.ParquetFile(tmp_path / "w" / "messages.parquet").num_row_groups == 3


@EVERY
def test_every_profile_parses_and_knows_only_columns_of_the_messages(kind: str, tmp_path: Path) -> None:
    tables = written(kind, tmp_path / "w", messages=500, users=40)
    keys = pc.binary_join_element_wise(tables["subscriptions"]["subscriber"], tables["subscriptions"]["profile"], "|")
    assert len(keys.unique()) == len(keys)
    row = tables["messages"].slice(0, 1).to_pylist()[0]
    for text in tables["subscriptions"]["profile"].unique().to_pylist():
        profile = nc.Profile.parse(text)
        assert len(text) <= 4096
        assert set(profile.attributes) <= set(row), text


def test_market_profiles_are_varied_shared_and_sometimes_match(tmp_path: Path) -> None:
    tables = written("market", tmp_path / "w", users=300, messages=300)
    texts = tables["subscriptions"]["profile"].to_pylist()
    for word in (" IN (", "BETWEEN", "LIKE", "IS NOT NULL", "NOT (", " OR ", "sector = ", "price >", "quantity"):
        assert any(word in text for text in texts), word
    assert len(set(texts)) < len(texts)
    profiles = [nc.Profile.parse(text) for text in sorted(set(texts))[::10]]
    rows = tables["messages"].to_pylist()
    matched = sum(profile.matches(row) for profile in profiles for row in rows)
    assert 0 < matched < 0.2 * len(profiles) * len(rows)


def test_market_tables_use_real_names_and_agree_with_each_other(tmp_path: Path) -> None:
    tables = written("market", tmp_path / "w", messages=5000)
    symbols = set(tables["flows"]["flow"].to_pylist())
    assert {"AAPL", "NVDA", "MMM"} <= symbols
    assert set(tables["messages"]["symbol"].to_pylist()) <= symbols
    nodes = dict(zip(tables["nodes"]["node"].to_pylist(), tables["nodes"]["role"].to_pylist(), strict=True))
    assert {nodes[n] for n in tables["subscriptions"]["node"].to_pylist()} == {"gateway"}
    assert {nodes[n] for n in tables["messages"]["source"].to_pylist()} == {"source"}
    news = tables["messages"].filter(pc.equal(tables["messages"]["kind"], "news"))
    assert news.num_rows > 0
    assert news["headline"].null_count == 0
    assert news["price"].null_count == news.num_rows


def test_a_users_symbols_are_in_its_profiles_and_in_its_interest(tmp_path: Path) -> None:
    tables = written("market", tmp_path / "w")
    flows = np.array(tables["flows"]["flow"].to_pylist())
    wanted: dict[str, set[str]] = {}
    for flow, user in zip(*(tables["interest"][c].to_pylist() for c in ("flow", "subscriber")), strict=True):
        wanted.setdefault(user, set()).add(flow)
    for user in sorted(wanted)[:5]:
        mine = tables["subscriptions"].filter(pc.equal(tables["subscriptions"]["subscriber"], user))
        text = " ".join(p for p in mine["profile"].to_pylist() if p.startswith("symbol"))
        assert {s for s in flows.tolist() if f"'{s}'" in text} == wanted[user]


@pytest.mark.parametrize("kind", ["random", "mechanical"])
def test_profiles_over_topics_match_exactly_the_interest(kind: str, tmp_path: Path) -> None:
    option = {"flows": 200, "share": 0.3} if kind == "random" else {"topics": 200}
    tables = written(kind, tmp_path / "w", **option)
    topics = tables["flows"]["flow"].to_pylist()
    found = {
        (topic, user)
        for user, text in zip(*(tables["subscriptions"][c].to_pylist() for c in ("subscriber", "profile")), strict=True)
        for profile in [nc.Profile.parse(text)]
        for topic in topics
        if profile.matches({"topic": topic})
    }
    expected = set(zip(*(tables["interest"][c].to_pylist() for c in ("flow", "subscriber")), strict=True))
    assert found == expected


def test_the_tables_read_back_as_the_nouns_they_came_from(tmp_path: Path) -> None:
    made = nc.workloads.write("market", tmp_path / "m", messages=10, users=30, symbols=2000, seed=4)
    read = read_demand_tables(made["flows"].path, made["interest"].path, Quarantine(strict=True)).interest
    assert read.n_pairs == nc.workloads.market(2000, users=30, seed=4).n_pairs
    made = nc.workloads.write("tree_demand", tmp_path / "t", messages=10, seed=4)
    tree = read_tree(made["tree"].path)
    leaf, item, _ = read_demand(made["demand"].path, tree, Quarantine(strict=True))
    demand = nc.workloads.tree_demand(seed=4)
    assert np.array_equal(tree.parents, demand.tree.parents)
    assert leaf.size == item.size == demand.wants.sum()


def test_queries_select_the_points_inside_their_rectangles(tmp_path: Path) -> None:
    tables = written("rectangles", tmp_path / "w", messages=2000)
    boxes = np.round(nc.workloads.rectangles(24), 3)
    x, y = (tables["messages"][c].to_numpy() for c in "xy")
    rows = tables["messages"].select(["x", "y"]).to_pylist()
    for box, text in zip(boxes[:5], tables["queries"]["profile"].to_pylist(), strict=False):
        inside = (x >= box[0, 0]) & (x <= box[0, 1]) & (y >= box[1, 0]) & (y <= box[1, 1])
        profile = nc.Profile.parse(text)
        assert [profile.matches(row) for row in rows] == inside.tolist()


def test_progress_is_told_after_every_batch(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    nc.workloads.write(
        "mechanical", tmp_path / "w", messages=BATCH + 1, users=9, topics=30, progress=lambda *a: told.append(a)
    )
    assert [done for table, done, of in told if table == "messages" and of == BATCH + 1] == [BATCH, BATCH + 1]


def test_a_folder_says_how_it_was_made(tmp_path: Path) -> None:
    nc.workloads.write("random", tmp_path / "w", messages=5, users=7, flows=50, share=0.2, seed=3)
    manifest = json.loads((tmp_path / "w" / "workload.json").read_text())
    assert manifest["kind"] == "random"
    assert manifest["arguments"] == {"messages": 5, "users": 7, "flows": 50, "share": 0.2, "seed": 3}
    assert manifest["tables"]["messages"] == {"file": "messages.parquet", "rows": 5, "planted": 0}


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"not empty|workload\.json"):
            nc.workloads.write("random", tmp_path / "mine", overwrite=overwrite)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="out must be a folder, got a file"):
        nc.workloads.write("random", tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written"):
        nc.workloads.write("random", tmp_path / "file" / "below")


def test_an_old_workload_is_replaced_only_when_asked(tmp_path: Path) -> None:
    first = written("mechanical", tmp_path / "w", seed=1)
    with pytest.raises(InputError, match="already exists"):
        written("mechanical", tmp_path / "w", seed=2)
    second = written("mechanical", tmp_path / "w", seed=2, overwrite=True, format="csv")
    assert not second["interest"].equals(first["interest"])
    assert not (tmp_path / "w" / "messages.parquet").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    assert written("rectangles", tmp_path / "w")["queries"].num_rows == 24


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path) -> None:
    def stop(table: str, done: int, of: int | None) -> None:
        if table == "messages":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nc.workloads.write("mechanical", tmp_path / "w", messages=10, progress=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "wrong", "says"),
    [
        ("markt", {}, "did you mean 'market'"),
        ("market", {"format": "xlsx"}, "format must be one of parquet, csv, jsonl, got 'xlsx'"),
        ("market", {"symbls": 3}, "did you mean 'symbols'"),
        ("market", {"messages": -1}, "messages must be at least 0, got -1"),
        ("market", {"bad_rows": 2.0}, r"bad_rows must be .*, got 2"),
        ("tree_demand", {"users": 1}, "users must be at least 2, got 1"),
        ("overlay", {"selectivity": 0}, r"selectivity must be .*, got 0"),
    ],
)
def test_impossible_parameters_are_refused(kind: str, wrong: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        nc.workloads.write(kind, tmp_path / "w", **wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_tables_may_be_empty(format: str, tmp_path: Path) -> None:
    made = nc.workloads.write("market", tmp_path / "w", messages=0, users=5, symbols=30, format=format, bad_rows=0.1)
    assert made["messages"].rows == made["interest"].rows == 0
    assert made["subscriptions"].rows - made["subscriptions"].planted >= 5


@pytest.mark.nightly
def test_ten_million_messages_need_little_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = nc.workloads.write("market", tmp_path / "w", messages=10_000_000)
    assert made["messages"].rows == 10_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kB


@EVERY
@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_says_which_attribute_makes_a_flow(kind: str, format: str, tmp_path: Path) -> None:
    tables = written(kind, tmp_path / "w", format=format)
    key = json.loads((tmp_path / "w" / "manifest.json").read_text())["key"]
    if "flows" not in tables:
        assert key == []
        return
    assert len(key) == 1
    assert set(tables["messages"][key[0]].to_pylist()) <= set(tables["flows"]["flow"].to_pylist())
    assert key_in(tables["flows"].schema) == (tuple(key) if format == "parquet" else None)
    demand = read_measured(tmp_path / "w", Quarantine(strict=True))
    assert (demand.key, demand.folder, set(demand.inputs)) == (tuple(key), tmp_path / "w", {"flows", "interest"})
    assert demand.interest.n_pairs == tables["interest"].num_rows
