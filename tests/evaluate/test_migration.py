"""A migration simulated step by step on the plans' own tables: nobody is uncovered, rates are kept, it arrives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluate.plans import (
    channels_plan,
    filters_plan,
    hybrid_plan,
    queries_plan,
    semantic_plan,
    some_boxes,
    some_interest,
)
from naive.plan_effect import effect
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.evaluate.migration import Migration, Step
from narrowcast.model.plan import Tables
from narrowcast.plans.kinds import kind_of
from narrowcast.plans.verbs import certify, diff, judge

SEEDS = st.integers(0, 10**6)


class Multicast:
    """Channels and hybrid: receivers obey the steps; a flow is sent where its placement says and by its copies."""

    def __init__(self, plan: Tables) -> None:
        self.place = placement(plan)
        self.joined = {(r["subscriber"], r["group"]) for r in plan.tables["subscriber_group"].to_pylist()}
        self.copies = copies(plan)
        self.taken = {(u, self.place[f][0]) for f, u in wishes(plan) - self.copies if f in self.place}

    def obey(self, step: Step, new: Tables) -> None:
        sets: dict[str, tuple[set[Any], Callable[[Any], Any]]] = {
            "join": (self.joined, lambda n: (n.who, int(n.what.removeprefix("group ")))),
            "take": (self.taken, lambda n: (n.who, int(n.what.removeprefix("session ")))),
            "copy": (self.copies, lambda n: (n.what.removeprefix("flow "), n.who)),
        }
        for need in step.do:
            held, key = sets[need.verb]
            assert key(need) not in held
            held.add(key(need))
        for need in step.undo:
            held, key = sets[need.verb]
            held.remove(key(need))
        for move in step.moves:
            self.place.pop(move.content, None)
            if move.content in placement(new):
                self.place[move.content] = placement(new)[move.content]

    def gets(self, flow: str, user: str, place: dict[str, tuple[int, int]] | None = None) -> bool:
        session, group = (place or self.place).get(flow, (None, None))
        return (flow, user) in self.copies or ((user, group) in self.joined and (user, session) in self.taken)


def _renumbered(new: Tables, old: Tables) -> Tables:
    return kind_of(new.kind).migrate.renumbered(new, old)


def placement(plan: Tables) -> dict[str, tuple[int, int]]:
    group = {r["session"]: r["group"] for r in plan.tables["session_group"].to_pylist()}
    return {r["flow"]: (r["session"], group[r["session"]]) for r in plan.tables["flow_session"].to_pylist()}


def copies(plan: Tables) -> set[tuple[str, str]]:
    if "unicast" not in plan.tables:
        return set()
    return {(r["flow"], r["subscriber"]) for r in plan.tables["unicast"].to_pylist()}


def wishes(plan: Tables) -> set[tuple[str, str]]:
    return {(r["flow"], r["subscriber"]) for r in plan.tables["interest"].to_pylist()}


def drifted(seed: int) -> tuple[Tables, Tables]:
    """Two plans for two demands over the same names, each channels or hybrid."""
    rng = np.random.default_rng(seed)
    n_flows, n_users = int(rng.integers(2, 14)), int(rng.integers(2, 8))
    makers = [channels_plan, hybrid_plan]
    first = makers[int(rng.integers(2))](seed, some_interest(rng, n_flows, n_users))
    n_flows = max(1, n_flows + int(rng.integers(-2, 3)))
    return first, makers[int(rng.integers(2))](seed + 1, some_interest(rng, n_flows, n_users))


def paced(migration: Migration, rate: float) -> None:
    """No more than the rate in any step, and each step begins when the last is over."""
    now = 0.0
    for step in migration.steps:
        assert step.at_s == pytest.approx(now)
        told = [need for need in (*step.do, *step.undo) if need.verb in ("join", "forward")]
        assert len(told) <= rate * step.lasts_s + 1e-9
        now += step.lasts_s


@given(SEEDS, st.sampled_from([0.5, 1.0, 2.0, 7.0]))
def test_nobody_is_uncovered_at_any_step_between_channels_and_hybrids(seed: int, rate: float) -> None:
    old, new = drifted(seed)
    migration = diff(old, new, join_rate=rate)
    paced(migration, rate)
    state, both = Multicast(old), wishes(old) & wishes(new)
    draining = False
    for step in migration.steps:
        state.obey(step, migration.new)
        for flow, user in both:
            assert state.gets(flow, user), (step.kind, flow, user)
            # What was sent before the move is still under way until the drain is over.
            assert not draining or step.kind == "remove" or state.gets(flow, user, placement(old))
        draining = step.kind == "move"
    for flow, user in wishes(new):
        assert state.gets(flow, user)
    there = Multicast(migration.new)
    assert (state.joined, state.taken, state.copies, state.place) == (
        there.joined, there.taken, there.copies, there.place
    )  # fmt: skip


@given(SEEDS, st.sampled_from([1.0, 3.0]), st.sampled_from([1.0, 2.0]))
def test_no_receiver_joins_faster_than_it_may(seed: int, total: float, each: float) -> None:
    old, new = drifted(seed)
    for step in diff(old, new, join_rate=total, subscriber_join_rate=each).steps:
        told = Counter(need.who for need in (*step.do, *step.undo) if need.verb == "join")
        assert all(n <= each * step.lasts_s for n in told.values())
        assert sum(told.values()) <= total * step.lasts_s


@given(SEEDS)
def test_nobody_is_uncovered_at_any_step_between_merged_queries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes = some_boxes(rng)
    # Some queries stay, some ask something else, some are new, some are gone.
    changed = np.where(rng.random((len(boxes), 1, 1)) < 0.3, some_boxes(rng, len(boxes)), boxes)
    changed = np.concatenate([changed, some_boxes(rng, 2)])[: len(boxes) + int(rng.integers(-1, 3))]
    old, new = queries_plan(seed, boxes), queries_plan(seed + 1, changed)
    migration = diff(old, new, join_rate=2)
    paced(migration, 2)
    asked = [query_boxes(plan) for plan in (old, new)]
    hears = {(r["query"], r["set"]) for r in old.tables["merges"].to_pylist()}
    headers = dict(hears)
    asks = {(s, pieces) for s, pieces in set_pieces(old).items()}
    for step in migration.steps:
        for needs, change in ((step.do, set.add), (step.undo, set.remove)):
            for need in needs:
                if need.verb == "join":
                    change(hears, (need.who, int(need.what.removeprefix("set "))))
                else:
                    change(asks, (int(need.who.removeprefix("set ")), need.what))
        for move in step.moves:
            name = move.content.split(" ")[0]
            if move.after is None:
                if move.content.split(" ", 1)[1] == asked[0].get(name) and name not in asked[1]:
                    headers.pop(name)
            else:
                headers[name] = int(move.after.removeprefix("set "))
        for name in asked[0].keys() & asked[1].keys():
            if asked[0][name] == asked[1][name]:
                assert (name, headers[name]) in hears
                assert any(s == headers[name] and inside(asked[0][name], pieces) for s, pieces in asks)
    assert hears == {(r["query"], r["set"]) for r in migration.new.tables["merges"].to_pylist()}
    assert asks == set(set_pieces(migration.new).items())
    assert headers == dict(hears)


def query_boxes(plan: Tables) -> dict[str, str]:
    sides: dict[str, list[str]] = {}
    for r in plan.tables["queries"].to_pylist():
        sides.setdefault(r["query"], []).append(f"[{r['low']:.17g}, {r['high']:.17g}]")
    return {name: " x ".join(parts) for name, parts in sides.items()}


def set_pieces(plan: Tables) -> dict[int, str]:
    sides: dict[tuple[int, int], list[str]] = {}
    for r in plan.tables["channels"].to_pylist():
        sides.setdefault((r["set"], r["piece"]), []).append(f"[{r['low']:.17g}, {r['high']:.17g}]")
    pieces: dict[int, list[str]] = {}
    for (at, _), parts in sides.items():
        pieces.setdefault(at, []).append(" x ".join(parts))
    return {at: " or ".join(sorted(parts)) for at, parts in pieces.items()}


def inside(box: str, pieces: str) -> bool:
    def numbers(text: str) -> Any:
        return np.array([float(n) for n in re.findall(r"-?[\d.]+(?:e[+-]?\d+)?", text)]).reshape(-1, 2)

    own = numbers(box)
    return any(
        bool(((p := numbers(piece))[:, 0] <= own[:, 0]).all() and (p[:, 1] >= own[:, 1]).all())
        for piece in pieces.split(" or ")
    )


@given(SEEDS)
def test_nobody_is_cut_off_at_any_step_between_filter_placements_and_trees(seed: int) -> None:
    old, new = filters_plan(seed), filters_plan(seed + 1)
    migration = diff(old, new, join_rate=3)
    paced(migration, 3)
    links = {(r["parent"], r["node"]) for r in old.tables["trees"].to_pylist() if r["parent"] is not None}
    filters = set(old.tables["filters"]["node"].to_pylist())
    most = max(len(filters), new.parameters.get("k", 10**9))
    both = leaves(old) & leaves(new)
    for step in migration.steps:
        for needs, change in ((step.do, set.add), (step.undo, set.remove)):
            for need in needs:
                if need.verb == "filter":
                    change(filters, need.who)
                else:
                    change(links, (need.who, need.what.removeprefix("to ")))
        assert len(filters) <= most
        reached = {"v0"}
        while more := {child for parent, child in links if parent in reached} - reached:
            reached |= more
        assert both <= reached
    assert filters == set(new.tables["filters"]["node"].to_pylist())
    assert links == {(r["parent"], r["node"]) for r in new.tables["trees"].to_pylist() if r["parent"] is not None}


def leaves(plan: Tables) -> set[str]:
    rows = plan.tables["trees"].to_pylist()
    return {r["node"] for r in rows} - {r["parent"] for r in rows}


@settings(max_examples=40)
@given(SEEDS)
def test_nobody_is_cut_off_at_any_step_between_semantic_plans(seed: int) -> None:
    # The same system planned by another variant; brokers know a channel by its number alone.
    seed %= 500
    old, new = semantic_plan(seed), semantic_plan(seed, offset=1)
    migration = diff(old, new, join_rate=3)
    paced(migration, 3)
    state, rule = overlay_state(old), old
    gateways = set(old.tables["clients"]["gateway"].to_pylist())
    for step in migration.steps:
        for needs, change in ((step.do, set.add), (step.undo, set.remove)):
            for need in needs:
                if need.verb == "forward":
                    channel, to = need.what.removeprefix("channel ").split(" to ")
                    change(state, (int(channel), need.who, to))
        rule = migration.new if step.kind == "move" else rule
        for channel, root, members in channels_of(rule):
            reached, front = {root}, [root]
            while front:
                at = front.pop()
                for number, u, v in state:
                    if number == channel and u == at:
                        assert v not in reached, "a message would come twice"
                        reached.add(v)
                        front.append(v)
            assert members & gateways <= reached
    assert judge(migration.new).faults == ()


def overlay_state(plan: Tables) -> set[tuple[int, str, str]]:
    return {(r["channel"], r["u"], r["v"]) for r in plan.tables["trees"].to_pylist()}


def channels_of(plan: Tables) -> list[tuple[int, str, set[str]]]:
    members: dict[int, set[str]] = {}
    for row in plan.tables["channel_members"].to_pylist():
        members.setdefault(row["channel"], set()).add(row["gateway"])
    rows = plan.tables["channels"].to_pylist()
    return [(row["channel"], row["rendezvous"], members.get(row["channel"], set())) for row in rows]


@given(SEEDS)
def test_other_numbers_for_the_same_plan_are_no_change_at_all(seed: int) -> None:
    plan = drifted(seed)[0]
    rng = np.random.default_rng(seed)
    groups, sessions = rng.permutation(3), rng.permutation(5)
    tables = dict(plan.tables)
    columns = [("flow_session", "session", sessions), ("session_group", "session", sessions),
               ("session_group", "group", groups), ("subscriber_group", "group", groups)]  # fmt: skip
    for name, column, number in columns:
        given_table = tables[name]
        at = given_table.column_names.index(column)
        tables[name] = given_table.set_column(at, column, [number[given_table[column].to_numpy()]])
    other = replace(plan, tables=tables, parameters={**plan.parameters, "groups": 3, "sessions": 5})
    assert diff(plan, other).steps == ()


@given(SEEDS)
@pytest.mark.slow
def test_new_numbers_leave_the_plan_sound_and_its_effect_the_same(seed: int) -> None:
    old, new = drifted(seed)
    again = _renumbered(certify(new), old)
    assert judge(again).faults == ()
    assert effect(again) == effect(new)
    queries = queries_plan(seed), queries_plan(seed + 1)
    assert judge(_renumbered(queries[1], queries[0])).faults == ()


def test_pinned_groups_keep_their_numbers() -> None:
    interest = some_interest(np.random.default_rng(5), n_flows=12, n_users=6)
    old, new = channels_plan(4, interest), channels_plan(5, interest, pinned={0: 2})
    assert placement(_renumbered(new, old))["f0"][1] == 2
    assert judge(_renumbered(new, old)).sound


def test_matched_numbers_need_no_more_joins_than_the_numbers_as_they_are() -> None:
    for seed in range(40):
        old, new = drifted(seed)
        matched, plain = (sum(diff(old, new, renumber=r).counts()[0].values()) for r in (True, False))
        assert matched <= plain


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(UnsupportedError, match="two plans of the same kind, got filters and queries"):
        diff(filters_plan(1), queries_plan(1))
    with pytest.raises(InputError, match="join_rate must be above 0"):
        diff(channels_plan(1), channels_plan(1), join_rate=0)
