"""The one judge: it passes every plan that the planners make and catches every single cell that matters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pytest

from evaluate.plans import KINDS, MAKERS, channels_plan
from naive.plan_effect import BROKEN, effect
from narrowcast.errors import InputError, PlanError
from narrowcast.model.folder import read_tables, schema, write_tables
from narrowcast.model.plan import Tables
from narrowcast.plans.verbs import certify, judge

# Untouched plans, and corruptions that matter, of each kind: a thousand of both.
EACH = {"channels": 230, "hybrid": 230, "filters": 230, "queries": 230, "semantic": 80}


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_untouched_plans_pass(kind: str) -> None:
    for seed in range(EACH[kind]):
        plan = MAKERS[kind](seed)
        assert judge(plan).faults == ()
        if seed < 20:
            assert effect(plan) is not BROKEN
            assert judge(certify(plan)).faults == ()


def damaged(plan: Tables, rng: np.random.Generator) -> Tables:
    """The plan with one cell of a table, or one value of plan.json, changed to another of its kind."""
    if rng.random() < 0.15:
        return _head_damaged(plan, rng)
    table = str(rng.choice([name for name in sorted(plan.tables) if plan.tables[name].num_rows]))
    given = plan.tables[table]
    column = str(rng.choice(given.column_names))
    cells = given[column].to_pylist()
    at = int(rng.integers(len(cells)))
    cells[at] = _other(plan, column, given[column].type, cells, at, rng)
    place = given.column_names.index(column)
    changed = given.set_column(place, column, pa.array(cells, given[column].type))
    return replace(plan, tables={**plan.tables, table: changed})


def _other(plan: Tables, column: str, kind: Any, cells: list[Any], at: int, rng: np.random.Generator) -> Any:
    if rng.random() < 0.05:
        return None
    if isinstance(cells[at], bool):
        return not cells[at]
    if isinstance(cells[at], list):
        return cells[at][1:] if cells[at] and rng.random() < 0.5 else sorted({*cells[at], int(rng.integers(5))})
    if cells[at] is None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return pa.scalar(int(rng.integers(7)), kind).as_py()
    if isinstance(cells[at], float) or column == "load":
        return (cells[at] or 1.0) * float(rng.choice([0.5, 0.9, 1.1, 2.0])) + float(rng.choice([0.0, 0.3]))
    if isinstance(cells[at], int):
        return int(rng.choice([n for n in range(7) if n != cells[at]]))
    known = {v for table in plan.tables.values() if column in table.column_names for v in table[column].to_pylist()}
    return str(rng.choice(sorted((known | {"nobody's"}) - {cells[at], None})))


def _head_damaged(plan: Tables, rng: np.random.Generator) -> Tables:
    part = str(rng.choice(["cost", "parameters", "baselines", "lower_bound", "gap"]))
    if part in ("lower_bound", "gap") and plan.kind != "semantic":
        return replace(plan, **{part: (getattr(plan, part) or 0.0) * 1.01 + 0.01}) if plan.gap is not None else plan
    part = part if part in ("cost", "parameters", "baselines") and getattr(plan, part) else "cost"
    values = {name: value for name, value in getattr(plan, part).items() if value is not None}
    name = str(rng.choice(sorted(values)))
    if isinstance(values[name], dict):
        term = str(rng.choice(sorted(values[name])))
        values[name] = {**values[name], term: values[name][term] * 1.1 + 0.01}
    elif isinstance(values[name], list) and isinstance(values[name][0], str):
        values[name] = values[name][::-1]
    elif isinstance(values[name], list):
        values[name] = [values[name][0] * 1.5, *values[name][1:]]
    elif isinstance(values[name], str):
        values[name] = str(rng.choice(["delay", "exact", "rectangle", "counts", "?"]))
    elif isinstance(values[name], int):
        values[name] += int(rng.choice([-2, -1, 1]))
    else:
        values[name] = values[name] * float(rng.choice([0.5, 1.1])) + float(rng.choice([0.0, 0.01]))
    return replace(plan, **{part: {**getattr(plan, part), **values}})


def corruptions(kind: str) -> Iterator[tuple[Tables, Tables]]:
    rng = np.random.default_rng([7, *kind.encode()])
    for seed in range(10**6):
        plan = MAKERS[kind](seed % EACH[kind])
        for _ in range(4):
            bad = damaged(plan, rng)
            if bad != plan:
                yield plan, bad


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_single_changes_that_matter_are_caught_from_the_definitions_alone(kind: str) -> None:
    mattered = 0
    for plan, bad in corruptions(kind):
        if effect(bad) == effect(plan):
            continue
        mattered += 1
        assert not judge(bad).sound, (kind, mattered, _what(plan, bad))
        if mattered == EACH[kind]:
            return


@pytest.mark.parametrize("kind", KINDS)
def test_any_single_change_of_a_plan_that_was_certified_is_caught_whether_it_matters_or_not(kind: str) -> None:
    for count, (plan, bad) in enumerate(corruptions(kind)):
        if count == 100:
            return
        assert not judge(replace(bad, checks=certify(plan).checks)).sound, _what(plan, bad)


def _what(plan: Tables, bad: Tables) -> Any:
    tables = [(n, t.to_pylist(), bad.tables[n].to_pylist()) for n, t in plan.tables.items() if t != bad.tables[n]]
    return tables or (plan.cost, bad.cost, plan.parameters, bad.parameters, plan.gap, bad.gap)


@pytest.mark.parametrize("kind", KINDS)
def test_a_certified_plan_comes_back_from_disk_sealed_and_as_its_schema_says(kind: str, tmp_path: Any) -> None:
    for seed in range(5):
        folder = write_tables(certify(MAKERS[kind](seed)), tmp_path / f"{seed}")
        found = judge(read_tables(folder))
        assert found.sound
        assert "nothing was changed since the plan was checked" in found.checked
        jsonschema.validate(json.loads((folder / "plan.json").read_text()), schema())


def test_a_flipped_bit_in_any_table_on_disk_is_refused(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    for kind in KINDS:
        folder = write_tables(certify(MAKERS[kind](7)), tmp_path / kind)
        for path in sorted(folder.glob("*.parquet")):
            whole = path.read_bytes()
            at = int(rng.integers(len(whole)))
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :])
            with pytest.raises(InputError, match=f"{path.name} was changed after the plan was written"):
                read_tables(folder)
            path.write_bytes(whole)
        assert judge(read_tables(folder)).sound


def test_an_unsound_plan_is_not_certified() -> None:
    plan = channels_plan(3)
    fewer = {**plan.tables, "subscriber_group": plan.tables["subscriber_group"].slice(1)}
    with pytest.raises(PlanError, match="unsound and was not written: subscriber"):
        certify(replace(plan, tables=fewer))


LIMITS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"joins_per_subscriber": 2}, {"joins_per_subscriber": 1}, "the limit is 1"),
    ({"rate_per_group": 100.0}, {"rate_per_group": 0.5}, "the limit is 0.5"),
    ({"pinned": {0: 1}}, {"pinned": {"f0": 0}}, "is pinned to group 0"),
    ({"apart": [(0, 1)]}, {"apart": [["f0", "f2"], ["f0", "f1"], ["f0", "f3"]]}, "must be apart"),
]


@pytest.mark.parametrize(("given", "tighter", "says"), LIMITS)
def test_limits_are_kept_in_the_plan_and_a_broken_one_is_named(
    given: dict[str, Any], tighter: dict[str, Any], says: str
) -> None:
    from evaluate.plans import some_interest

    interest = some_interest(np.random.default_rng(5), n_flows=12, n_users=6)
    plan = channels_plan(5, interest, **given)
    assert judge(plan).sound
    assert set(plan.parameters["limits"]) == set(given)
    broken = replace(plan, parameters={**plan.parameters, "limits": tighter})
    assert any(says in fault for fault in judge(broken).faults)
