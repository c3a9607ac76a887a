"""The coordinator: one leads, a stale one is fenced, and a half-moved epoch is finished by the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.coordinator import Coordinator, CoordinatorSettings
from narrowcast.deliver.parts.effects import Append, Effect, Lookup, PlanWanted, Write
from narrowcast.deliver.parts.events import Appended, Noted, Planned, Refused, Replan, Tick, Written
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.wire import Marker, decode_entry

SETTINGS = CoordinatorSettings(ttl=1.0, renew=0.3, prepare=0.5, pause=0.1, alive=5.0, retry=0.2)


class Store:
    """A registry and a log that answer at once."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[bytes | None, int]] = {}
        self.revision = 0
        self.markers: dict[int, list[int]] = {0: [], 1: []}
        self.asked: list[PlanWanted] = []

    def record(self, key: str) -> dict[str, Any]:
        return records.unpack(self.values[key][0] or b"{}")

    def put(self, key: str, record: dict[str, Any]) -> Noted:
        self.revision += 1
        self.values[key] = (records.pack(record), self.revision)
        return Noted(key, *self.values[key])

    def run(self, part: Coordinator, effects: list[Effect], now: float) -> None:
        """Carry out effects, and what follows from their answers."""
        for effect in effects:
            if isinstance(effect, Write):
                data, at = self.values.get(effect.key, (None, 0))
                fits = effect.revision in (None, at) or (effect.revision == 0 and data is None)
                if fits:
                    self.revision += 1
                    self.values[effect.key] = (effect.data, self.revision)
                answer: Any = Written(effect.request, self.revision) if fits else Refused(effect.request)
                self.run(part, part.step(answer, now), now)
            elif isinstance(effect, Append):
                marker = decode_entry(effect.data)
                assert isinstance(marker, Marker)
                self.markers[effect.shard].append(marker.epoch)
                self.run(part, part.step(Appended(effect.request, 40 + effect.shard), now), now)
            elif isinstance(effect, PlanWanted):
                self.asked.append(effect)


def leader(store: Store, name: str = "first", now: float = 0.0) -> Coordinator:
    """A coordinator that has waited for its time and leads."""
    found = Coordinator(name, (0, 1), SETTINGS)
    found.step(Tick(), now)
    for key, (data, revision) in store.values.items():
        found.step(Noted(key, data, revision), now)
    store.run(found, found.step(Tick(), now + 1.0), now + 1.0)
    assert found.leads
    return found


def test_nobody_leads_before_the_lease_had_its_time() -> None:
    found = Coordinator("first", (0,), SETTINGS)
    assert not [e for e in found.step(Tick(), 0.0) if isinstance(e, Write)]
    assert not [e for e in found.step(Tick(), 0.9) if isinstance(e, Write)]
    (write,) = [e for e in found.step(Tick(), 1.0) if isinstance(e, Write)]
    assert (write.key, write.revision) == (records.LEASE, 0)


def test_a_lease_that_nobody_holds_is_taken_at_once() -> None:
    found = Coordinator("first", (0,), SETTINGS)
    assert Lookup(records.LEASE) in found.step(Tick(), 5.0)
    found.step(Noted(records.LEASE, None, 0), 5.1)
    (write,) = [e for e in found.step(Tick(), found.wake_at) if isinstance(e, Write)]
    assert (write.key, write.revision, found.wake_at > 5.1) == (records.LEASE, 0, True)


def test_a_lease_that_is_renewed_is_left_alone() -> None:
    store = Store()
    found = Coordinator("second", (0,), SETTINGS)
    found.step(Tick(), 0.0)
    for k in range(1, 9):
        found.step(store.put(records.LEASE, {"holder": "first", "term": 1}), k * 0.5)
        assert not [e for e in found.step(Tick(), k * 0.5 + 0.4) if isinstance(e, Write)]


def test_an_epoch_is_prepared_committed_by_markers_and_recorded() -> None:
    store = Store()
    found = leader(store)
    found.step(store.put(records.named(records.NODE, "edge"), {"role": "edge", "ready": 0, "beat": 1}), 1.0)
    sub = {"profile": "p > 1", "edge": "edge", "gateway": None}
    store.run(found, found.step(store.put(records.named(records.SUBSCRIPTION, "u"), sub), 1.2), 1.2)
    asked = store.asked[-1]
    store.run(found, found.step(Tick(), 1.3), 1.3)
    store.run(found, found.step(Planned(asked.request, Routing({})), 1.3), 1.3)
    if "u" not in asked.subscriptions:  # the first question was on its way before the subscription came in
        store.run(found, found.step(Tick(), 2.0), 2.0)
    assert store.record(records.EPOCH)["phase"] in ("preparing", "steady")
    ready = store.put(records.named(records.NODE, "edge"), {"role": "edge", "ready": 9, "beat": 2})
    store.run(found, found.step(ready, 2.1), 2.1)
    store.run(found, found.step(Tick(), 2.5), 2.5)
    done = store.record(records.EPOCH)
    assert (done["phase"], done["current"], done["cutover"]) == ("steady", 1, {"0": 40, "1": 41})
    assert store.markers == {0: [1], 1: [1]}


