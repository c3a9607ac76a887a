"""On one machine every site has groups of its own; nobody who wants a flow is left without a way to it."""

from __future__ import annotations

from itertools import islice

import pytest

import narrowcast as nc
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.transport import Multicast, Unicast
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.route import profiles, route
from plans.network.small import small_network


@pytest.mark.parametrize("seed", [0, 1, 2, 3, pytest.param(4, marks=pytest.mark.slow), 5, 6, 7, 8, 9])
def test_each_flow_reaches_each_who_wants_it_by_a_channel_they_take(seed: int) -> None:
    plan = make(small_network(seed, flows=6), channels=2, price_group=0.0)
    d, texts = plan.demand, profiles(plan)
    routing = route(plan, Subscribers(texts, dict.fromkeys(texts, "edge")))
    for k, u in zip(d.interest.flow_of_pair.tolist(), d.interest.users.tolist(), strict=True):
        name = (d.interest.user_names or ())[u]
        sent = routing.route({"symbol": (d.interest.flow_names or ())[k]})[1]
        assert set(sent) & set(routing.taken[name]), f"{name} takes nothing that carries f{k}"
    groups = {}
    for s, names in _takers(plan, routing).items():
        for name in names:
            for channel in routing.taken[name]:
                address = routing.addresses[channel]
                if isinstance(address, Multicast):
                    assert groups.setdefault(address.group, s) == s, "two sites share a group"
                else:
                    assert isinstance(address, Unicast)


@pytest.mark.parametrize("seed", range(6))
def test_who_wants_more_than_the_plan_knew_gets_it_too(seed: int) -> None:
    """A profile that no list of flows covers takes what its site does not know; every flow and any other goes there."""
    plan = make(small_network(seed, flows=6), channels=2, price_group=0.0)
    names = plan.demand.interest.user_names or ()
    routing = route(plan, Subscribers({names[0]: "price > 1"}, {names[0]: "edge"}))
    if names[0] not in routing.taken:
        return  # left to the log, which has everything
    for flow in (*(plan.demand.interest.flow_names or ()), "never seen"):
        assert set(routing.route({"symbol": flow, "price": 2})[1]) & set(routing.taken[names[0]])


def test_a_stranger_is_left_to_the_log() -> None:
    plan = make(small_network(1))
    assert "stranger" not in route(plan, Subscribers({"stranger": "symbol = 'f0'"}, {"stranger": "edge"})).taken


def _takers(plan, routing) -> dict[int, list[str]]:
    names = plan.demand.interest.user_names or ()
    found: dict[int, list[str]] = {}
    for u, name in enumerate(names):
        if name in routing.taken:
            found.setdefault(int(plan.demand.site_of[u]), []).append(name)
    return found


@pytest.mark.engines
@pytest.mark.xdist_group("multicast")
def test_it_is_delivered_on_one_machine(tmp_path) -> None:
    plan = make(small_network(3, flows=6), channels=2, price_group=0.0)
    with nc.up(plan, tmp_path / "system") as system, system.connect() as client:
        wanted = client.subscribe("symbol = 'f0' AND price > 100", timeout=30)
        client.publish([{"symbol": "f0", "price": price} for price in (99, 101, 102)])
        got = [row["price"] for row in islice((row for batch in wanted for row in batch), 2)]
    assert got == [101, 102]
