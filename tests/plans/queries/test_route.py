"""Queries are delivered as planned: a client takes its set's channel, under `exact` its pieces, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.transport import Multicast, Unicast
from narrowcast.plans.queries.methods.physical import on_channels
from narrowcast.plans.queries.plan import make
from narrowcast.plans.queries.result import QueriesPlan, QueryDemand
from narrowcast.plans.queries.route import profiles, route

PROCEDURES = ("rectangle", "polygon", "exact")


def planned(seed: int, procedure: str, n: int = 40) -> QueriesPlan:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 60, (n, 2))
    boxes = np.stack([low, low + rng.uniform(2, 15, low.shape)], axis=2)
    return make(QueryDemand(boxes, ("x", "y")), procedure=procedure, km=20.0, kt=1.0, ku=0.3)


def everybody(plan: QueriesPlan) -> Subscribers:
    texts = profiles(plan)
    return Subscribers(texts, {name: f"edge {name}" for name in texts})


@pytest.mark.parametrize("procedure", PROCEDURES)
@pytest.mark.parametrize("seed", range(3))
def test_every_query_takes_its_own_set_and_gets_all_it_asks_for(seed: int, procedure: str) -> None:
    plan = planned(seed, procedure)
    routing = route(plan, everybody(plan))
    rng = np.random.default_rng(seed + 100)
    rows = [{"x": float(x), "y": float(y)} for x, y in rng.uniform(0, 75, (400, 2))]
    wanted = {name: nc.Profile.parse(text) for name, text in routing.profiles.items()}
    assert set(wanted) == set(plan.demand.labels)
    for row in rows:
        sent = set(routing.route(row)[1])
        for name, profile in wanted.items():
            assert not profile.matches(row) or sent & set(routing.taken[name]), (name, row)
    if procedure != "exact":
        assert all(len(taken) == 1 for taken in routing.taken.values())


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_what_clients_receive_is_what_the_plan_prices(procedure: str) -> None:
    """Objects on a fine grid, counted where they arrive: sent once a channel, irrelevant ones as priced."""
    plan = planned(7, procedure)
    routing = route(plan, everybody(plan))
    at = np.arange(0.25, 76, 0.5)
    rows = [{"x": float(x), "y": float(y)} for x in at for y in at]
    channels = [set(routing.route(row)[1]) for row in rows]
    boxes = dict(zip(plan.demand.labels, plan.demand.boxes, strict=True))
    irrelevant = 0
    for name, taken in routing.taken.items():
        (x0, x1), (y0, y1) = boxes[name]
        heard = sum(bool(sent & set(taken)) for sent in channels)
        mine = sum(x0 <= row["x"] <= x1 and y0 <= row["y"] <= y1 for row in rows)
        irrelevant += heard - mine
    area = 0.25
    assert irrelevant * area == pytest.approx(plan.terms.amounts.irrelevant, rel=0.05, abs=1.0)
    assert sum(map(len, channels)) * area == pytest.approx(plan.terms.amounts.size, rel=0.05)


def test_a_profile_that_is_no_query_of_the_plan_is_served_by_what_covers_it_or_has_a_channel_of_its_own() -> None:
    plan = make(QueryDemand([[[0, 10]], [[30, 40]]], ("x",)), km=0.0, kt=1.0, ku=1.0)
    texts = {"inside": "x BETWEEN 2 AND 3", "beyond": "x > 5", "also": "x > 5"}
    found = route(plan, Subscribers(texts, dict.fromkeys(texts, "e")))
    assert found.taken == {"inside": (0,), "beyond": (2,), "also": (2,)}
    assert found.route({"x": 7})[1] == (0, 2)
    assert found.route({"x": 20})[1] == (2,)
    fixed = route(on_channels(plan, 1), Subscribers(texts, dict.fromkeys(texts, "e")))
    assert {found.addresses[2], *(fixed.addresses[c] for name in ("beyond", "also") for c in fixed.taken[name])} == {
        Multicast(2, 2), Unicast("beyond"), Unicast("also")
    }  # fmt: skip
