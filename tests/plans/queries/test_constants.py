"""The four constants: where they come from and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from studies.answer_prices import AnswerPrices, worked_constants

import narrowcast as nc
from narrowcast.errors import InputError


def test_the_worked_constants_follow_from_the_prices():
    prices = AnswerPrices()
    assert prices.server_second == pytest.approx(0.003171, abs=5e-7)
    assert prices.network_megabyte == pytest.approx(0.0007956, abs=2e-7)
    assert prices.client_second == pytest.approx(0.0000463, abs=5e-8)
    km, kt, ku = worked_constants().folded
    assert km == pytest.approx(0.003251, abs=5e-7)
    assert kt == pytest.approx(0.000032, abs=1e-6)  # printed with its last digits cut off: 0.0000325
    assert ku == pytest.approx(0.00000463, abs=5e-9)


def test_the_defaults_are_the_base_of_the_study():
    assert nc.queries.Constants().folded == (365e-5, 3.25e-5, 0.16e-5)


def test_the_servers_work_counts_once_per_query_and_once_per_object():
    boxes = [[[0, 2], [0, 1]], [[0, 1], [0, 2]]]
    constants = nc.queries.Constants(km=1, kt=10, ku=100, ka=7, per_query=2, per_object=3)
    apart = nc.queries.cost(boxes, [[0], [1]], constants=constants)
    assert (apart.server, apart.channel, apart.transfer, apart.client) == (7 * (2 * 2 + 3 * 4), 2, 40, 0)
    together = nc.queries.cost(boxes, [[0, 1]], constants=constants)
    assert (together.server, together.channel, together.transfer, together.client) == (7 * (2 + 3 * 4), 1, 40, 400)
    assert together.total == 98 + 1 + 40 + 400
    # Folding the work into K_M and K_T changes no plan and no price.
    km, kt, ku = constants.folded
    assert nc.queries.cost(boxes, [[0, 1]], km=km, kt=kt, ku=ku).total == together.total


def test_the_servers_work_can_make_a_merge_pay():
    boxes = [[[0, 2], [0, 1]], [[0, 1], [0, 2]]]
    assert len(nc.queries.merge(boxes, km=1, kt=1, ku=1).sets) == 2
    assert len(nc.queries.merge(boxes, km=1, kt=1, ku=1, ka=10).sets) == 1


def test_numbers_of_numpy_are_numbers():
    assert nc.queries.merge([[[0, 1]]], km=np.int64(3), kt=np.float32(1), ku=0).cost == 4


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "1"])
@pytest.mark.parametrize("name", ["km", "kt", "ku", "ka"])
def test_a_constant_that_is_negative_or_no_number_is_refused(name, bad):
    with pytest.raises(InputError, match=name):
        nc.queries.merge([[[0, 1]]], **{name: bad})
