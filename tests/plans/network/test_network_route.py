"""A network on trees and relays: whoever wants a flow takes a channel by which it comes, whatever way it goes."""

from __future__ import annotations

from itertools import islice

import pytest

import narrowcast as nc
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.sites import EVERYTHING, relay_subscription
from narrowcast.deliver.transport import Multicast, Overlay
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.network.route import profiles, route
from plans.network.small import small_network

SLOW = pytest.param(4, marks=pytest.mark.slow)


def with_relays(plan: NetworkPlan, texts: dict[str, str], *, dead: tuple[str, ...] = ()) -> Subscribers:
    """Subscribers at an edge of nowhere, and a relay at every gateway but the dead ones."""
    alive = {f"r-{gateway}": gateway for gateway in plan.relay_gateways if gateway not in dead}
    relays = {relay_subscription(node): EVERYTHING for node in alive}
    edges = dict.fromkeys(texts, "edge") | {relay_subscription(node): node for node in alive}
    return Subscribers(texts | relays, edges, alive)


def reaches(routing: Routing, message: dict[str, object], name: str) -> bool:
    """Follow a message as the parts do: from its source by trees to relays, from each into its site."""
    sent = set(routing.route(message)[1])
    here = {c for c in sent if not routing.relay_of(c)}
    for relay in (name for name in routing.taken if name in routing.relayed.values()):
        gateway = routing.gateways[routing.edges[relay]]
        came = [c for c in here & set(routing.taken[relay]) if gateway in routing.addresses[c].brokers]
        if came:
            here |= {c for c in sent if routing.relay_of(c) == relay}
    return bool(here & set(routing.taken[name]))


@pytest.mark.parametrize("seed", [0, 1, 2, 3, SLOW, 5, 6, 7, 8, 9])
def test_each_flow_reaches_each_who_wants_it_from_its_source_by_tree_and_relay_or_straight(seed: int) -> None:
    plan = make(small_network(seed, flows=6), channels=2, price_group=0.0)
    d, texts = plan.demand, profiles(plan)
    routing = Routing.from_bytes(route(plan, with_relays(plan, texts)).to_bytes())
    for k, u in zip(d.interest.flow_of_pair.tolist(), d.interest.users.tolist(), strict=True):
        name, flow = (d.interest.user_names or ())[u], (d.interest.flow_names or ())[k]
        assert reaches(routing, {"symbol": flow}, name), f"{flow} does not come to {name}"
        trees = [a for c in routing.route({"symbol": flow})[1] if isinstance(a := routing.addresses[c], Overlay)]
        assert all(tree.root == plan.relay_gateways[int(d.source[k])] for tree in trees)
    groups: dict[int, str] = {}
    for channel, address in routing.addresses.items():
        if isinstance(address, Multicast):
            relay = routing.relayed[channel]
            assert groups.setdefault(address.group, relay) == relay, "two sites share a group"


@pytest.mark.parametrize("seed", range(3))
def test_what_goes_straight_is_not_relayed(seed: int) -> None:
    plan = make(small_network(seed, flows=6), channels=1)
    d, routing = plan.demand, route(plan, with_relays(plan, profiles(plan)))
    for direct in plan.decisions.direct.tolist():
        flow, site = divmod(direct, d.n_sites)
        channels = routing.route({"symbol": (d.interest.flow_names or ())[flow]})[1]
        there = [c for c in channels if routing.relay_of(c) == relay_subscription(f"r-{plan.relay_gateways[site]}")]
        assert there == []
        source = plan.relay_gateways[int(d.source[flow])]
        assert [c for c in channels if routing.relayed.get(c) == source]


def test_a_site_without_a_relay_is_left_to_the_log_and_the_others_are_not() -> None:
    plan = make(small_network(3, flows=6), channels=2, price_group=0.0)
    d, texts = plan.demand, profiles(plan)
    dead = plan.relay_gateways[int(d.site_of[0])]
    routing = route(plan, with_relays(plan, texts, dead=(dead,)))
    site_of = dict(zip(d.interest.user_names or (), d.site_of.tolist(), strict=True))
    for name in texts:
        assert (name in routing.taken) == (plan.relay_gateways[site_of[name]] != dead)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, SLOW, 5])
def test_who_wants_more_than_the_plan_knew_gets_it_too(seed: int) -> None:
    """A profile that no list of flows covers takes what its site does not know; every flow and any other goes there."""
    plan = make(small_network(seed, flows=6), channels=2, price_group=0.0)
    names = plan.demand.interest.user_names or ()
    routing = route(plan, with_relays(plan, {names[0]: "price > 1"}))
    for flow in (*(plan.demand.interest.flow_names or ()), "never seen"):
        assert reaches(routing, {"symbol": flow, "price": 2}, names[0])


def test_a_stranger_is_served_where_its_edge_is_and_else_left_to_the_log() -> None:
    plan = make(small_network(1))
    there = with_relays(plan, {"stranger": "symbol = 'f0'", "lost": "symbol = 'f0'"})
    at = Subscribers(there.profiles, {**there.edges, "stranger": "x"}, {**there.gateways, "x": plan.relay_gateways[0]})
    routing = route(plan, at)
    assert reaches(routing, {"symbol": "f0"}, "stranger")
    assert "lost" not in routing.taken


@pytest.mark.engines
@pytest.mark.xdist_group("multicast")
def test_a_network_runs_on_one_machine_by_its_relays(tmp_path) -> None:
    plan = make(small_network(1, flows=6), channels=2, price_group=0.0)
    texts = profiles(plan)
    names = plan.demand.interest.flow_names or ()
    rows = [{"symbol": names[n % len(names)], "n": n} for n in range(60)]
    with nc.up(plan, tmp_path / "system") as system, system.connect() as client:
        subscriptions = {name: client.subscribe(text, name=name, timeout=30) for name, text in texts.items()}
        streams = {name: (row for batch in found for row in batch) for name, found in subscriptions.items()}
        wanted = {name: [row for row in rows if repr(row["symbol"]) in texts[name]] for name in texts}
        for _ in range(200):  # from the log until the relays are in the plan
            before = client.ways["log"]
            client.publish(rows)
            for name, stream in streams.items():
                assert list(islice(stream, len(wanted[name]))) == wanted[name]
            if client.ways["log"] == before:
                break
        assert client.ways["log"] == before, "everything came from the log"
        assert client.ways["channel"] + client.ways["unicast"] > 0
