"""Plan folders of format 1, written before plans kept their flow key, are still read, judged and used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import narrowcast as nc
from narrowcast.deliver.processes.planner import FolderPlanner
from narrowcast.errors import InputError
from narrowcast.plans.verbs import report_page

FOLDERS = Path(__file__).with_name("format_1")
KINDS = {name: name for name in ("channels", "filters", "queries", "semantic")} | {"hybrid": "channels"}


@pytest.mark.parametrize("name", KINDS)
def test_an_old_folder_is_read_and_found_as_sound_as_it_was_sealed(name: str) -> None:
    head = json.loads((FOLDERS / name / "plan.json").read_text())
    assert (head["format"], head["kind"], "key" in head) == (1, name, False)
    found = nc.check(FOLDERS / name)
    assert found.sound, found.faults
    assert "nothing was changed since the plan was checked" in found.checked
    plan = nc.load(FOLDERS / name)
    assert (plan.kind, plan.key) == (KINDS[name], ())
    assert report_page(plan)


@pytest.mark.parametrize("name", KINDS)
def test_an_old_plan_is_saved_again_as_it_was_and_read_as_the_same(name: str, tmp_path: Path) -> None:
    plan = nc.load(FOLDERS / name)
    again = nc.load(tmp_path / "plan") if plan.save(tmp_path / "plan") else plan
    assert again.to_tables().tables.keys() == plan.to_tables().tables.keys()
    assert all(table.equals(again.to_tables().tables[t]) for t, table in plan.to_tables().tables.items())
    assert plan.diff(again).steps == ()


def test_limits_of_an_old_plan_keep_their_meaning() -> None:
    plan = nc.load(FOLDERS / "channels")
    assert plan.limits.joins_per_subscriber == 3
    assert plan.whatif(joins_per_subscriber=[2], workers=1).present["joins_per_subscriber"] == 3


@pytest.mark.parametrize("name", ["channels", "hybrid"])
def test_an_old_plan_of_flows_is_not_put_on_the_wire_without_a_key(name: str) -> None:
    with pytest.raises(InputError, match=r"does not say which attributes of a message make its flow.*--key symbol"):
        FolderPlanner.read(FOLDERS / name)
    assert FolderPlanner.read(FOLDERS / name, ["symbol"]).plan.key == ("symbol",)
