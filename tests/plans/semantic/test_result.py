"""A plan taken through its tables and back routes as it did, costs what it did, and is written as it was."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from naive import semantic_system as naive
from naive.measured import measured
from narrowcast.errors import InfeasibleError, InputError, UnsupportedError
from narrowcast.model.folder import read_tables, write_tables
from narrowcast.plans.semantic.api import METHODS, OverlayDemand, SemanticPlan, Statistics
from narrowcast.plans.semantic.tables.write import SAMPLE


def again(plan: SemanticPlan) -> SemanticPlan:
    return SemanticPlan.from_tables(plan.to_tables())


def named(small: naive.Small, seed: int) -> nc.Topology:
    """The same overlay with names, and with costs whose sums depend on their order."""
    t, rng = small.topology, np.random.default_rng([seed, 5])
    cost = t.cost if seed % 3 else rng.choice([0.1, 0.2, 0.3, 0.7], t.n_links)
    delay = rng.integers(1, 9, t.n_links)
    return nc.Topology(t.edges, cost, delay, n_brokers=t.n_brokers, names=[f"b{i}" for i in range(t.n_brokers)])


def drawn(rng: np.random.Generator, n_brokers: int, n: int = 60) -> tuple[pa.Table, np.ndarray]:
    return naive.messages(rng, n, 24), rng.integers(0, n_brokers, n)


def same(one: SemanticPlan, two: SemanticPlan, seed: int) -> None:
    """They send random messages from anywhere over the same channels, at the same price."""
    table, sources = drawn(np.random.default_rng([seed, 6]), one.system.topology.n_brokers)
    for given in (sources, 0, None):
        for mine, theirs in zip(one.route(table, given), two.route(table, given), strict=True):
            assert mine.tolist() == theirs.tolist()
    assert two.cost == one.cost
    assert two.cost.terms == one.cost.terms
    assert two.cost.baselines == one.cost.baselines
    assert two.sources.tolist() == one.sources.tolist()
    assert nc.semantic.bandwidth(two, table, sources) == pytest.approx(
        nc.semantic.bandwidth(one, table, sources), rel=1e-12
    )
    for before, after in zip(one.channels, two.channels, strict=True):
        assert (before.gateways, before.rendezvous, before.kind, before.rate, before.number) == (
            after.gateways, after.rendezvous, after.kind, after.rate, after.number,
        )  # fmt: skip
        assert before.edges.tolist() == after.edges.tolist()
        assert after.link_cost == pytest.approx(before.link_cost, rel=1e-12)
        assert after.allowed == before.allowed


@pytest.mark.slow
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("cap", [None, 1, 4])
@pytest.mark.parametrize("method", METHODS)
def test_a_plan_routes_and_costs_the_same_after_its_tables(method: str, cap: int | None, known: bool, bounded: bool):
    planned = 0
    for seed in range(24):
        small = naive.small_system(seed)
        overlay, sources = named(small, seed), small.sources if known else None
        bounds = np.random.default_rng(seed).choice([np.inf, 18.0, 30.0], len(small.clients)) if bounded else None
        demand = OverlayDemand(
            overlay, small.profiles, small.clients, small.window, sources, bounds=bounds, key=("x",),
            names=[f"c{i}" for i in range(len(small.clients))],
        )  # fmt: skip
        try:
            plan = nc.semantic.make(demand, method, cap, seed=seed, half_life=(None, 4.0)[seed % 2])
        except InfeasibleError:
            assert bounded
            continue
        planned += 1
        back = again(plan)
        same(plan, back, seed)
        assert back.to_tables() is back.written
        assert (back.parameters, back.seed, back.key) == (plan.parameters, plan.seed, ("x",))
        assert back.demand.names == plan.client_names
    assert planned > 12


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_read_back_is_written_as_it_was_also_from_its_own_fields(method: str) -> None:
    for seed in range(12):
        small = naive.small_system(seed)
        plan = nc.semantic.plan(named(small, seed), small.profiles, small.clients, small.window, small.sources, method)
        tables = plan.to_tables()
        other = replace(SemanticPlan.from_tables(tables), written=None).to_tables()
        for name in ("channels", "channel_members", "trees", "window", "sample", "clients", "topology", "nodes"):
            assert other.tables[name].to_pylist() == tables.tables[name].to_pylist(), (seed, name)
        assert other.cost == pytest.approx(tables.cost)


@pytest.mark.parametrize("method", METHODS)
def test_on_a_large_overlay_with_more_messages_than_are_kept(method: str) -> None:
    topology = nc.workloads.overlay(60, sources=0.08, seed=2)
    made = nc.workloads.overlay_clients(topology, clients=150, messages=700, selectivity=4, overlap=0.1, seed=2)
    demand = OverlayDemand(topology, made.profiles, made.clients, made.messages, made.sources)
    for cap in (None, 8):
        plan = nc.semantic.make(demand, method, cap)
        back = again(plan)
        assert plan.demand.messages.num_rows > SAMPLE == back.demand.messages.num_rows
        assert set(back.sources.tolist()) == set(plan.sources.tolist())
        for mine, theirs in zip(*(p.route(made.messages, made.sources) for p in (plan, back)), strict=True):
            assert mine.tolist() == theirs.tolist()
        assert (back.cost, back.cost.terms) == (plan.cost, plan.cost.terms)


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_from_statistics_comes_back_and_only_what_needs_messages_refuses(method: str, tmp_path: Path) -> None:
    small = naive.small_system(11)
    found = Statistics.from_folder(measured(tmp_path / "some", small.profiles, small.window), 0)
    plan = nc.semantic.plan(small.topology, small.profiles, small.clients, found, method=method)
    back = again(plan)
    same(plan, back, 11)
    assert back.demand.messages is None
    assert back.demand.seen(back.system).weight.sum() == plan.sent.seen.weight.sum()
    with pytest.raises(UnsupportedError, match="does not hold messages with their source"):
        back.demand.sent(back.system)
    with pytest.raises(InputError, match=r"half_life must be None with statistics, got 3"):
        nc.semantic.plan(small.topology, small.profiles, small.clients, found, half_life=3)


def test_xpath_profiles_come_back() -> None:
    star = nc.Topology([(0, 1), (0, 2), (0, 3)])
    window = pa.table({"xml": ["<order v='N'/>", "<order v='Q'/>", "<trade/>", None], "x": [1, 5, 5, 2]})
    for method in METHODS:
        wishes = ["//order[@v='N']", "//order", "x > 3"]
        plan = nc.semantic.plan(star, wishes, [(0, 1), (1, 2), (2, 3)], window, 0, method=method)
        back = again(plan)
        for mine, theirs in zip(plan.route(window, 0), back.route(window, 0), strict=True):
            assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_channels_may_have_any_numbers(method: str) -> None:
    """As after a diff, where they keep those of the older plan."""
    small = naive.small_system(3)
    plan = nc.semantic.plan(small.topology, small.profiles, small.clients, small.window, small.sources, method=method)
    other = tuple(replace(channel, number=100 - channel.number) for channel in plan.channels)
    tables = replace(plan, channels=other).to_tables()
    assert tables.tables["channels"]["channel"].to_pylist() == [channel.number for channel in other]
    back = SemanticPlan.from_tables(tables)
    assert [channel.number for channel in back.channels] == [channel.number for channel in other]
    same(replace(plan, channels=other), back, 3)
    if method == "search":  # in whatever order they stand
        turned = {**tables.tables, "channels": tables.tables["channels"].take(list(range(plan.n_channels))[::-1])}
        kinds = [c.kind for c in SemanticPlan.from_tables(replace(tables, tables=turned)).channels]
        assert kinds == sorted(kinds, key=lambda kind: kind == "fallback")


def test_a_plan_with_no_client_and_one_with_no_message_come_back(tmp_path: Path) -> None:
    line = nc.Topology([(0, 1), (1, 2)])
    none = pa.table({"x": pa.array([], pa.int64())})
    for method in METHODS:
        for clients, window in (([], pa.table({"x": [1]})), ([(0, 2)], none)):
            plan = nc.semantic.plan(line, ["x > 1"], clients, window, 0, method=method)
            write_tables(plan.to_tables(), tmp_path / "plan", overwrite=True)
            back = SemanticPlan.from_tables(read_tables(tmp_path / "plan"))
            later = pa.table({"x": [1, 5]})
            for mine, theirs in zip(plan.route(later, 0), back.route(later, 0), strict=True):
                assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_can_be_sent_to_another_process(method: str) -> None:
    small = naive.small_system(3)
    plan = nc.semantic.plan(small.topology, small.profiles, small.clients, small.window, small.sources, method=method)
    plan.route(small.later, 0)
    same(plan, pickle.loads(pickle.dumps(plan)), 3)


def test_a_plan_of_more_than_twelve_profiles_keeps_its_content() -> None:
    """The column `expression` is for people and ends with how many more there are; nothing reads it."""
    line = nc.Topology([(0, 1), (1, 2)])
    wishes = [f"x BETWEEN {3 * i} AND {3 * i + 1}" for i in range(20)]
    window = pa.table({"x": list(range(60))})
    plan = nc.semantic.plan(line, wishes, [(i, 2) for i in range(20)], window, 0, "semcast", 1)
    tables = plan.to_tables()
    assert any("8 more" in text for text in tables.tables["channels"]["expression"].to_pylist())
    at = tables.tables["channels"].column_names.index("expression")
    blank = tables.tables["channels"].set_column(at, "expression", pa.array(["?"] * plan.n_channels))
    back = SemanticPlan.from_tables(replace(tables, tables={**tables.tables, "channels": blank}))
    assert [str(c.expression) for c in back.channels] == [str(c.expression) for c in plan.channels]
    assert back.route(window, 0)[0].tolist() == plan.route(window, 0)[0].tolist()


def test_unknown_names_are_refused_with_those_that_there_are() -> None:
    line, window = nc.Topology([(0, 1), (1, 2)]), pa.table({"x": [1, 2]})
    demand = OverlayDemand(line, ["x > 1"], [(0, 2)], window, 0)
    with pytest.raises(InputError, match=r"method must be one of search, semcast, .*, got 'best'"):
        nc.semantic.make(demand, method="best")
    with pytest.raises(InputError, match=r"rendezvous must be one of best, random, got 'middle'"):
        nc.semantic.make(demand, rendezvous="middle")
    with pytest.raises(InputError, match=r"scheme must be one of spt, unicast, got 'tree'"):
        nc.semantic.baseline(line, ["x > 1"], [(0, 2)], window, 0, "tree")
    with pytest.raises(InputError, match=r"method and variant must be the same, got 'merge' and 'semcast'"):
        nc.semantic.plan(line, ["x > 1"], [(0, 2)], window, 0, "semcast", method="merge")
    both = nc.semantic.plan(line, ["x > 1"], [(0, 2)], window, 0, "semcast", method="semcast")
    assert both.method == nc.semantic.plan(line, ["x > 1"], [(0, 2)], window, 0, method="semcast").method == "semcast"
    with pytest.raises(InputError, match=r"names must be one for each of 1 clients, got 2"):
        nc.semantic.make(replace(demand, names=["a", "b"]))


def test_rated_by_counts_another_window() -> None:
    small = naive.small_system(4)
    plan = nc.semantic.plan(small.topology, small.profiles, small.clients, small.window, small.sources)
    later = plan.rated_by(small.later, small.later_sources)
    assert later.cost.full == pytest.approx(nc.semantic.bandwidth(plan, small.later, small.later_sources))
    _, cols = plan.route(small.later, small.later_sources)
    assert [c.rate for c in later.channels] == np.bincount(cols, minlength=plan.n_channels).tolist()
    args = (small.topology, small.profiles, small.clients, small.later, small.later_sources)
    assert later.cost.baselines["spt"] == pytest.approx(nc.semantic.baseline(*args).cost)
