"""A sixth kind of plan is one folder and one line: it goes through every verb, and is delivered."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.errors import PlanError, UnsupportedError
from narrowcast.plans.kind import Kind
from narrowcast.plans.kinds import KINDS
from narrowcast.testing import exam_kind

THE_LINE = 'KINDS["broadcast"] = Kind("broadcast", "plans.sixth.broadcast")'


@pytest.fixture(autouse=True)
def sixth(monkeypatch: pytest.MonkeyPatch) -> Kind:
    kind = Kind("broadcast", "plans.sixth.broadcast")
    monkeypatch.setitem(KINDS, "broadcast", kind)
    return kind


def demand(seed: int = 0) -> nc.Demand:
    rng = np.random.default_rng(seed)
    flow, user = np.nonzero(rng.random((6, 4)) < 0.5)
    names = {"flow_names": [f"S{i}" for i in range(6)], "user_names": [f"desk-{i}" for i in range(4)]}
    return nc.Demand(nc.Interest.from_pairs(flow, user, rng.uniform(1, 2, 6), **names), key=("symbol",))


def test_it_passes_the_public_exam(sixth: Kind) -> None:
    exam_kind(sixth, [demand(seed) for seed in range(5)], price=2.0)


def test_every_verb_takes_it(tmp_path: Path) -> None:
    plan = nc.plan(demand(), "broadcast", price=2.0)
    plan.save(tmp_path / "plan")
    again = nc.load(tmp_path / "plan")
    assert again.check().sound
    assert again.cost == plan.cost
    assert again.key == ("symbol",)
    assert "like everybody" in again.explain(subscriber="desk-1").headline
    assert "everybody gets everything" in again.report(tmp_path / "report.html").read_text()
    assert again.diff(nc.plan(demand(1), "broadcast")).steps == ()
    assert "plan_members.csv" in again.export("csv", tmp_path / "csv").texts
    with pytest.raises(UnsupportedError, match="whatif does not support broadcast plans yet"):
        again.whatif(price=[1.0])


def test_its_judge_keeps_an_unsound_plan_off_the_disk(tmp_path: Path) -> None:
    from dataclasses import replace

    plan = nc.plan(demand(), "broadcast")
    tables = plan.to_tables()
    fewer = {**tables.tables, "members": tables.tables["members"].slice(1)}
    with pytest.raises(PlanError, match="wants something and is not a member"):
        replace(plan, written=replace(tables, tables=fewer)).save(tmp_path / "plan")
    assert not (tmp_path / "plan").exists()


@pytest.mark.engines
@pytest.mark.xdist_group("multicast")
def test_it_is_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of a system are told of the kind by the one line, as they would be by `kinds.py`."""
    site = tmp_path / "site"
    site.mkdir()
    imports = "from narrowcast.plans.kind import Kind\nfrom narrowcast.plans.kinds import KINDS\n"
    (site / "sitecustomize.py").write_text(f"{imports}\n{THE_LINE}\n")
    tests = Path(__file__).parents[1]
    paths = [str(site), str(tests), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    plan = nc.plan(demand(), "broadcast")
    with nc.up(plan, tmp_path / "system") as system, system.connect() as client:
        wanted = client.subscribe("symbol = 'S1' AND price > 100", timeout=20)
        client.publish([{"symbol": "S1", "price": price} for price in (99, 101, 102)])
        got = [row["price"] for row in islice((row for batch in wanted for row in batch), 2)]
    assert got == [101, 102]
