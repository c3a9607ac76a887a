"""Every choice that an explanation names costs what the planners' own cost says of the plan with it made."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from evaluate.plans import channels_plan, filters_plan, hybrid_plan, queries_plan, semantic_plan, some_interest
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model.interest_tables import interest_of
from narrowcast.model.plan import Tables
from narrowcast.plans.semantic.judge.faults import semantic_cost
from narrowcast.plans.verbs import explain

SEEDS = range(25)


class Maps:
    """A channels plan as two dicts that can be changed, priced by the planner's cost."""

    def __init__(self, plan: Tables) -> None:
        self.plan = plan
        self.session = {r["flow"]: r["session"] for r in plan.tables["flow_session"].to_pylist()}
        self.group = {r["session"]: r["group"] for r in plan.tables["session_group"].to_pylist()}

    def excess(self) -> float:
        interest = interest_of(self.plan)
        assert interest.flow_names is not None
        numbers = {l: i for i, l in enumerate(self.group)}
        groups = {g: i for i, g in enumerate(dict.fromkeys(self.group.values()))}
        session = [numbers.get(self.session.get(name, -1), -1) for name in interest.flow_names]
        known = self.plan.parameters
        c = nc.channels.cost(interest, session, [groups[g] for g in self.group.values()], known["alpha"], known["beta"])
        return c.excess

    def move(self, flows: list[str], what: str) -> None:
        if found := re.fullmatch(r"in session (\d+) of group (\d+)", what):
            assert self.group[int(found[1])] == int(found[2])
            to = int(found[1])
        elif found := re.fullmatch(r"in a session of its own in group (\d+)", what):
            to = 1000
            self.group[to] = int(found[1])
        else:
            assert what == "in a group of its own"
            to = 1000
            self.group[to] = 1000
        for flow in flows:
            self.session[flow] = to


