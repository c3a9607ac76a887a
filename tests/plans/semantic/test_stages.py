"""What every verb makes of a semantic plan, as it was planned and as it comes back from its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from naive import semantic_system as naive
from naive.measured import measured
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Overlay
from narrowcast.errors import UnsupportedError
from narrowcast.evaluate.whatif import sweep
from narrowcast.model.demand import Demand
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.semantic.api import METHODS, OverlayDemand, SemanticPlan, Statistics
from narrowcast.plans.semantic.explain import explained
from narrowcast.plans.semantic.judge import BOUNDED, COLUMNS, OPTIONAL, checked, cost, faults
from narrowcast.plans.semantic.migrate import renumbered, ways
from narrowcast.plans.semantic.replan import continued
from narrowcast.plans.semantic.report import report
from narrowcast.plans.semantic.route import profiles, route
from narrowcast.plans.semantic.whatif import family, quick

NOBODY = nc.Interest.from_pairs([0], [0], [1.0])


def planned(method: str, seed: int = 3, **more: object) -> SemanticPlan:
    rng = np.random.default_rng(seed)
    ring = nc.Topology([*((i, (i + 1) % 8) for i in range(8)), (0, 4)], names=[f"b{i}" for i in range(8)])
    window = pa.table({"x": rng.integers(0, 20, 60), "y": rng.integers(0, 4, 60)})
    wishes = [f"x BETWEEN {a} AND {a + 6}" for a in (0, 3, 6, 9, 12)]
    clients = np.column_stack((rng.integers(0, 5, 12), rng.integers(1, 8, 12)))
    names = [f"c{i}" for i in range(12)]
    return nc.semantic.make(OverlayDemand(ring, wishes, clients, window, 0, names=names), method, seed=seed, **more)


def held(plan: SemanticPlan) -> tuple[dict[str, str], dict[str, str]]:
    """The profile's text and the gateway of each client."""
    rows = list(zip(plan.client_names, plan.system.clients.tolist(), strict=True))
    return {n: str(plan.system.profiles[p]) for n, (p, _) in rows}, {n: plan.broker_names[g] for n, (_, g) in rows}


def both(plan: SemanticPlan) -> list[SemanticPlan]:
    return [plan, SemanticPlan.from_tables(plan.to_tables())]


@pytest.mark.parametrize("method", METHODS)
def test_the_judge_finds_a_plan_sound_and_says_what_it_looked_at(method: str) -> None:
    tables = planned(method).to_tables()
    tables.require(COLUMNS, optional=OPTIONAL)
    assert faults(tables) == []
    assert cost(tables)[BOUNDED] == pytest.approx(tables.cost["total"])
    assert any("gateway" in line for line in checked(tables))


@pytest.mark.parametrize("method", METHODS)
def test_a_report_and_explanations_are_the_same_from_the_folder(method: str) -> None:
    one, two = both(planned(method))
    assert report(one, None) == report(two, None)
    tables = one.to_tables()
    known = explained(tables)
    assert "channel 0" in known["channel"](tables, 0).headline
    assert known["subscriber"](tables, "c3").cost == pytest.approx(tables.cost["total"])
    assert known["node"](tables, "b1").headline.startswith("b1 serves")


def test_a_diff_keeps_the_numbers_of_trees_that_stay() -> None:
    one, two = planned("semcast"), planned("semcast", max_channels=3)
    assert ways(one.to_tables()).wishes
    kept = renumbered(one.to_tables(), one.to_tables())
    assert kept.tables["channels"].equals(one.to_tables().tables["channels"])
    new = SemanticPlan.from_tables(renumbered(two.to_tables(), one.to_tables()))
    shape = {c.number: (c.rendezvous, c.gateways, c.edges.tolist()) for c in one.channels}
    for channel in new.channels:
        mine = (channel.rendezvous, channel.gateways, channel.edges.tolist())
        assert channel.number not in shape or shape[channel.number] == mine
    assert faults(new.to_tables()) == []


