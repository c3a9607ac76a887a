"""The judge of channel plans: it passes every sound plan and catches every cell that matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.faults import channels_cost, channels_faults, differences


def system(seed: int) -> nc.Interest:
    rng = np.random.default_rng(seed)
    n_flows, n_users = int(rng.integers(3, 15)), int(rng.integers(2, 8))
    wanted = rng.random((n_flows, n_users)) < 0.4
    wanted[0, 0] = True
    flow, user = np.nonzero(wanted)
    # Rates of which no sum is another's, so that no change of the plan can leave the cost as it was.
    rates = rng.uniform(1, 2, n_flows)
    names = {"flow_names": [f"f{i}" for i in range(n_flows)], "user_names": [f"u{i}" for i in range(n_users)]}
    return nc.Interest.from_pairs(flow, user, rates, n_users=n_users, **names)


def plans(seed: int) -> list[tuple[Tables, nc.Interest]]:
    interest = system(seed)
    two_level = nc.channels.plan(interest, groups=3, sessions=5, method="gf", seed=seed)
    mixed = nc.channels.hybrid(interest, groups=2, unicast="greedy-pair", seed=seed)
    both = nc.channels.hybrid(interest, groups=2, sessions=4, beta=0.7, weights=(1, 0.5, 0.8), seed=seed)
    made = [two_level.to_tables(), mixed.to_tables(), both.to_tables()]
    return [(plan, interest) for plan in made]


def complaints(plan: Tables, interest: nc.Interest) -> list[str]:
    return channels_faults(plan, interest) + differences(plan.cost, channels_cost(plan, interest))


@pytest.mark.parametrize("seed", range(60))
def test_every_plan_that_the_planner_makes_is_sound_and_costs_what_it_says(seed: int) -> None:
    for plan, interest in plans(seed):
        assert complaints(plan, interest) == []


def with_cell(plan: Tables, name: str, row: int, column: str, value: object) -> Tables:
    table = plan.tables[name]
    values = table[column].to_pylist()
    values[row] = value
    at = table.column_names.index(column)
    changed = table.set_column(at, column, pa.array(values, table[column].type))
    tables: Mapping[str, pa.Table] = {**plan.tables, name: changed}
    return replace(plan, tables=tables)


def other_values(plan: Tables, column: str, present: object, interest: nc.Interest) -> list[object]:
    if column == "flow":
        return [n for n in interest.flow_names or () if n != present] + ["nobody's"]
    if column == "subscriber":
        return [n for n in interest.user_names or () if n != present] + ["nobody"]
    return [n for n in range(6) if n != present]


def is_renaming(before: Tables, after: Tables) -> bool:
    """Giving a session or a group another free number changes nothing that anyone can notice."""
    shape = [{k: frozenset(v) for k, v in _audience(p).items()} for p in (before, after)]
    return sorted(map(sorted, shape[0].values())) == sorted(map(sorted, shape[1].values()))


def _audience(plan: Tables) -> dict[object, set[str]]:
    found: dict[object, set[str]] = {}
    for row in plan.tables["flow_session"].to_pylist():
        found.setdefault(row["session"], set()).add(row["flow"])
    return found


@pytest.mark.slow
def test_any_single_changed_cell_is_caught_unless_it_only_renames() -> None:
    rng = np.random.default_rng(0)
    caught = 0
    for seed in range(40):
        for plan, interest in plans(seed):
            decided = {name: table for name, table in plan.tables.items() if name not in ("flows", "interest")}
            for name, table in decided.items():
                for column in table.column_names:
                    for row in range(table.num_rows):
                        choices = other_values(plan, column, table[column][row].as_py(), interest)
                        value = choices[int(rng.integers(len(choices)))]
                        damaged = with_cell(plan, name, row, column, value)
                        if complaints(damaged, interest):
                            caught += 1
                        else:
                            assert name in ("flow_session", "session_group"), (name, column, value)
                            assert is_renaming(plan, damaged) or _same_joins(plan, damaged, interest)
    assert caught > 1000


def _same_joins(before: Tables, after: Tables, interest: nc.Interest) -> bool:
    """A flow moved between sessions of one audience in one group: the cost and who gets what are the same."""
    return differences(channels_cost(before, interest), channels_cost(after, interest)) == []


def test_a_user_left_out_is_named() -> None:
    plan, interest = plans(1)[0]
    fewer = plan.tables["subscriber_group"].slice(1)
    faults = channels_faults(replace(plan, tables={**plan.tables, "subscriber_group": fewer}), interest)
    lost = plan.tables["subscriber_group"]["subscriber"][0].as_py()
    assert any(fault.startswith(f"subscriber {lost} wants flow") for fault in faults)
