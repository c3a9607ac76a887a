"""Subscriptions climb a filtered tree while filters move: nothing is missed, and broken rules are noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

import pytest

import narrowcast.deliver.parts.broker as broker_module
from narrowcast.deliver.parts import climb as climb_module
from narrowcast.deliver.parts.climb import Climb
from narrowcast.deliver.parts.climbed import Climbed
from narrowcast.deliver.parts.effects import PlanWanted
from narrowcast.deliver.parts.filter_moves import FilterMode, next_order
from narrowcast.deliver.routing.routes import by_tree
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Overlay
from narrowcast.profiles import Profile
from simulator import Schedule, simulate
from simulator.parts import Parts

CHAIN = Overlay("broker-0", (("broker-0", "broker-1"), ("broker-1", "broker-2")))


def same_tree(wanted: PlanWanted, rng: Random) -> Routing:
    """Always the same tree, and filters anywhere: what changes is moved, not planned anew."""
    return by_tree(CHAIN, [broker for broker in sorted(CHAIN.brokers) if rng.random() < 0.5])


def schedules(first: int) -> Iterator[Schedule]:
    """Those of the seeds, with many who come and go."""
    for seed in range(first, first + 10_000):
        yield replace(Schedule.from_seed(seed), churn=12, subscriptions=6, truncations=0, slow=False)


@pytest.mark.parametrize(
    "lot",
    [
        0,
        *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4)),
        *(pytest.param(n, marks=pytest.mark.nightly) for n in range(4, 20)),
    ],
)
def test_nothing_is_missed_repeated_or_wrong_while_subscriptions_climb_and_filters_move(lot: int) -> None:
    counts: Counter[str] = Counter()
    for schedule in islice(schedules(lot * 1000), 25):
        outcome = simulate(schedule, Parts(planner=same_tree))
        assert outcome.good, outcome
        counts.update(outcome.counts)
    for state in FilterMode:
        assert counts[f"coordinator filters {state.value}"] >= 3
    assert counts["broker filtered"] > 500
    assert counts["edge came by channel"] > 500
    # A restored log has the plan put in force again, and a revoked account has keys changed.
    assert counts["epoch"] <= sum(counts[each] for each in ("coordinator elected", "restore", "revocation")) + 25, (
        "filters moved and subscriptions came and went without new epochs"
    )


def test_without_faults_nearly_all_comes_by_the_tree_whoever_comes_and_goes() -> None:
    counts: Counter[str] = Counter()
    for seed in range(8):
        outcome = simulate(Schedule(seed=seed, batches=80, churn=4), Parts(planner=same_tree))
        assert outcome.good, outcome
        counts.update(outcome.counts)
    assert counts["edge came by channel"] > 0.95 * counts["edge delivered"]
    assert counts["epoch"] == 8


def everywhere(wanted: PlanWanted, rng: Random) -> Routing:
    return by_tree(CHAIN, sorted(CHAIN.brokers))


def crowded(seed: int) -> Schedule:
    """Much is published, everybody filters, news of the registry are late, and who leaves is back at once."""
    crashes = 8 if seed % 2 else 0
    return Schedule(
        seed=seed, seconds=8.0, batches=500, subscriptions=8, returns=16, late_news=0.4, crashes=crashes,
        frame_messages=2, third_gateway="broker-1", sealed=False,
    )  # fmt: skip


@pytest.mark.parametrize("lot", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 20))])
def test_nothing_is_missed_where_news_are_late_and_names_come_back(lot: int) -> None:
    for seed in range(2 * lot, 2 * lot + 2):
        outcome = simulate(crowded(seed), Parts(planner=everywhere))
        assert outcome.good, outcome


# Rules that make it safe, broken.


class ForgetsOnRestart(Climb):
    """Begins with an empty table, whatever it wrote before."""

    def take_own(self, record: Mapping[str, Any] | None) -> None:
        super().take_own(None if record is None else {**record, "subs": {}, "up": []})
        self.sure = {}


class SureAtOnce(Climb):
    """Says that a subscription is known all the way up as soon as it has heard of it."""

    def _known_above(self, version: int) -> bool:
        return True


class DropsAtOnce(Climb):
    """Takes a subscription out of the table, and tells the parent, before edges can know."""

    def note(self, name: str, edge: str | None, profile: str = "") -> None:
        super().note(name, edge, profile)
        if self.leaving:
            self._gone = tuple(self.leaving)
            turn = self.turn
            self.written({"turn": 0, "version": self._recorded})
            self.turn = turn


BROKEN_CLIMBS = {
    "forgets what it knew when it starts again": ForgetsOnRestart,
    "is sure at once": SureAtOnce,
    "drops a subscription at once": DropsAtOnce,
}


@pytest.mark.parametrize("name", BROKEN_CLIMBS)
def test_a_broker_that_breaks_a_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "Climb", BROKEN_CLIMBS[name])
    caught = (not simulate(crowded(seed), Parts(planner=everywhere)).verdict.sound for seed in range(40))
    assert any(caught), f"nobody noticed a broker that {name}"


# The pieces by themselves.


def record(*up: str, version: int = 1, **more: Any) -> dict[str, Any]:
    return {"version": version, "up": list(up), "turn": 0, "subs": {}, "sure": {}, "changes": 0} | more


def parse_all(climb: Climb) -> None:
    while climb.parse(1000):
        pass


def middle() -> Climb:
    """A broker between a root and a leaf, which has heard that nobody below wants anything."""
    climb = Climb("b", Overlay("a", (("a", "b"), ("b", "c"))))
    climb.take_own(None)
    climb.hear("c", record())
    parse_all(climb)
    return climb


def test_a_subscription_that_is_covered_is_not_told_and_is_told_when_its_cover_goes() -> None:
    climb = middle()
    climb.note("wide", "edge", "p > 1")
    assert climb.up == {"p > 1"}
    version = climb.version
    climb.note("narrow", "edge", "p > 5")
    assert (climb.up, climb.version) == ({"p > 1"}, version), "only the table has changed"
    climb.note("wide", None)
    assert climb.up == {"p > 1"}, "until it is out of the record, it stays"
    climb.written(climb.begin())
    assert climb.up == {"p > 5"}, "told again"
    assert climb.wanted.wants("edge", {"p": 6})
    assert not climb.wanted.wants("edge", {"p": 3})


def test_it_is_sure_when_the_parent_says_so_and_not_before() -> None:
    climb = middle()
    climb.hear("c", record("p = 7", version=2))
    climb.note("own", "edge", "p = 3")
    parse_all(climb)
    assert climb.sure.get("c", 0) < 2
    assert not climb.subs["own"].sure
    climb.hear_above(record(sure={"b": climb.version}))
    assert not climb.subs["own"].sure, "our record does not have it: that was another version of this number"
    climb = middle()
    climb.hear("c", record("p = 7", version=2))
    climb.note("own", "edge", "p = 3")
    parse_all(climb)
    climb.written(climb.begin())
    climb.hear_above(record(sure={"b": climb.version - 1}))
    assert not (climb.subs["own"].sure and climb.sure.get("c") == 2)
    climb.hear_above(record(sure={"b": climb.version}))
    assert climb.subs["own"].sure
    assert climb.sure["c"] == 2


def test_who_starts_again_tells_no_less_than_before_until_its_children_have_spoken() -> None:
    climb = Climb("b", Overlay("a", (("a", "b"), ("b", "c"))))
    assert climb.record()["up"] is None, "who knows nothing may want anything"
    climb.take_own(record("p = 1", "p = 2", version=7, turn=3, subs={"own": ["edge", "p = 2", 1, 4]}, changes=4))
    assert (climb.up, climb.turn, climb.version >= 7, climb.subs["own"].sure) == ({"p = 1", "p = 2"}, 3, True, True)
    climb.note("more", "edge", "p = 9")
    assert climb.up == {"p = 1", "p = 2", "p = 9"}
    climb.hear("c", record("p = 5"))
    parse_all(climb)
    assert climb.up == {"p = 2", "p = 9", "p = 5"}


def test_what_children_say_waits_until_it_is_known_what_was_said_before() -> None:
    climb = Climb("b", Overlay("a", (("a", "b"), ("b", "c"))))
    climb.hear("c", record("p = 5", version=9))
    assert (climb.parse(100), climb.is_busy) == (0, False)
    climb.hear_above(record(sure={"b": 3}))
    climb.take_own(record("p = 1", version=3))
    parse_all(climb)
    assert (climb.up, climb.version) == ({"p = 5"}, 4)
    assert climb.sure == {}, "the parent knows version 3, which was something else"


def test_a_name_that_comes_back_is_another_subscription() -> None:
    climb = middle()
    climb.note("own", "edge", "p = 3")
    since = climb.subs["own"].since
    climb.note("own", None)
    climb.note("own", "edge", "p = 3")
    climb.written(climb.begin())
    assert climb.subs["own"].since > since
    assert (climb.turn, climb.leaving) == (1, {})


def test_what_is_told_covers_what_is_wanted_whoever_comes_and_goes() -> None:
    """Against the definition: every message that any subscription wants is wanted by one that was told."""
    rng = Random(1)
    texts = [f"p BETWEEN {a} AND {b}" for a in range(6) for b in range(a, 6)]
    climb, have = middle(), {}
    for step in range(400):
        name = f"s{rng.randrange(12)}"
        if name in have and rng.random() < 0.5:
            del have[name]
            climb.note(name, None)
        else:
            have[name] = rng.choice(texts)
            climb.note(name, "edge", have[name])
        if rng.random() < 0.7:
            climb.written(climb.begin())
        if step % 5 == 0:
            climb.written(climb.begin())
            told = [Profile.parse(text) for text in climb.up or ()]
            for p in range(6):
                wanted = any(Profile.parse(text).matches({"p": p}) for text in have.values())
                assert any(profile.matches({"p": p}) for profile in told) == wanted
            assert len(told) <= len(set(have.values()))


def test_an_edge_counts_frames_from_where_the_log_ended_when_it_became_sure() -> None:
    climbed = Climbed("edge", (0, 1))
    climbed.keys[3] = "wants.3.61"
    own = {"mine": ["edge", "p > 1", 0, 1], "other": ["elsewhere", "p > 1", 1, 1]}
    assert climbed.hear("wants.3.61", record(subs=own), 5)
    assert not climbed.settle({"mine": "p > 1", "other": "p > 1"}), "not sure yet, and not ours"
    climbed.ask(7)
    own["mine"][2] = 1
    assert climbed.hear("wants.3.61", record(subs=own, turn=2), 6)
    assert not climbed.hear("wants.3.61", record(), 5), "overtaken"
    assert climbed.settle({"mine": "p > 1", "other": "p > 1"})
    climbed.located(7, 0, 100)
    climbed.ask(8)
    climbed.located(8, 0, 200)
    assert not climbed.carries(3, "mine"), "one shard is still to come"
    climbed.ask(9)
    climbed.located(9, 1, 300)
    assert climbed.carries(3, "mine")
    assert (climbed.start(3, "mine", 0), climbed.start(3, "mine", 1), climbed.turn(3)) == (200, 300, 2)
    assert not climbed.settle({"mine": "p > 2"}), "another profile is another subscription"
    assert not climbed.carries(3, "mine")


@pytest.mark.parametrize("seed", range(30))
def test_orders_bring_any_states_to_any_placement_one_filter_at_a_time(seed: int) -> None:
    rng = Random(seed)
    brokers = [f"b{k}" for k in range(8)]
    states = {b: rng.choice(list(FilterMode)).value for b in brokers if rng.random() < 0.7}
    placement = {b for b in brokers if rng.random() < 0.4}
    working = sum(state == "active" for state in states.values())
    for _ in range(50):
        order = next_order(states, placement)
        if order is None:
            break
        states[order[0]] = order[1].value
        now = sum(state == "active" for state in states.values())
        assert now <= max(working, len(placement)), "never more filters than before or after"
    assert {b for b, state in states.items() if state == "active"} == placement
    assert all(state in ("active", "passive") for state in states.values())


def test_too_many_profiles_for_a_record_are_told_as_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climb_module, "MOST_UP", 40)
    climb = middle()
    climb.hear("c", record(*(f"p = {k}" for k in range(20)), version=2))
    parse_all(climb)
    assert climb.up is None
    assert climb.wanted.wants("c", {"p": 3}), "its own table is not affected"
