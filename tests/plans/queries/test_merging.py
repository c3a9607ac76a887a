"""What every method must keep: cover, cost from the definition, inputs untouched, same seed same plan."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import narrowcast as nc
import narrowcast.plans.queries
from naive.query_cost import plan_cost
from narrowcast.errors import InputError
from plans.queries.rectangles import BASE, local


@pytest.mark.parametrize("method", nc.queries.METHODS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_method_covers_all_queries_and_prices_by_the_definition(method, d):
    boxes = local(4, 1, d)
    before = boxes.copy()
    k = dict(BASE) if d == 2 else {"km": 1.0, "kt": 1e-3, "ku": 1e-5}
    plan = nc.queries.merge(boxes, method, seed=3, **k)
    assert sorted(q for members in plan.sets for q in members) == [0, 1, 2, 3]
    assert plan.cost == pytest.approx(plan_cost(boxes, plan.sets, **k), rel=1e-9)
    assert plan.cost == pytest.approx(nc.queries.cost(boxes, plan.sets, **k).total, rel=1e-9)
    assert plan.baseline == pytest.approx(plan_cost(boxes, [[q] for q in range(4)], **k), rel=1e-9)
    assert plan.cost <= plan.baseline
    for members, box in zip(plan.sets, plan.boxes, strict=True):
        assert (box[:, 0] == boxes[list(members), :, 0].min(axis=0)).all()
        assert (box[:, 1] == boxes[list(members), :, 1].max(axis=0)).all()
    assert (boxes == before).all()
    assert plan.sets == nc.queries.merge(boxes, method, seed=3, **k).sets
    assert plan.method == method


@pytest.mark.parametrize("method", nc.queries.METHODS)
def test_no_queries_and_one_query_are_plans_too(method):
    assert nc.queries.merge(np.zeros((0, 2, 2)), method).sets == ()
    assert nc.queries.merge([], method).cost == 0
    assert nc.queries.merge([[[0, 1], [0, 1]]], method).sets == ((0,),)


def test_a_query_in_two_sets_is_heard_twice():
    boxes = [[[0, 1]], [[1, 2]], [[2, 3]]]
    assert nc.queries.cost(boxes, [[0, 1], [1, 2]], km=1, kt=1, ku=1).amounts == (2, 4, 4)


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([[1, 2]], "shape"),
        ([[[2, 1]]], r"boxes\[0, 0\] must be .*, got \(2.0, 1.0\)"),
        ([[[0, 1]], [[0, float("nan")]]], r"boxes\[1, 0\]"),
        ([[["a", "b"]]], "numbers"),
        (np.zeros((2, 0, 2)), "shape"),
    ],
)
def test_boxes_that_are_none_are_refused_in_one_line(boxes, message):
    with pytest.raises(InputError, match=message) as error:
        nc.queries.merge(boxes)
    assert "\n" not in str(error.value)


def test_an_unknown_method_names_the_known_ones():
    with pytest.raises(InputError, match="partition, exhaustive, pair, directed, cluster"):
        nc.queries.merge([[[0, 1]]], "best")


@pytest.mark.parametrize("sets", [[[0]], [[0, 1], []], [[0, 1, 2]], [[-1, 0, 1]]])
def test_a_plan_that_leaves_a_query_out_or_names_an_unknown_one_is_refused(sets):
    with pytest.raises(InputError, match=r"sets|query"):
        nc.queries.cost([[[0, 1]], [[0, 1]]], sets)


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(narrowcast.plans.queries.__path__)])
def test_the_examples_in_docstrings_run(name):
    module = importlib.import_module(f"narrowcast.plans.queries.{name}")
    assert doctest.testmod(module, extraglobs={"np": np}).failed == 0