def test_a_node_that_is_not_ready_is_waited_for_but_not_for_ever() -> None:
    store = Store()
    found = leader(store)
    found.step(store.put(records.named(records.NODE, "edge"), {"role": "edge", "ready": 0, "beat": 1}), 1.0)
    store.run(found, found.step(Planned(store.asked[-1].request, Routing({})), 1.1), 1.1)
    assert store.record(records.EPOCH)["phase"] == "preparing"
    store.run(found, found.step(Tick(), 1.3), 1.3)
    assert store.markers == {0: [], 1: []}
    store.run(found, found.step(Tick(), 1.7), 1.7)
    assert store.markers == {0: [1], 1: [1]}


@pytest.mark.parametrize("phase", ["preparing", "committing"])
def test_what_one_began_the_next_finishes(phase: str) -> None:
    store = Store()
    store.put(records.LEASE, {"holder": "dead", "term": 3})
    store.put("plan.5", {})
    store.put(records.EPOCH, {"term": 3, "current": 4, "next": 5, "phase": phase, "cutover": {}})
    found = leader(store, "next")
    for k in range(8):
        store.run(found, found.step(Tick(), 1.1 + k * 0.2), 1.1 + k * 0.2)
    done = store.record(records.EPOCH)
    assert (done["phase"], done["current"], done["term"]) == ("steady", 5, 4)
    assert store.markers == {0: [5], 1: [5]}
    assert store.record(records.LEASE) == {"holder": "next", "term": 4}


def test_one_that_lost_the_lease_without_knowing_changes_nothing() -> None:
    store = Store()
    stale = leader(store, "stale")
    asked = store.asked[-1]
    leader(store, "new", now=5.0)
    before = dict(store.values)
    effects = stale.step(Planned(asked.request, Routing({})), 1.5)  # it slept, and goes on where it was
    store.run(stale, effects, 1.5)
    for k in range(5):
        store.run(stale, stale.step(Tick(), 1.6 + k * 0.3), 1.6 + k * 0.3)
    assert store.values[records.EPOCH] == before[records.EPOCH]
    assert store.values[records.LEASE] == before[records.LEASE]
    assert store.markers == {0: [], 1: []}
    assert not stale.leads


def test_a_plan_is_never_overwritten() -> None:
    store = Store()
    found = leader(store)
    store.put("plan.1", {"somebody": "else"})
    store.run(found, found.step(Planned(store.asked[-1].request, Routing({})), 1.1), 1.1)
    assert store.record("plan.1") == {"somebody": "else"}
    store.run(found, found.step(Tick(), 1.5), 1.5)
    assert store.asked[-1].epoch == 2


def test_one_that_cannot_renew_its_lease_stops_leading() -> None:
    found = leader(Store())
    found.step(Tick(), 1.5)
    found.step(Tick(), 2.1)
    assert not found.leads


def test_subscriptions_of_a_dead_edge_are_not_planned_for() -> None:
    store = Store()
    store.put(records.named(records.NODE, "edge"), {"role": "edge", "ready": 0, "beat": 1})
    store.put(records.named(records.SUBSCRIPTION, "u"), {"profile": "p > 1", "edge": "edge", "gateway": "b"})
    store.put(records.named(records.SUBSCRIPTION, "v"), {"profile": "p > 2", "edge": "gone", "gateway": None})
    leader(store)
    assert store.asked[-1].subscriptions == {"u": "p > 1"}
    assert store.asked[-1].gateways == {"edge": "b"}


def test_what_a_dead_node_left_behind_is_deleted_unless_it_has_spoken_since() -> None:
    store = Store()
    found = leader(store)
    node, sub = records.named(records.NODE, "edge"), records.named(records.SUBSCRIPTION, "u")
    found.step(store.put(node, {"role": "edge", "ready": 0, "beat": 1}), 1.0)
    found.step(store.put(sub, {"profile": "p > 1", "edge": "edge", "gateway": None}), 1.0)
    store.put(sub, {"profile": "p > 1", "edge": "other", "gateway": None})  # on its way to us: somebody else has it now
    for k in range(30):
        store.run(found, found.step(Tick(), 1.1 + k * 0.2), 1.1 + k * 0.2)
    assert store.values[node][0] is None
    assert store.record(sub)["edge"] == "other"
    assert found.counts["buried"] == 1