@pytest.mark.parametrize("seed", SEEDS)
def test_every_place_for_a_flow_is_priced_as_the_planner_would(seed: int) -> None:
    plan = channels_plan(seed)
    for flow in plan.tables["flow_session"]["flow"].to_pylist()[:4]:
        found = explain(plan, flow=flow)
        assert found.cost == pytest.approx(plan.cost["excess"])
        assert found.choices
        for choice in found.choices:
            maps = Maps(plan)
            maps.move([flow], choice.what)
            assert choice.cost == pytest.approx(maps.excess(), abs=1e-9)
            assert choice.change == pytest.approx(choice.cost - found.cost, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_place_for_a_session_and_a_group_is_priced_as_the_planner_would(seed: int) -> None:
    plan = channels_plan(seed)
    for number in dict.fromkeys(plan.tables["session_group"]["session"].to_pylist()):
        for choice in explain(plan, session=number).choices:
            maps = Maps(plan)
            if found := re.fullmatch(r"the whole session in group (\d+)", choice.what):
                maps.group[number] = int(found[1])
            elif choice.what == "the whole session in a group of its own":
                maps.group[number] = 1000
            else:
                maps.move([f for f, l in maps.session.items() if l == number], choice.what)
            assert choice.cost == pytest.approx(maps.excess(), abs=1e-9)
    for number in dict.fromkeys(plan.tables["session_group"]["group"].to_pylist()):
        for choice in explain(plan, group=number).choices:
            maps = Maps(plan)
            if found := re.fullmatch(r"all of it in group (\d+)", choice.what):
                maps.group = {l: int(found[1]) if g == number else g for l, g in maps.group.items()}
            else:
                found = re.fullmatch(r"session (\d+) in group (\d+)", choice.what)
                assert found
                maps.group[int(found[1])] = int(found[2])
            assert choice.cost == pytest.approx(maps.excess(), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_sparing_a_subscriber_a_group_costs_what_the_planner_says(seed: int) -> None:
    plan = channels_plan(seed)
    for user in dict.fromkeys(plan.tables["interest"]["subscriber"].to_pylist()):
        found = explain(plan, subscriber=user)
        mine = [r["flow"] for r in plan.tables["interest"].to_pylist() if r["subscriber"] == user]
        assert found.facts["thrown away"] == pytest.approx(sum(u.rate for u in found.unwanted), abs=1e-9)
        for choice in found.choices:
            parts = re.fullmatch(r"without group (\d+): its \d+ flows? there (.*)", choice.what)
            assert parts
            maps = Maps(plan)
            maps.move([f for f in mine if maps.group[maps.session[f]] == int(parts[1])], parts[2])
            assert choice.cost == pytest.approx(maps.excess(), abs=1e-9)


def test_a_flow_is_received_unasked_by_exactly_the_other_members_of_its_group() -> None:
    plan = channels_plan(11)
    row = plan.tables["flow_session"].to_pylist()[0]
    group = {r["session"]: r["group"] for r in plan.tables["session_group"].to_pylist()}[row["session"]]
    members = {r["subscriber"] for r in plan.tables["subscriber_group"].to_pylist() if r["group"] == group}
    wants = {r["subscriber"] for r in plan.tables["interest"].to_pylist() if r["flow"] == row["flow"]}
    assert {u.who for u in explain(plan, flow=row["flow"]).unwanted} == members - wants


def test_a_choice_that_a_limit_forbids_is_barred_by_its_name_and_never_the_next_best() -> None:
    interest = some_interest(np.random.default_rng(5), n_flows=12, n_users=6)
    given: list[dict[str, Any]] = [
        {"pinned": {0: 1}}, {"apart": [(0, 1), (0, 2)]}, {"joins_per_subscriber": 1}, {"rate_per_group": 9.0}
    ]  # fmt: skip
    for limits in given:
        (word,) = limits
        plan = channels_plan(5, interest, **limits)
        barred = [c for f in ("f0", "f1", "f2") for c in explain(plan, flow=f).choices if word in c.barred]
        assert barred
        best = explain(plan, flow="f0").next_best
        assert best is None or not best.barred


Places = dict[str, tuple[int, int] | None]


def hybrid_total(plan: Tables, place: Places, alone: set[tuple[str, str]]) -> float:
    """C′ as the paper has it, and the flow filter's part where there are sessions, written slowly."""
    w1, w2, w3 = plan.parameters["weights"]
    beta = plan.parameters.get("beta", 0.0)
    rate = {r["flow"]: r["rate"] for r in plan.tables["flows"].to_pylist()}
    wants = [(r["flow"], r["subscriber"]) for r in plan.tables["interest"].to_pylist()]
    by_group = [(f, u) for f, u in wants if (f, u) not in alone and place.get(f) is not None]
    sent = {f for f, _ in by_group}

    def received(level: int) -> float:
        load: dict[Any, float] = {}
        for flow in sent:
            load[place[flow][level]] = load.get(place[flow][level], 0.0) + rate[flow]
        return sum(load[at] for at, _ in {(place[f][level], u) for f, u in by_group})

    copies = sum(rate[f] for f, u in wants if (f, u) not in set(by_group))
    multicast = w1 * received(1) + beta * received(0) + w2 * sum(rate[f] for f in sent)
    return float(multicast + w3 * (w1 + beta + w2) * copies)


def told_place(plan: Tables, what: str) -> tuple[int, int]:
    """(session, group) of the place that a choice names; 1000 is new."""
    group_of = {r["session"]: r["group"] for r in plan.tables["session_group"].to_pylist()}
    if found := re.fullmatch(r"in session (\d+) of group (\d+)", what):
        assert group_of[int(found[1])] == int(found[2])
        return int(found[1]), int(found[2])
    if found := re.fullmatch(r"in a session of its own in group (\d+)", what):
        return 1000, int(found[1])
    if found := re.fullmatch(r"in group (\d+)", what):
        assert "sessions" not in plan.parameters
        return next(l for l, g in group_of.items() if g == int(found[1])), int(found[1])
    assert what == "in a group of its own"
    return 1000, 1000


@pytest.mark.parametrize("seed", SEEDS)
def test_every_way_for_a_flow_of_a_hybrid_is_priced_from_the_definition(seed: int) -> None:
    plan = hybrid_plan(seed)
    group_of = {r["session"]: r["group"] for r in plan.tables["session_group"].to_pylist()}
    place: Places = {r["flow"]: (r["session"], group_of[r["session"]]) for r in plan.tables["flow_session"].to_pylist()}
    alone = {(r["flow"], r["subscriber"]) for r in plan.tables["unicast"].to_pylist()}
    assert hybrid_total(plan, place, alone) == pytest.approx(plan.cost["total"])
    for flow in plan.tables["flows"]["flow"].to_pylist()[:5]:
        for choice in explain(plan, flow=flow).choices:
            if choice.what == "by unicast to all":
                expected = hybrid_total(plan, {**place, flow: None}, alone)
            else:
                moved = {**place, flow: told_place(plan, choice.what)}
                expected = hybrid_total(plan, moved, {pair for pair in alone if pair[0] != flow})
            assert choice.cost == pytest.approx(expected), choice
    for user in dict.fromkeys(plan.tables["interest"]["subscriber"].to_pylist()):
        mine = {(r["flow"], user) for r in plan.tables["interest"].to_pylist() if r["subscriber"] == user}
        for choice in explain(plan, subscriber=user).choices:
            if found := re.fullmatch(r"without group (\d+): by unicast", choice.what):
                left = alone | {pair for pair in mine if place.get(pair[0], (-1, -1))[1] == int(found[1])}
            elif choice.what == "everything by unicast":
                left = alone | mine
            elif found := re.fullmatch(r"flow (\w+) (.*)", choice.what):
                same = [c for c in explain(plan, flow=found[1]).choices if c.what == found[2]]
                assert [c.cost for c in same] == [choice.cost]
                continue
            else:
                left = alone - mine
            assert choice.cost == pytest.approx(hybrid_total(plan, place, left)), choice
    for level, what in ((0, "session"), (1, "group")):
        for number in dict.fromkeys(at[level] for at in place.values()):
            for choice in explain(plan, **{what: number}).choices:
                found = re.fullmatch(r"all of it in group (\d+)", choice.what)
                gone = {
                    f: at if at[level] != number else (at[0], int(found[1])) if found else None
                    for f, at in place.items()
                }
                assert choice.cost == pytest.approx(hybrid_total(plan, gone, alone)), choice


@pytest.mark.parametrize("seed", SEEDS)
def test_every_place_for_a_filter_is_priced_as_the_planner_would(seed: int) -> None:
    plan = filters_plan(seed)
    rows = plan.tables["trees"].to_pylist()
    place = {row["node"]: v for v, row in enumerate(rows)}
    tree = nc.Tree([-1 if r["parent"] is None else place[r["parent"]] for r in rows],
                   link_cost=[r["link_cost"] for r in rows], users=[r["users"] for r in rows])  # fmt: skip
    flow, known = [r["flow"] for r in rows], plan.parameters

    def measure(filters: set[str]) -> float:
        at = sorted(place[name] for name in filters)
        chosen = np.array(at, np.int64)
        if known["objective"] == "traffic":
            return nc.filters.traffic(tree, flow, chosen)
        return nc.filters.delay(tree, flow, chosen, filter_delay=known["filter_delay"], link_delay=known["link_delay"])

    present = set(plan.tables["filters"]["node"].to_pylist())
    seen = 0
    for name in place:
        for choice in explain(plan, node=name).choices:
            seen += 1
            if choice.what == "no filter here":
                after = present - {name}
            elif choice.what == "a filter here too":
                after = present | {name}
            elif found := re.fullmatch(r"at (.*) instead", choice.what):
                after = present - {name} | {found[1]}
            else:
                found = re.fullmatch(r"here instead of at (.*)", choice.what)
                assert found
                after = present | {name}
                after -= {found[1]}
            assert choice.cost == pytest.approx(measure(after)), (name, choice)
    assert seen or not tree.can_filter.any()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_set_for_a_query_is_priced_as_the_planner_would(seed: int) -> None:
    plan = queries_plan(seed)
    known = plan.parameters
    boxes: dict[str, list[Any]] = {}
    for row in plan.tables["queries"].to_pylist():
        boxes.setdefault(row["query"], []).append((row["low"], row["high"]))
    sets: dict[int, list[str]] = {}
    for row in plan.tables["merges"].to_pylist():
        sets.setdefault(row["set"], []).append(row["query"])
    place = {name: i for i, name in enumerate(boxes)}

    def measure(after: list[list[str]]) -> float:
        chosen = [[place[q] for q in members] for members in after if members]
        constants = {name: known[name] for name in ("km", "kt", "ku", "ka")}
        return nc.queries.cost(np.array(list(boxes.values())), chosen, procedure=known["procedure"], **constants).total

    for name in boxes:
        found = explain(plan, query=name)
        at = found.facts["set"]
        for choice in found.choices:
            after = {s: [q for q in members if q != name] for s, members in sets.items()}
            to = -1 if choice.what == "alone" else int(choice.what.removeprefix("in set "))
            after[to] = [*after.get(to, []), name]
            assert choice.cost == pytest.approx(measure([*after.values()])), choice
        if len(sets[at]) == 1:
            assert found.unwanted == ()
    for at, members in sets.items():
        for choice in explain(plan, channel=at).choices:
            rest = [m for s, m in sets.items() if s != at]
            if choice.what == "every query apart":
                changed = [*rest, *([q] for q in members)]
            elif out := re.fullmatch(r"without (.*)", choice.what):
                changed = [*rest, [q for q in members if q != out[1]], [out[1]]]
            else:
                other = int(choice.what.removeprefix("together with set "))
                changed = [m for s, m in sets.items() if s not in (at, other)] + [members + sets[other]]
            assert choice.cost == pytest.approx(measure(changed)), choice


def test_other_ways_for_a_channel_are_priced_over_the_window() -> None:
    priced = 0
    for seed in range(15):
        plan = semantic_plan(seed)
        for row in plan.tables["channels"].to_pylist():
            found = explain(plan, channel=row["channel"])
            assert found.cost == pytest.approx(plan.cost["total"])
            for choice in found.choices:
                # The judge's own cost of the plan with that one thing changed.
                if choice.what.startswith("the same tree from "):
                    changed = rerooted(plan, row["channel"], choice.what.removeprefix("the same tree from "))
                else:
                    other = int(choice.what.removeprefix("its messages over channel "))
                    changed = sent_over(plan, row["channel"], other)
                assert choice.cost == pytest.approx(semantic_cost(changed)["total"]), choice
                priced += 1
        for client in plan.tables["clients"].to_pylist()[:3]:
            assert client["gateway"] in explain(plan, subscriber=client["client"]).headline
            assert explain(plan, node=client["gateway"]).facts["clients"]
    assert priced > 50


def rerooted(plan: Tables, channel: int, root: str) -> Tables:
    rows = plan.tables["channels"].to_pylist()
    changed = [{**row, "rendezvous": root} if row["channel"] == channel else row for row in rows]
    table = pa.Table.from_pylist(changed, schema=plan.tables["channels"].schema)
    return replace(plan, tables={**plan.tables, "channels": table})


def sent_over(plan: Tables, channel: int, other: int) -> Tables:
    rows = plan.tables["window"].to_pylist()
    changed = [{**row, "channels": sorted({*row["channels"], other} - {channel})}
               if channel in row["channels"] else row for row in rows]  # fmt: skip
    table = pa.Table.from_pylist(changed, schema=plan.tables["window"].schema)
    return replace(plan, tables={**plan.tables, "window": table})


def test_what_is_not_there_is_one_line_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"no flow 'f00'.*did you mean f0\?"):
        explain(channels_plan(1), flow="f00")
    with pytest.raises(InputError, match="no group 99"):
        explain(channels_plan(1), group=99)
    with pytest.raises(UnsupportedError, match="a filters plan has no flow to explain"):
        explain(filters_plan(1), flow="f0")