@pytest.mark.parametrize("method", ["search", "merge"])
def test_whatif_plans_again_for_the_kept_messages(method: str) -> None:
    for plan in both(planned(method)):
        found = sweep(plan, family, {"max_channels": [1, 2, 4]}, workers=1)
        assert [p.cost for p in found.points] == sorted((p.cost for p in found.points), reverse=True)
        assert found.points[-1].settings["max_channels"] == plan.n_channels
        assert found.present["cost"] == pytest.approx(plan.cost.full)
        bounded = sweep(plan, family, {"latency_bound": [1, 20]}, workers=1)
        assert "latency" in bounded.points[0].failed
        assert bounded.points[-1].cost == pytest.approx(plan.cost.full)
        assert quick(plan) is None


def test_whatif_needs_messages_with_their_source(tmp_path: Path) -> None:
    small = naive.small_system(11)
    found = Statistics.from_folder(measured(tmp_path / "some", small.profiles, small.window), 0)
    plan = nc.semantic.plan(small.topology, small.profiles, small.clients, found)
    with pytest.raises(UnsupportedError, match="whatif needs messages with their source"):
        family(plan).present()
    with pytest.raises(UnsupportedError, match="does not hold messages with their source"):
        continued(plan, Demand(NOBODY))


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_is_gone_on_from_as_it_is(method: str) -> None:
    for plan in both(planned(method)):
        now = continued(plan, Demand(NOBODY))
        assert now.plan().cost == pytest.approx(plan.cost)
        assert now.cost == pytest.approx(plan.cost.full / 60)
        assert now.change_to(now.improved(Budget())) == Change(0, 0, 0.0)
        for a, b in zip(now.plan().channels, plan.channels, strict=True):
            assert (a.gateways, a.rendezvous, a.edges.tolist()) == (b.gateways, b.rendezvous, b.edges.tolist())


@pytest.mark.parametrize("method", METHODS)
def test_clients_that_came_are_served_under_their_names_and_those_who_left_are_not(method: str) -> None:
    plan = planned(method)
    texts, at = held(plan)
    staying = {name: f"( {text.replace('BETWEEN', 'between')} )" for name, text in list(texts.items())[4:]}
    nodes = {**{name: at[name] for name in staying}, "new": "b2", "stranger": "nowhere"}
    messages = plan.demand.messages.append_column("_broker", pa.array(["b0"] * 60))
    later = Demand(NOBODY, profiles={**staying, "new": "y > 2", "stranger": "y > 1"}, nodes=nodes, messages=messages)
    present = continued(plan, later)
    for made in (present.plan(), present.anew().plan()):
        assert set(made.client_names) == {*staying, "new"}
        here = dict(zip(made.client_names, made.system.clients.tolist(), strict=True))
        assert made.system.topology.names[here["new"][1]] == "b2"
        assert str(made.system.profiles[here["new"][0]]) == "y > 2"
        wishes = [str(profile) for profile in made.system.profiles]
        assert all(wishes[here[name][0]] == texts[name] for name in staying), (
            "a text written otherwise is the same wish"
        )
        clients = [tuple(row) for row in made.system.clients.tolist()]
        table = plan.demand.messages
        assert naive.missed(made, clients, list(made.system.profiles), table, 0) == []
    assert faults(present.anew().plan().to_tables()) == []


def test_bounds_are_kept_again_from_the_next_reorganisation_on() -> None:
    plan = planned("semcast", latency_bound=4.0)
    texts, nodes = held(plan)
    later = Demand(NOBODY, profiles={**texts, "new": "x > 18"}, nodes={**nodes, "new": "b2"})
    made = continued(plan, later).anew().plan()
    assert np.asarray(made.demand.bounds).tolist() == [4.0] * 13
    assert made.parameters == plan.parameters
    assert faults(made.to_tables()) == []