def test_who_asks_for_a_new_plan_gets_one_but_not_faster_than_the_pause_allows() -> None:
    store = Store()
    found = leader(store)
    store.run(found, found.step(Planned(store.asked[-1].request, None), 1.05), 1.05)
    before = len(store.asked)
    store.run(found, found.step(Replan(), 1.06), 1.06)
    assert len(store.asked) == before
    store.run(found, found.step(Tick(), 1.2), 1.2)
    assert len(store.asked) == before + 1


def test_what_comes_while_a_slow_plan_is_made_is_planned_for_together_and_not_at_once() -> None:
    store = Store()
    found = leader(store)
    edge = store.put(records.named(records.NODE, "edge"), {"role": "edge", "ready": 9, "beat": 1})
    store.run(found, found.step(edge, 1.1), 1.1)
    for k in range(5):  # the plan that was asked for at 1.0 is still being made
        record = {"profile": f"p > {k}", "edge": "edge", "gateway": None}
        store.run(found, found.step(store.put(records.named(records.SUBSCRIPTION, f"s{k}"), record), 1.2), 1.2)
    store.run(found, found.step(Planned(store.asked[-1].request, None), 3.0), 3.0)
    before = len(store.asked)
    for now in (3.1, 4.0, 4.9):
        store.run(found, found.step(Tick(), now), now)
    assert len(store.asked) == before, "two seconds went into a plan, two go into something else"
    assert found.wake_at <= 5.0
    store.run(found, found.step(Tick(), 5.0), 5.0)
    assert len(store.asked) == before + 1
    assert len(store.asked[-1].subscriptions) == 5


def offered(store: Store, found: Coordinator, now: float) -> None:
    """Another plan is offered, and made into a routing."""
    store.run(found, found.step(store.put(records.OFFER, {"number": 1, "folder": "plans/1"}), now), now)
    store.run(found, found.step(Tick(), now + 0.2), now + 0.2)
    assert store.asked[-1].offer == {"number": 1, "folder": "plans/1"}
    store.run(found, found.step(Planned(store.asked[-1].request, Routing({})), now + 0.2), now + 0.2)


def with_an_edge(store: Store) -> Coordinator:
    found = leader(store)
    store.run(found, found.step(Planned(store.asked[-1].request, None), 1.0), 1.0)
    edge = store.put(records.named(records.NODE, "edge"), {"role": "edge", "ready": 0, "beat": 1})
    store.run(found, found.step(edge, 1.0), 1.0)
    store.run(found, found.step(Tick(), 1.2), 1.2)
    store.run(found, found.step(Planned(store.asked[-1].request, None), 1.2), 1.2)
    return found


def test_another_plan_is_taken_back_if_somebody_does_not_prepare_for_it() -> None:
    store = Store()
    found = with_an_edge(store)
    offered(store, found, 1.4)
    assert (store.record(records.EPOCH)["phase"], store.record(records.EPOCH)["next"]) == ("preparing", 1)
    found.settings = replace(found.settings, move=1.0)
    store.run(found, found.step(Tick(), 2.3), 2.3)
    assert store.record(records.EPOCH)["phase"] == "preparing"
    store.run(found, found.step(Tick(), 2.7), 2.7)
    after = store.record(records.EPOCH)
    assert (after["phase"], after["current"], after["next"], after["refused"]) == ("steady", 0, None, 1)
    assert store.markers == {0: [], 1: []}
    assert found.counts["rolled back"] == 1
    assert store.asked[-1].offer is None, "the plan in force is made anew, and the refused one not tried again"
    assert store.asked[-1].epoch == 2, "a number is never used again"
    assert store.values["plan.1"][0] is None


def test_another_plan_that_everybody_prepares_for_stays_in_force_for_whoever_leads_next() -> None:
    store = Store()
    found = with_an_edge(store)
    offered(store, found, 1.4)
    ready = store.put(records.named(records.NODE, "edge"), {"role": "edge", "ready": 1, "beat": 2})
    store.run(found, found.step(ready, 1.7), 1.7)
    done = store.record(records.EPOCH)
    assert (done["phase"], done["current"], done["offer"]["number"], done["trying"]) == ("steady", 1, 1, None)
    leader(store, "next", now=9.0)
    assert store.asked[-1].offer == {"number": 1, "folder": "plans/1"}


def test_an_offer_of_which_no_routing_can_be_made_is_refused_once() -> None:
    store = Store()
    found = with_an_edge(store)
    store.run(found, found.step(store.put(records.OFFER, {"number": 1, "folder": "gone"}), 1.4), 1.4)
    store.run(found, found.step(Planned(store.asked[-1].request, None), 1.5), 1.5)
    assert store.record(records.EPOCH)["refused"] == 1
    store.run(found, found.step(Tick(), 1.9), 1.9)
    assert store.asked[-1].offer is None
