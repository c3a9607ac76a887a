"""A coordinator's planner takes an offered plan if it is sound and meant for it, and the first one otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import narrowcast as nc
from adapt.plain_statistics import PlainStatistics
from narrowcast.adapt import timeline
from narrowcast.adapt.settings import settings_of
from narrowcast.adapt.statistics import demand_of
from narrowcast.deliver.parts.effects import PlanWanted
from narrowcast.deliver.processes.overview import Overview
from narrowcast.deliver.processes.planner import FolderPlanner, base_of
from narrowcast.deliver.processes.system import System
from narrowcast.errors import InputError, PlanError
from narrowcast.model import snapshot as snapshots
from narrowcast.model.folder import read_tables, write_tables


def folder_of(path: Path, groups: int) -> Path:
    interest = nc.Interest.from_pairs([0, 1, 2], [0, 1, 2], [3.0, 2.0, 1.0], flow_names=["a", "b", "c"],
                                      user_names=["u", "v", "w"])  # fmt: skip
    return write_tables(nc.channels.plan(interest, groups=groups, sessions=3, method="gf").to_tables(), path)


def wanted(offer: dict[str, object] | None, trying: bool = True) -> PlanWanted:
    return PlanWanted(1, 1, {"u": "s = 'a'"}, {"u": "edge"}, {}, ("edge",), offer, trying)


def groups_of(planner: FolderPlanner, ask: PlanWanted) -> int:
    """How many groups the plan's sessions are in; one more is for what the plan does not know."""
    return len({address.group for address in planner(ask).addresses.values()}) - 1  # type: ignore[union-attr]


def test_an_offer_is_used_if_it_goes_on_from_this_plan(tmp_path: Path) -> None:
    first, other = folder_of(tmp_path / "first", 1), folder_of(tmp_path / "other", 3)
    planner = FolderPlanner.read(first, ["s"])
    assert groups_of(planner, wanted(None)) == 1
    assert groups_of(planner, wanted({"number": 1, "folder": str(other), "base": base_of(first)})) == 3
    assert groups_of(planner, wanted({"number": 2, "folder": str(other), "base": "of another system"})) == 1


def test_an_unsound_plan_is_never_installed(tmp_path: Path) -> None:
    first, other = folder_of(tmp_path / "first", 1), read_tables(folder_of(tmp_path / "other", 3))
    joins = other.tables["subscriber_group"].slice(1)
    bad = write_tables(replace(other, tables={**other.tables, "subscriber_group": joins}), tmp_path / "bad")
    offer = {"number": 1, "folder": str(bad), "base": base_of(first)}
    with pytest.raises(PlanError, match="unsound"):
        FolderPlanner.read(first, ["s"])(wanted(offer))


def test_a_plan_in_force_that_is_gone_is_replaced_by_the_first_one(tmp_path: Path) -> None:
    first = folder_of(tmp_path / "first", 1)
    offer = {"number": 1, "folder": str(tmp_path / "gone"), "base": base_of(first)}
    planner = FolderPlanner.read(first, ["s"])
    assert groups_of(planner, wanted(offer, trying=False)) == 1
    with pytest.raises(InputError, match="no plan here"):
        planner(wanted(offer))


def test_a_demand_has_the_rates_of_now_and_of_the_time_since_the_snapshot_before(tmp_path: Path) -> None:
    kept = PlainStatistics(tmp_path, "s", 10.0, lambda profile, row: row["s"] in profile)
    kept.began = 100.0
    kept.messages.update({"a": 10, "b": 20})
    kept.seen = [(101.0, {"s": "a"})] * 10 + [(101.0, {"s": "b"})] * 20
    one = kept.write({"u": "s = 'a'"}, 110.0)
    kept.messages.update({"b": 40})
    kept.seen += [(119.0, {"s": "b"})] * 40
    kept.write({"u": "s = 'a'", "v": "s = 'b'"}, 120.0)
    two = snapshots.latest(tmp_path)
    assert two is not None
    found = demand_of(two, one)
    assert found.time == 120.0
    assert found.latest is not None
    assert dict(zip(found.latest.flow_names or (), found.latest.rates, strict=True)) == {"a": 0.0, "b": 4.0}
    assert found.interest.rates[1] > found.interest.rates[0] > 0
    assert (found.interest.n_pairs, found.interest.user_names) == (2, ("u", "v"))


def test_the_settings_come_from_the_file_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "up.toml").write_text(
        'nats = "nats://localhost:1"\n[coordinator]\nplan = "plan"\nkey = ["s"]\n'
        '[adapt]\nhorizon = 60\nmoves = 5\nhalf_life = 20\nschema = "s string, p double"\n'
    )
    found = settings_of(System.read(tmp_path / "up.toml"))
    assert (found.policy.horizon_s, found.policy.moves, found.followed.half_life_s) == (60, 5, 20.0)
    assert found.folder == tmp_path / "adapt"
    assert "_time timestamp, s string, p double" in found.followed.columns()
    (tmp_path / "bare.toml").write_text('nats = "nats://localhost:1"\n[adapt]\nhorizn = 1\n')
    with pytest.raises(InputError, match="did you mean horizon"):
        System.read(tmp_path / "bare.toml")
    (tmp_path / "bare.toml").write_text('nats = "nats://localhost:1"\n')
    with pytest.raises(InputError, match="adapt needs a plan to start from"):
        settings_of(System.read(tmp_path / "bare.toml"))


def test_top_is_told_what_adapting_came_to() -> None:
    overview = Overview()
    row = {"time": 1.0, "first": 9.0, "kept": 8.0, "now": 5.0, "best": 5.0, "replanned": 1, "moves": 3, "joins": 2,
           "price": 1.0, "earned": 1.0, "why": "worth moving"}  # fmt: skip
    told = {"name": "adapt", "role": "adapt", "counts": {}, "carried": {}, "epoch": 4}
    assert overview.measured(1.0)["adapting"] is None
    overview.take(told | {"adapting": timeline.summary([row])}, 10.0)
    found = overview.measured(1.0)
    assert found["epoch"] == 4
    assert {name: found["adapting"][name] for name in ("kept", "now", "replans", "moves")} == {
        "kept": 9.0, "now": 5.0, "replans": 1, "moves": 3,
    }  # fmt: skip
