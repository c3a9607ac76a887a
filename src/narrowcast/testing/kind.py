"""The exam of a plan kind: its plans go through every verb that does not need a network."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.model.plan import Plan, Tables
from narrowcast.model.seal import seal
from narrowcast.plans.kind import Kind
from narrowcast.plans.verbs import certify, decoded, diff, judge, load, report_page


def exam_kind(kind: Kind, demands: Iterable[Any], **options: Any) -> None:
    """Plan for each demand and mark what comes out; AssertionError says what is wrong.

    A plan is sound by its own judge, the same for the same seed, and the same after a trip through its tables and
    through a folder. A folder that was changed is refused. It has a report, a routing and a way to itself.

    Parameters
    ----------
    kind : a folder of stages, such as `narrowcast.plans.kinds.KINDS["channels"]`
    demands : what its planner takes, small and of every awkward shape you can think of
    options : for the planner
    """
    for demand in demands:
        plan = kind.plan.make(demand, **options)
        tables = plan.to_tables()
        assert tables.kind == kind.name, f"the tables call themselves {tables.kind!r}"
        _mark_verdict(tables)
        again = kind.plan.make(demand, **options).to_tables()
        assert seal(again) == seal(tables), "same demand and seed, another plan"
        _mark_trip(plan, tables)
        _mark_uses(kind, plan)


def _mark_verdict(tables: Tables) -> None:
    found = judge(tables)
    assert found.sound, f"its own judge calls it unsound: {found.faults[0]}"
    assert found.cost, "its judge recomputes no cost"
    assert found.checked, "its judge does not say what it looked at"
    sealed = certify(tables)
    for name, table in tables.tables.items():
        if table.num_rows:
            bad = replace(sealed, tables={**sealed.tables, name: table.slice(1)})
            assert not judge(bad).sound, f"a row of table {name} is gone and nobody noticed"


def _mark_trip(plan: Plan, tables: Tables) -> None:
    back = replace(decoded(tables), written=None)
    for name, rows in _rows(tables).items():
        assert rows == _rows(back.to_tables()).get(name), f"table {name} is another one after it was read"
    assert back.key == plan.key, "the flow key is lost on the way"
    with tempfile.TemporaryDirectory() as place:
        plan.save(f"{place}/plan")
        read = load(Path(place) / "plan")
        assert seal(read.to_tables()) == seal(tables), "the plan is another one after a trip through a folder"
        assert read.cost == plan.cost, "the cost is another one after a trip through a folder"


def _rows(tables: Tables) -> dict[str, list[str]]:
    """What the tables hold, in no order."""
    return {name: sorted(map(repr, table.to_pylist())) for name, table in tables.tables.items()}


def _mark_uses(kind: Kind, plan: Plan) -> None:
    if kind.has("explain"):
        assert kind.explain.explained(plan.to_tables()), "there is nothing to ask about"
    if kind.has("migrate"):
        assert diff(plan, plan).steps == (), "a plan is not the same as itself"
    if kind.has("report"):
        assert report_page(plan).startswith("<!doctype html>"), "the report is not an HTML page"
    if kind.has("route"):
        texts = dict(kind.route.profiles(plan))
        routing = kind.route.route(plan, Subscribers(texts, dict.fromkeys(texts, "edge")), None)
        assert set(routing.taken) <= set(texts), "the routing serves somebody who is not there"
