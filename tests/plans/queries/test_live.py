"""Queries come and go: nobody is ever uncovered, and the plan stays good."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.query_cost import plan_cost
from narrowcast.errors import InputError
from plans.queries.rectangles import BASE


@given(st.integers(0, 2**32))
def test_after_every_change_each_query_is_in_exactly_one_set_and_the_cost_is_the_definitions(seed):
    rng = np.random.default_rng(seed)
    boxes = nc.workloads.rectangles(n=12, seed=seed)
    live = nc.queries.LiveQueries(boxes[:4], **BASE)
    there = dict(enumerate(boxes[:4]))
    for box in boxes[4:]:
        there[live.add(box)] = box
        if rng.random() < 0.4:
            gone = int(rng.choice(list(there)))
            live.remove(gone)
            del there[gone]
        assert sorted(q for members in live.sets for q in members) == sorted(there) == list(live.queries)
        assert live.cost == pytest.approx(plan_cost(there, live.sets, **BASE), rel=1e-9)


def test_a_plan_that_grew_one_by_one_is_about_as_good_as_one_made_at_once():
    for seed in range(5):
        boxes = nc.workloads.rectangles(n=100, seed=seed)
        live = nc.queries.LiveQueries(**BASE)
        for box in boxes:
            live.add(box)
        whole = nc.queries.merge(boxes, **BASE)
        assert live.cost <= whole.cost + 0.1 * (whole.baseline - whole.cost)
        for query in range(0, 100, 2):
            live.remove(query)
        left = nc.queries.merge(boxes[1::2], **BASE)
        assert live.cost <= left.cost + 0.15 * (left.baseline - left.cost)
        live.restart()
        assert live.cost <= left.cost * (1 + 1e-9)
        assert not live.restart()


def test_a_new_query_can_bring_two_sets_together_and_its_leaving_part_them():
    live = nc.queries.LiveQueries([[[0, 1]], [[2, 3]]], km=1, kt=1, ku=0.1)
    assert live.sets == ((0,), (1,)) or live.sets == ((0, 1),)
    live = nc.queries.LiveQueries([[[0, 4]], [[5, 9]]], km=0.5, kt=1, ku=0.01)
    assert live.sets == ((0,), (1,))
    bridge = live.add([[0, 9]])
    assert live.sets == ((0, 1, 2),)
    live.remove(bridge)
    assert live.sets == ((0,), (1,))


@pytest.mark.parametrize("procedure", ["polygon", "exact"])
def test_every_procedure_can_change(procedure):
    live = nc.queries.LiveQueries(procedure=procedure, km=1e-3, kt=3e-5, ku=1e-6)
    boxes = nc.workloads.rectangles(n=8, seed=4)
    for box in boxes:
        live.add(box)
    assert live.cost == pytest.approx(
        nc.queries.cost(boxes, live.sets, procedure=procedure, km=1e-3, kt=3e-5, ku=1e-6).total
    )
    for query in range(8):
        live.remove(query)
    assert live.sets == ()
    assert live.cost == 0


def test_what_is_not_there_cannot_go_and_a_box_of_other_dimensions_cannot_come():
    live = nc.queries.LiveQueries([[[0, 1]]])
    with pytest.raises(InputError, match="query 3"):
        live.remove(3)
    with pytest.raises(InputError, match=r"box needs .* dimensions, got 2"):
        live.add([[0, 1], [0, 1]])
    assert live.box(0).tolist() == [[0, 1]]
