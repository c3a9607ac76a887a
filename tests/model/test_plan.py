"""A plan folder is complete or not there, comes back the same, and is refused when damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from narrowcast.errors import InputError
from narrowcast.model.folder import read_tables, write_tables
from narrowcast.model.plan import Tables
from narrowcast.plans.verbs import decoded


def some_plan() -> Tables:
    tables = {
        "flow_session": pa.table({"flow": ["IBM", "MSFT"], "session": [0, 1]}),
        "session_group": pa.table({"session": [0, 1], "group": [0, 0]}),
        "subscriber_group": pa.table({"subscriber": ["desk-1"], "group": [0]}),
        "flows": pa.table({"flow": ["IBM"], "rate": [1.0]}),
        "interest": pa.table({"flow": ["IBM"], "subscriber": ["desk-1"]}),
    }
    cost = {"total": np.float64(3.5), "c1": 1.0}
    return Tables(
        "channels", tables, cost, parameters={"groups": 2}, baselines={"flooding": 9.0}, lower_bound=3.0, seed=7
    )


def test_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    plan = some_plan()
    again = read_tables(write_tables(plan, tmp_path / "plan"))
    assert again.tables == plan.tables
    assert (again.kind, again.cost, again.seed, again.lower_bound) == ("channels", plan.cost, 7, 3.0)


def test_the_same_plan_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = write_tables(some_plan(), tmp_path / "a"), write_tables(some_plan(), tmp_path / "b")
    for path in sorted(first.iterdir()):
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="no space"):
        write_tables(some_plan(), tmp_path / "plan")
    assert os.listdir(tmp_path) == []


def test_an_existing_plan_is_replaced_only_when_asked(tmp_path: Path) -> None:
    target = write_tables(some_plan(), tmp_path / "plan")
    with pytest.raises(InputError, match="already exists"):
        write_tables(some_plan(), target)
    write_tables(some_plan(), target, overwrite=True)
    assert os.listdir(tmp_path) == ["plan"]


def test_a_folder_that_is_no_plan_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"no plan\.json, so it will not be overwritten"):
        write_tables(some_plan(), tmp_path, overwrite=True)


def test_a_changed_table_is_refused(tmp_path: Path) -> None:
    target = write_tables(some_plan(), tmp_path / "plan")
    pq.write_table(pa.table({"session": [0, 1], "group": [0, 1]}), target / "session_group.parquet")
    with pytest.raises(InputError, match=r"session_group\.parquet was changed"):
        read_tables(target)


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    target = write_tables(some_plan(), tmp_path / "plan")
    (target / "session_group.parquet").unlink()
    with pytest.raises(InputError, match=r"session_group\.parquet is missing"):
        read_tables(target)


def test_a_newer_plan_is_refused(tmp_path: Path) -> None:
    target = write_tables(some_plan(), tmp_path / "plan")
    head = json.loads((target / "plan.json").read_text())
    (target / "plan.json").write_text(json.dumps(head | {"format": 99}))
    with pytest.raises(InputError, match="plan format must be at most 2, got 99"):
        read_tables(target)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": "x", "kind": 1, "tables": {}}'])
def test_a_damaged_head_is_refused(tmp_path: Path, text: str) -> None:
    target = write_tables(some_plan(), tmp_path / "plan")
    (target / "plan.json").write_text(text)
    with pytest.raises(InputError, match="damaged"):
        read_tables(target)


def test_a_plan_must_have_the_tables_of_its_kind() -> None:
    with pytest.raises(InputError, match="must have tables"):
        decoded(Tables("channels", {}, {"total": 1.0}))
    with pytest.raises(InputError, match="'magic'"):
        decoded(Tables("magic", {}, {}))
