"""Semantic plans follow the log: what sources send now decides the next plan, within the budget of a move."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.adapt.decide import Policy
from narrowcast.adapt.loop import Loop
from narrowcast.adapt.replay import Record
from narrowcast.cli import run
from narrowcast.plans.continued import Budget
from narrowcast.plans.kinds import kind_of
from narrowcast.plans.semantic.demand import OverlayDemand
from narrowcast.plans.semantic.result import SemanticPlan, bandwidth

BROKERS = 40
HOURS = 5


def overlay(rng: np.random.Generator) -> nc.Topology:
    links = [(int(rng.integers(0, i)), i) for i in range(1, BROKERS)]
    links += [(int(u), int(v)) for u, v in rng.integers(0, BROKERS, (BROKERS, 2)) if u != v]
    return nc.Topology(links, names=[f"b{i}" for i in range(BROKERS)])


def day(rng: np.random.Generator, *, collapse: bool) -> pa.Table:
    """A message every ten seconds from b0; after half of the day, if it collapses, all in one narrow range from b9."""
    n = HOURS * 360
    late = np.arange(n) >= n // 2
    anywhere, narrow = rng.integers(0, 1000, n), rng.integers(500, 520, n)
    return pa.table(
        {
            "ts": pa.array(np.arange(n) * 10_000_000, pa.timestamp("us")),
            "source": np.where(late & collapse, "b9", "b0").tolist(),
            "x": np.where(late & collapse, narrow, anywhere),
        }
    )


def planned(rng: np.random.Generator, log: pa.Table, method: str) -> tuple[SemanticPlan, pa.Table]:
    """A plan for the first two hours, with few channels, and the wishes it serves."""
    topology = overlay(rng)
    low = rng.integers(0, 900, 40)
    texts = [f"x >= {a} AND x < {a + w}" for a, w in zip(low, rng.integers(50, 400, 40), strict=True)]
    clients = np.column_stack((np.arange(40), rng.integers(1, BROKERS, 40)))
    names = [f"c{i}" for i in range(40)]
    window = log.slice(0, 720)
    demand = OverlayDemand(topology, texts, clients, window, 0, names)
    plan = nc.plan(demand, "semantic", method=method, max_channels=6)
    nodes = [f"b{broker}" for broker in clients[:, 1]]
    return plan, pa.table({"subscriber": names, "profile": texts, "node": nodes})


def follow(plan: SemanticPlan, record: Record, policy: Policy) -> tuple[list[dict[str, Any]], Loop]:
    demands = list(record.demands(900.0, 1800.0))
    loop = Loop(kind_of("semantic").replan.continued(plan, demands[0]), policy, installed=plan)
    return list(loop.run(demands)), loop


@pytest.mark.parametrize("method", ["search", "semcast"])
def test_a_log_that_collapses_onto_one_range_and_another_source_is_planned_for_again(method: str) -> None:
    rng = np.random.default_rng(5)
    log = day(rng, collapse=True)
    plan, wishes = planned(rng, log, method)
    rows, loop = follow(plan, Record(log, wishes, ()), Policy(join=1.0))
    moved = [row for row in rows if row["replanned"]]
    assert moved, [row["why"] for row in rows]
    assert all(row["time"] > HOURS * 1800 for row in moved), "nothing changed before the log did"
    late, b9 = log.slice(log.num_rows - 300), np.full(300, 9)
    assert isinstance(loop.installed, SemanticPlan)
    assert bandwidth(loop.installed, late, b9) < 0.9 * bandwidth(plan, late, b9)


def test_a_log_that_stays_as_it_was_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    log = day(rng, collapse=False)
    plan, wishes = planned(rng, log, "search")
    rows, _ = follow(plan, Record(log, wishes, ()), Policy(join=1.0))
    assert not any(row["replanned"] for row in rows)


def test_no_move_changes_more_than_its_budget() -> None:
    rng = np.random.default_rng(5)
    log = day(rng, collapse=True)
    plan, wishes = planned(rng, log, "search")
    *_, last = Record(log, wishes, ()).demands(900.0, 1800.0)
    present = kind_of("semantic").replan.continued(plan, last)
    whole = present.change_to(present.anew())
    assert present.improved(Budget()).cost < present.cost
    assert present.improved(Budget(moves=whole.moves)).cost < present.cost
    assert present.improved(Budget(moves=whole.moves - 1)) is present
    assert present.improved(Budget(joins=0)) is present
    rows, _ = follow(plan, Record(log, wishes, ()), Policy(join=1.0, moves=whole.moves // 3))
    assert all(row["moves"] <= whole.moves // 3 for row in rows if row["replanned"])


def test_what_is_past_fades_and_the_newest_messages_decide() -> None:
    rng = np.random.default_rng(5)
    log = day(rng, collapse=True)
    plan, wishes = planned(rng, log, "search")
    demands = list(Record(log, wishes, ()).demands(900.0, 1800.0))
    present = kind_of("semantic").replan.continued(plan, demands[0])
    for demand in demands:
        present = present.under(demand)
        assert present.under(demand).cost == present.cost, "the same demand twice counts once"
    again = present.anew().plan()
    newest, b9 = log.slice(log.num_rows - 80), np.full(80, 9)
    alone = nc.plan(replace(plan.demand, messages=newest, sources=b9), "semantic", method="search", max_channels=6)
    assert bandwidth(again, newest, b9) <= 1.1 * bandwidth(alone, newest, b9)
    assert bandwidth(again, newest, b9) < 0.9 * bandwidth(plan, newest, b9)


def test_the_command_replays_a_log_on_a_semantic_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    log = day(rng, collapse=True)
    plan, wishes = planned(rng, log, "semcast")
    plan.save(tmp_path / "plan")
    pq.write_table(log, tmp_path / "messages.parquet")
    pq.write_table(wishes, tmp_path / "wishes.parquet")
    given = ["--replay", str(tmp_path / "messages.parquet"), "--subscriptions", str(tmp_path / "wishes.parquet")]
    assert run(["adapt", *given, "--plan", str(tmp_path / "plan"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["timeline"]
    assert sum(row["replanned"] for row in rows) >= 1
    assert rows[-1]["now"] < 0.9 * rows[-1]["first"]
