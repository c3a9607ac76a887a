"""The judge of semantic plans: sound plans pass, and every planted fault is found."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive import semantic_system as naive
from narrowcast.model.folder import read_tables, write_tables
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.faults import differences
from narrowcast.plans.semantic.api import METHODS, LiveChannels
from narrowcast.plans.semantic.judge.faults import semantic_cost, semantic_faults
from narrowcast.plans.semantic.judge.proof import Formulas

CAPS = (None, 1, 2, 4)


def folder(small: naive.Small, variant: str, **more: object) -> Tables:
    args = (small.topology, small.profiles, small.clients, small.window, small.sources)
    return nc.semantic.plan(*args, variant=variant, **more).to_tables()


def changed(plan: Tables, table: str, **columns: list[object]) -> Tables:
    """The plan with some columns of a table replaced."""
    new = plan.tables[table]
    for name, values in columns.items():
        at = new.column_names.index(name)
        new = new.set_column(at, name, pa.array(values, new.schema.field(name).type))
    return replace(plan, tables={**plan.tables, table: new})


def without_rows(plan: Tables, table: str, rows: list[int]) -> Tables:
    keep = [i for i in range(plan.tables[table].num_rows) if i not in rows]
    return replace(plan, tables={**plan.tables, table: plan.tables[table].take(keep)})


@pytest.mark.parametrize("variant", METHODS)
def test_every_plan_is_sound_and_costs_what_it_says(variant: str) -> None:
    for seed in range(40):
        small = naive.small_system(seed)
        plan = folder(small, variant, max_channels=CAPS[seed % 4], seed=seed)
        assert semantic_faults(plan) == [], seed
        assert differences(plan.cost, semantic_cost(plan)) == [], seed
        if plan.tables["window"].num_rows:
            assert set(semantic_cost(plan)) == set(plan.cost) == {"total", "tree", "full"}


@pytest.mark.parametrize("variant", METHODS)
def test_a_plan_that_clients_joined_and_left_is_sound(variant: str) -> None:
    for seed in range(12):
        small = naive.small_system(seed)
        args = (small.topology, small.profiles, small.clients, small.window, small.sources)
        live = LiveChannels(nc.semantic.plan(*args, variant=variant))
        rng = np.random.default_rng(seed)
        for _ in range(6):
            live.subscribe(naive.profile_text(rng), int(rng.integers(small.topology.n_brokers)))
        for client in rng.choice(list(live.clients), len(live.clients) // 2, replace=False).tolist():
            live.unsubscribe(client)
        assert semantic_faults(live.plan.rated_by(small.later, small.later_sources).to_tables()) == [], seed


def test_a_plan_comes_back_from_disk_as_it_was(tmp_path) -> None:
    small = naive.small_system(3)
    for variant in METHODS:
        plan = folder(small, variant)
        write_tables(plan, tmp_path / variant)
        again = read_tables(tmp_path / variant)
        assert semantic_faults(again) == []
        assert semantic_cost(again) == semantic_cost(plan)
        assert again.tables["channels"].equals(plan.tables["channels"])


def line(variant: str, **more: object) -> Tables:
    """Source 0, then gateways 1, 2, 3 on a line, two overlapping wishes."""
    topology = nc.Topology([(0, 1), (1, 2), (2, 3), (0, 3)], cost=[1, 1, 1, 9])
    window = pa.table({"x": [1, 4, 6, 9]})
    clients = [(0, 1), (1, 3), (2, 2)]
    made = nc.semantic.plan(topology, ["x > 3", "x < 7", "x > 5"], clients, window, 0, variant=variant, **more)
    return made.to_tables()


def fault(plan: Tables) -> str:
    faults = semantic_faults(plan)
    assert faults, "the judge found nothing"
    return faults[0]


def test_a_gateway_outside_every_fallback_channel_is_found() -> None:
    plan = line("search")
    kinds = plan.tables["channels"]["kind"].to_pylist()
    rows = plan.tables["channel_members"].to_pylist()
    gone = [i for i, row in enumerate(rows) if kinds[row["channel"]] == "fallback" and row["gateway"] == "2"]
    assert "gateway 2 is in no fallback channel" in fault(without_rows(plan, "channel_members", gone))


@pytest.mark.parametrize("variant", ["semcast", "merge", "noise-merge", "central"])
def test_a_member_taken_from_a_channel_is_found(variant: str) -> None:
    plan = line(variant)
    for at in range(plan.tables["channel_members"].num_rows):
        assert semantic_faults(without_rows(plan, "channel_members", [at])) != [], at


def test_a_formula_that_carries_too_little_is_found() -> None:
    plan = line("semcast")
    parts = plan.tables["contents"].to_pylist()
    at = next(i for i, part in enumerate(parts) if part["operation"] == "any" and part["operands"] == [1])
    operands = [part["operands"] for part in parts]
    operands[at] = []
    faults = semantic_faults(changed(plan, "contents", operands=operands))
    assert any("the channels to gateway 3 cannot be proven to carry all of profile 1" in each for each in faults)


def test_broken_trees_links_rates_and_names_are_found() -> None:
    plan = line("semcast")
    rows = plan.tables["trees"].to_pylist()
    assert "which its tree does not reach" in fault(without_rows(plan, "trees", [len(rows) - 1]))
    assert "do not start at its rendezvous" in fault(without_rows(plan, "trees", [0]))
    wrong = [row["v"] for row in rows]
    wrong[0] = "2"
    assert "which is not in the overlay" in fault(changed(plan, "trees", v=wrong))
    rates = [rate + 1 for rate in plan.tables["channels"]["rate"].to_pylist()]
    assert "the plan says" in fault(changed(plan, "channels", rate=rates))
    unknown = ["nowhere"] * plan.tables["clients"].num_rows
    assert "which is not in the plan" in fault(changed(plan, "clients", gateway=unknown))
    assert "which is not a node" in fault(changed(plan, "channels", rendezvous=["x"] * len(rates)))
    assert "rule must be one of audience, content" in fault(replace(plan, parameters={}))


def test_messages_that_do_not_arrive_are_found() -> None:
    plan = line("search")
    nowhere = [[] for _ in range(plan.tables["window"].num_rows)]
    assert any("do not reach" in each for each in semantic_faults(changed(plan, "window", channels=nowhere)))
    nowhere = [[] for _ in range(plan.tables["sample"].num_rows)]
    assert "does not reach it" in fault(changed(plan, "sample", _channels=nowhere))
    texts = ["x > 3", "x < 7", "x > 0"]
    assert "does not reach it" in fault(changed(plan, "profiles", text=texts))


def test_xpath_plans_are_judged_too() -> None:
    star = nc.Topology([(0, 1), (0, 2), (0, 3)])
    window = pa.table({"xml": ["<order v='N'/>", "<order v='Q'/>", "<trade/>", None], "x": [1, 5, 5, 2]})
    for variant in METHODS:
        made = nc.semantic.plan(
            star, ["//order[@v='N']", "//order", "x > 3"], [(0, 1), (1, 2), (2, 3)], window, 0, variant=variant
        )
        plan = made.to_tables()
        assert semantic_faults(plan) == []
        assert semantic_faults(changed(plan, "profiles", text=["//order", "//trade", "x > 3"])) != []


PROFILES = {n: nc.Profile.parse(f"a{n} = 1") for n in range(60)}


@given(
    st.lists(st.tuples(st.sampled_from(["all", "any of", "less"]), st.tuples(*[st.integers(0, 99)] * 3)), max_size=9)
)
def test_channels_are_proven_to_carry_a_profile_where_they_do_in_every_case(made: list) -> None:
    parts = [(n, "any", [n]) for n in range(4)]
    for operation, operands in made:
        known = [operand % len(parts) for operand in operands]
        parts.append((len(parts), operation, known[:2] if operation == "less" else known))
    formulas = Formulas(parts, {c: part for c, (part, *_) in enumerate(parts[-3:])}, PROFILES)
    cases = [{0, *others} for n in range(4) for others in combinations((1, 2, 3), n)]
    assert formulas.carried(0, [0, 1, 2]) == all(formulas.channels(case) for case in cases)


def test_channels_split_again_and_again_are_proven_in_a_moment_to_carry_what_the_first_one_did() -> None:
    """What a channel has in common with the noise of two others, and what it has alone."""
    parts = [(n, "any", [n]) for n in range(20)]

    def add(operation: str, *operands: int) -> int:
        parts.append((len(parts), operation, list(operands)))
        return len(parts) - 1

    rest, noise, pieces = 0, 1, []
    for other in range(2, 20):
        pieces.append(add("all", rest, noise))
        rest = add("less", rest, noise)
        noise = add("any of", add("less", noise, other), add("less", other, noise))
    formulas = Formulas(parts, dict(enumerate([*pieces, rest])), PROFILES)
    begun = time.process_time()
    assert formulas.carried(0, range(len(pieces) + 1))
    assert not formulas.carried(0, range(len(pieces)))
    assert time.process_time() - begun < 5


def test_a_proof_that_would_take_too_long_is_given_up_in_a_moment() -> None:
    rng = Random(1)
    parts = [(n, "any", [n]) for n in range(60)]
    parts += [(60 + k, "all", rng.sample(range(1, 60), 3)) for k in range(400)]
    formulas = Formulas(parts, {c: 60 + c for c in range(400)}, PROFILES)
    begun = time.process_time()
    assert not formulas.carried(0, range(400))
    assert time.process_time() - begun < 5