@pytest.mark.parametrize("method", METHODS)
def test_the_network_obeys_the_plan_whatever_number_of_profiles_a_channel_has(method: str) -> None:
    overlay = nc.Topology([(0, 1), (1, 2), (1, 3)])
    wishes = [f"x BETWEEN {3 * i} AND {3 * i + 1}" for i in range(20)]
    clients = [(i, 2 + i % 2) for i in range(20)]
    window = pa.table({"x": list(range(60))})
    made = nc.semantic.plan(overlay, wishes, clients, window, 0, method, 2)
    numbered = replace(made, channels=tuple(replace(c, number=c.number + 7) for c in made.channels))
    who = Subscribers(
        {f"c{i}": text for i, text in enumerate(wishes)},
        {f"c{i}": f"e{i}" for i in range(20)},
        {f"e{i}": str(g) for i, (_, g) in enumerate(clients)},
    )
    for plan in both(numbered):
        assert profiles(plan) == {}
        routing = route(plan, who, None)
        assert set(routing.taken) == set(who.profiles)
        assert set(routing.addresses) == {channel.number for channel in plan.channels}
        rows, cols = plan.route(window, 0)
        for i, message in enumerate(window.to_pylist()):
            sent = {plan.channels[c].number for c in cols[rows == i]}
            assert set(routing.route(message)[1]) == sent
            for name, text in who.profiles.items():
                if nc.Profile.parse(text).matches(message):
                    assert sent & set(routing.taken[name])


@pytest.mark.parametrize("method", ["search", "merge", "semcast", "noise-merge"])
def test_documents_travel_by_the_paths_that_find_something_in_them(method: str) -> None:
    star = nc.Topology([(0, 1), (0, 2), (0, 3)])
    wanted = ["//order", "/book/order[@v = 'N']", "x > 3"]
    window = pa.table({"xml": ["<order/>", "<book><order v='N'/></book>", None], "x": [1, 2, 5]})
    plan = nc.semantic.plan(star, wanted, [(0, 1), (1, 2), (2, 3)], window, 0, method)
    names = plan.broker_names
    who = Subscribers(
        dict(zip("abc", wanted, strict=True)),
        {"a": "ea", "b": "eb", "c": "ec"},
        {"ea": names[1], "eb": names[2], "ec": names[3]},
    )
    routing = Routing.from_bytes(route(plan, who, None).to_bytes())
    for message in window.to_pylist():
        sent = set(routing.route(message)[1])
        for name, text in who.profiles.items():
            if nc.Profile.parse(text).matches(message):
                assert sent & set(routing.taken[name]), (method, name, message)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bound", [None, 6.0])
def test_a_newcomer_at_a_gateway_that_the_plan_does_not_know_joins_a_channel(method: str, bound: float | None) -> None:
    ring = nc.Topology([(i, (i + 1) % 8) for i in range(8)], names=[f"b{i}" for i in range(8)])
    window = pa.table({"x": list(range(20)) * 3})
    wishes, clients = ["x < 8", "x BETWEEN 5 AND 12"], [(0, 1), (1, 2)]
    bounds = None if bound is None else np.full(2, bound)
    demand = OverlayDemand(ring, wishes, clients, window, 0, names=("ann", "bob"), bounds=bounds)
    plan = nc.semantic.make(demand, method)
    profiles = {"ann": "x < 8", "bob": "x BETWEEN 5 AND 12", "cat": "x = 3", "dan": "x > 15", "eve": "x = 1"}
    edges = {name: f"e-{name}" for name in profiles}
    at = {"e-ann": "b1", "e-bob": "b2", "e-cat": "b4", "e-dan": "b3", "e-eve": "elsewhere"}
    routing = route(plan, Subscribers(profiles, edges, at), None)
    assert routing.taken.keys() == profiles.keys() - {"eve"}, "at no broker of the overlay: from the log"
    for message in window.to_pylist():
        sent = set(routing.route(message)[1])
        for name in routing.taken:
            if nc.Profile.parse(profiles[name]).matches(message):
                mine = sent & set(routing.taken[name])
                assert any(at[edges[name]] in routing.addresses[c].brokers for c in mine), (name, message)
    if bound is not None:
        for name in ("cat", "dan"):
            for channel in routing.taken[name]:
                assert delay(routing.addresses[channel], at[edges[name]]) <= bound


def delay(tree: Overlay, node: str) -> float:
    """Links from the source b0 to the root around the ring, and from there down the tree."""
    above, count = {v: u for u, v in tree.links}, 0
    while node != tree.root:
        node, count = above[node], count + 1
    root = int(tree.root[1:])
    return count + min(root, 8 - root)
