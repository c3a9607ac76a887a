"""The edge: exact, once, in order; repairs from the log; leaves when drained; says so when something is gone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.coverage import Coverage
from narrowcast.deliver.parts.edge import Edge, EdgeSettings
from narrowcast.deliver.parts.effects import Deliver, Effect, Gap, Join, Leave, Locate, Read, Send, Subscribed, Write
from narrowcast.deliver.parts.events import (
    Arrived,
    Consumed,
    Failed,
    Located,
    Noted,
    Subscribe,
    Tick,
    Unsubscribe,
    WasRead,
)
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Entry, Link, Multicast, Overlay, Unicast
from narrowcast.deliver.wire import Attach, Batch, Carried, Frame, Pulse, encode_entry, encode_payload, end_of, place
from narrowcast.deliver.wire.columns import Columns
from narrowcast.deliver.wire.frame import NO_FLOW

SETTINGS = EdgeSettings(grace=0.05, patience=0.5, tail=0.1, retry=0.2, report=10.0)
BOTH = {1: Multicast(0, 1), 2: Multicast(0, 2)}


def plan(taken: tuple[int, ...] = (1, 2), profile: str = "p > 5", **more: Any) -> Routing:
    return Routing(BOTH, {"u": taken}, profiles={"u": profile}, edges={"u": "edge"}, content={1: "", 2: ""}, **more)


def epoch(current: int, cutover: int = 0, upcoming: int | None = None) -> Noted:
    record = {"term": 1, "current": current, "next": upcoming, "phase": "steady", "cutover": {"0": cutover}}
    return Noted(records.EPOCH, records.pack(record), 100 + current)


def edge(credit: int | None = None, settings: EdgeSettings = SETTINGS, **plans: Routing) -> Edge:
    """An edge with subscription u from the end of entry 10 on, under plan 1, at time 0."""
    found = Edge("edge", (0,), settings)
    found.step(Subscribe("u", "p > 5", {0: end_of(10)}, credit), 0.0)
    found.step(Noted("plan.1", (plans.get("plan") or plan()).to_bytes(), 1), 0.0)
    found.step(epoch(1), 0.0)
    return found


def frame(channel: int, after: int, upto: int, *messages: tuple[int, int], number: int = 1) -> Arrived:
    carried = tuple(Carried(at, NO_FLOW, encode_payload({"p": p})) for at, p in messages)
    return Arrived(Frame(0, channel, number, after, upto, carried))


def entry(sequence: int, *values: int) -> Entry:
    return Entry(sequence, encode_entry(Batch("c", sequence, tuple(encode_payload({"p": p}) for p in values))))


def places(effects: list[Effect]) -> list[int]:
    return [at for e in effects if isinstance(e, Deliver) for at, _ in e.messages]


def reads(effects: list[Effect]) -> list[Read]:
    return [e for e in effects if isinstance(e, Read)]


def test_messages_wait_until_every_channel_has_spoken_and_come_in_order() -> None:
    found = edge()
    late, early = (place(12, 0), 9), (place(11, 0), 8)
    assert places(found.step(frame(1, end_of(10), end_of(12), late), 0.01)) == []
    effects = found.step(frame(2, end_of(10), end_of(12), early), 0.02)
    assert places(effects) == [place(11, 0), place(12, 0)]
    assert effects[-1].position == end_of(12)  # type: ignore[union-attr]


def test_only_what_the_profile_matches_is_delivered_and_only_once() -> None:
    found = edge(plan=plan((1,)))
    first = frame(1, end_of(10), end_of(11), (place(11, 0), 9), (place(11, 1), 5))
    assert places(found.step(first, 0.01)) == [place(11, 0)]
    assert places(found.step(first, 0.02)) == []
    wider = frame(1, end_of(9), end_of(12), (place(10, 0), 9), (place(11, 0), 9), (place(12, 0), 7))
    assert places(found.step(wider, 0.03)) == [place(12, 0)]


def test_a_hole_is_repaired_from_the_log_after_a_moment_and_what_is_there_is_not_lost() -> None:
    found = edge(plan=plan((1,)))
    assert found.step(frame(1, end_of(12), end_of(13), (place(13, 0), 9)), 0.1) == []
    assert reads(found.step(Tick(), 0.12)) == []
    (read,) = reads(found.step(Tick(), 0.155))
    assert (read.after, read.upto) == (10, 12)
    effects = found.step(WasRead(read.request, 0, 10, 12, (entry(11, 9, 1), entry(12, 6))), 0.16)
    assert places(effects) == [place(11, 0), place(12, 0), place(13, 0)]


def test_a_hole_closed_by_a_late_frame_needs_no_log() -> None:
    found = edge(plan=plan((1,)))
    found.step(frame(1, end_of(11), end_of(12)), 0.1)
    assert places(found.step(frame(1, end_of(10), end_of(11), (place(11, 0), 9)), 0.12)) == [place(11, 0)]
    assert reads(found.step(Tick(), 0.2)) == []


def test_silence_is_not_believed_for_long_but_heartbeats_are() -> None:
    found = edge(plan=plan((1,)))
    for k in range(1, 8):
        found.step(frame(1, end_of(10), end_of(10)), k * 0.2)
        assert reads(found.step(Tick(), k * 0.2)) == []
    (read,) = reads(found.step(Tick(), 2.0))
    assert (read.after, read.upto) == (10, None)


def test_a_pulse_completes_the_channels_that_were_silent_and_shows_what_is_missing_of_the_others() -> None:
    found = edge(plan=plan(pulse=Unicast("p")))
    assert Unicast("p") in found._wanted()
    found.step(frame(1, end_of(10), place(11, 0), (place(11, 0), 9)), 0.1)
    pulse = Arrived(Pulse(0, 1, end_of(9), end_of(12), ((1, place(11, 0)),)))
    assert places(found.step(pulse, 0.11)) == [place(11, 0)]
    lossy = Arrived(Pulse(0, 1, end_of(9), end_of(14), ((1, place(13, 0)),)))  # a frame up to there was sent and lost
    assert places(found.step(lossy, 0.2)) == []
    (read,) = reads(found.step(Tick(), 0.26))
    assert read.after == 12


def test_without_a_plan_the_log_is_read_again_and_again() -> None:
    found = Edge("edge", (0,), SETTINGS)
    found.step(Subscribe("u", "p > 5", {0: end_of(10)}), 0.0)
    (read,) = reads(found.step(Tick(), 0.0))
    assert places(found.step(WasRead(read.request, 0, 10, 11, (entry(11, 9),)), 0.01)) == [place(11, 0)]
    (again,) = reads(found.step(Tick(), 0.12))
    assert again.after == 11


def test_after_an_answer_that_may_have_been_cut_it_reads_on_at_once() -> None:
    """By the number of entries or by their bytes: of large ones a log gives a few."""
    for n, large in ((SETTINGS.read_most, 1), (4, 1 << 20), (1, 1)):
        found = Edge("edge", (0,), SETTINGS)
        found.step(Subscribe("u", "p > 5", {0: end_of(10)}), 0.0)
        (read,) = reads(found.step(Tick(), 0.0))
        entries = tuple(Entry(11 + k, b"x" * large) for k in range(n))
        more = reads(found.step(WasRead(read.request, 0, 10, 10 + n, entries), 0.01) + found.step(Tick(), 0.011))
        assert [each.after for each in more] == ([] if n == 1 else [10 + n])


def test_a_lost_or_failed_read_is_asked_again() -> None:
    found = Edge("edge", (0,), SETTINGS)
    found.step(Subscribe("u", "p > 5", {0: end_of(10)}), 0.0)
    (lost,) = reads(found.step(Tick(), 0.0))
    (failed,) = reads(found.step(Tick(), 0.21))
    found.step(Failed(failed.request), 0.22)
    (again,) = reads(found.step(Tick(), 0.33))
    assert found.step(WasRead(lost.request, 0, 10, 11, (entry(11, 9),)), 0.34) == []  # too late, and asked anew
    assert places(found.step(WasRead(again.request, 0, 10, 11, (entry(11, 9),)), 0.35)) == [place(11, 0)]


def test_a_subscription_starts_at_the_end_of_every_shard() -> None:
    found = Edge("edge", (0, 1), SETTINGS)
    asked = [e for e in found.step(Subscribe("u", "p > 5"), 0.0) if isinstance(e, Locate)]
    assert [e.shard for e in asked] == [0, 1]
    assert found.step(Located(asked[0].request, 0, 7), 0.1) == []
    effects = found.step(Located(asked[1].request, 1, 3), 0.1)
    assert effects[0] == Subscribed("u", {0: end_of(7), 1: end_of(3)})
    assert isinstance(effects[1], Write)
    assert effects[1].key == records.named(records.SUBSCRIPTION, "u")


def test_a_plan_made_for_another_profile_or_edge_is_not_used() -> None:
    for other in (plan(profile="p > 6"), replace(plan(), edges={"u": "elsewhere"}), plan(gateways={"edge": "broker"})):
        found = edge(plan=other)
        assert places(found.step(frame(1, end_of(10), end_of(11), (place(11, 0), 9)), 0.01)) == []
        assert found.counts["filtered by session"] == 1


def test_an_old_channel_is_left_only_when_the_watermark_has_passed_the_cut_over() -> None:
    found = edge(plan=plan((1,)))
    new = replace(plan((7,)), addresses={7: Multicast(1, 7)}, content={7: ""})
    effects = found.step(epoch(1, upcoming=2), 0.1) + found.step(Noted("plan.2", new.to_bytes(), 5), 0.1)
    assert Join(Multicast(1, 7)) in effects
    assert b'"ready":2' in effects[-1].data  # type: ignore[union-attr, operator]
    assert not [e for e in found.step(epoch(2, cutover=12), 0.2) if isinstance(e, Leave)]
    found.step(frame(7, end_of(12), end_of(13), (place(13, 0), 9), number=2), 0.21)
    done = found.step(frame(1, end_of(10), end_of(12), (place(11, 0), 9)), 0.22)
    assert places(done) == [place(11, 0), place(13, 0)]
    assert [e for e in found.step(Tick(), 10.1) if isinstance(e, Leave)] == [Leave(Multicast(0, 1))]


def test_a_slow_subscriber_is_not_given_more_than_it_can_take_and_gets_the_rest_later() -> None:
    found = edge(credit=2, plan=plan((1,)))
    many = [(place(11, k), 9) for k in range(5)]
    assert places(found.step(frame(1, end_of(10), end_of(11), *many), 0.01)) == [place(11, 0), place(11, 1)]
    assert places(found.step(Consumed("u", 2), 0.02)) == [place(11, 2), place(11, 3)]
    assert places(found.step(Consumed("u", 2), 0.03)) == [place(11, 4)]


def test_one_that_holds_too_much_lets_go_and_reads_the_log() -> None:
    found = edge(credit=1, settings=replace(SETTINGS, most_held=3), plan=plan((1,)))
    many = [(place(11, k), 9) for k in range(6)]
    assert places(found.step(frame(1, end_of(10), end_of(11), *many), 0.01)) == [place(11, 0)]
    assert found.counts["blinded"] == 1
    assert places(found.step(frame(1, end_of(11), end_of(12), (place(12, 0), 9)), 0.02)) == []
    found.step(Consumed("u", 20), 0.03)
    (read,) = reads(found.step(Tick(), 0.6))
    assert read.after == 10  # in the middle of entry 11: it is read again
    effects = found.step(WasRead(read.request, 0, 10, 12, (entry(11, *[9] * 6), entry(12, 9))), 0.61)
    assert places(effects) == [*(place(11, k) for k in range(1, 6)), place(12, 0)]


def test_a_subscriber_that_falls_too_far_behind_is_told_of_the_gap() -> None:
    found = edge(credit=0, settings=replace(SETTINGS, most_lag=5), plan=plan((1,)))
    assert found.step(frame(1, end_of(10), end_of(14), (place(11, 0), 9)), 0.01) == []
    effects = found.step(frame(1, end_of(14), end_of(16), (place(16, 0), 9)), 0.02)
    assert effects == [Gap("u", 0, end_of(10), end_of(16), "slow")]


def test_what_the_log_no_longer_holds_is_told_as_a_gap() -> None:
    found = Edge("edge", (0,), SETTINGS)
    found.step(Subscribe("u", "p > 5", {0: end_of(10)}), 0.0)
    (read,) = reads(found.step(Tick(), 0.0))
    effects = found.step(WasRead(read.request, 0, 10, 21, (entry(21, 9),), first=21), 0.01)
    assert effects[0] == Gap("u", 0, end_of(10), end_of(20), "log")
    assert places(effects) == [place(21, 0)]


def test_an_overlay_channel_is_asked_for_at_the_broker_again_and_again() -> None:
    found = Edge("edge", (0,), SETTINGS, gateway="broker")
    found.step(Subscribe("u", "p > 5", {0: end_of(10)}), 0.0)
    tree = replace(plan((1,)), addresses={1: Overlay("root")}, content={1: ""}, gateways={"edge": "broker"})
    found.step(Noted("plan.1", tree.to_bytes(), 1), 0.0)
    wanted = Send(Link("broker"), Attach("edge", 1, 1))
    assert wanted in found.step(Tick(), 0.01)
    assert wanted not in found.step(Tick(), 0.1)
    assert wanted in found.step(Tick(), 0.6)


def test_unsubscribing_leaves_the_channels_and_the_registry() -> None:
    found = edge()
    effects = found.step(Unsubscribe("u"), 0.1)
    assert effects[0] == Write(effects[0].request, records.named(records.SUBSCRIPTION, "u"), None)  # type: ignore[union-attr]
    assert {e.address for e in effects if isinstance(e, Leave)} == set(BOTH.values())
    assert places(found.step(frame(1, end_of(10), end_of(11), (place(11, 0), 9)), 0.2)) == []


def test_a_position_that_moves_without_messages_is_told_now_and_then() -> None:
    found = edge(plan=plan((1,)))
    found.step(frame(1, end_of(10), end_of(15)), 0.1)
    assert Deliver("u", 0, (), end_of(15)) in found.step(Tick(), 10.1)


def test_a_flow_that_cannot_match_is_dropped_without_a_look_at_the_message() -> None:
    flows = (("a", (1,)), ("b", (1,)))
    keyed = Routing(
        {1: Multicast(0, 1)}, {"u": (1,)}, key=("s",), flows=flows, profiles={"u": "s = 'a'"}, edges={"u": "edge"}
    )
    found = Edge("edge", (0,), SETTINGS)
    found.step(Subscribe("u", "s = 'a'", {0: end_of(10)}), 0.0)
    found.step(Noted("plan.1", keyed.to_bytes(), 1), 0.0)
    carried = (Carried(place(11, 0), 1, b"never decoded"), Carried(place(11, 1), 0, encode_payload({"s": "a"})))
    assert places(found.step(Arrived(Frame(0, 1, 1, end_of(10), end_of(11), carried)), 0.01)) == [place(11, 1)]
    assert found.counts["filtered by flow"] == 1


def test_rows_whose_flows_decide_are_not_looked_at() -> None:
    flows = (("a", (1,)), ("b", (1,)))
    profiles = {"u": "s = 'a'", "v": "s = 'a' AND p > 1"}
    keyed = Routing(
        {1: Multicast(0, 1)},
        dict.fromkeys(profiles, (1,)),
        key=("s",),
        flows=flows,
        profiles=profiles,
        edges=dict.fromkeys(profiles, "edge"),
    )
    found = Edge("edge", (0,), SETTINGS)
    for name, profile in profiles.items():
        found.step(Subscribe(name, profile, {0: end_of(10)}), 0.0)
    found.step(Noted("plan.1", keyed.to_bytes(), 1), 0.0)
    batch = pa.record_batch({"s": ["b", "a", "a"], "p": [9, 1, 9]})  # the flow of the first is said to be a
    rows = Columns(place(11, 0) - 1, np.arange(3), batch, None, np.array([0, 1, 0]))
    effects = found.step(Arrived(Frame(0, 1, 1, end_of(10), end_of(11), rows)), 0.01)
    got = {e.subscription: [at for at, _ in e.messages] for e in effects if isinstance(e, Deliver)}
    assert got == {"u": [place(11, 0), place(11, 2)], "v": [place(11, 2)]}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12), st.integers(0, 30))
def test_coverage_is_the_union_of_what_was_added(spans: list[tuple[int, int]], at: int) -> None:
    seen, naive = Coverage(), set()
    for start, length in spans:
        seen.add(start, start + length)
        naive |= set(range(start + 1, start + length + 1))
    end = at
    while end + 1 in naive:
        end += 1
    assert seen.reach(at) == end
    ascending = [edge for interval in seen.intervals for edge in interval]
    assert ascending == sorted(set(ascending))
    starts = [n - 1 for n in naive if n - 1 not in naive and n - 1 > at]
    assert seen.after(at) == min(starts, default=None)
    seen.forget(at)
    assert seen.reach(at) == end


@pytest.mark.parametrize("event", [Tick(), Consumed("nobody", 1), WasRead(9, 0, 0, 1, ()), Failed(3), Unsubscribe("x")])
def test_events_out_of_place_do_no_harm(event: Any) -> None:
    assert places(Edge("edge", (0,)).step(event, 0.0)) == []


def test_subscriptions_that_miss_the_same_share_one_read_of_the_log() -> None:
    found = Edge("edge", (0,), SETTINGS)
    effects: list[Effect] = []
    for name, profile in (("u", "p > 5"), ("v", "p < 3"), ("w", "p > 7")):
        effects += found.step(Subscribe(name, profile, {0: end_of(10)}, None), 0.0)
    reads = [each for each in found.step(Tick(), 0.0) if isinstance(each, Read)]
    assert [(each.after, each.upto) for each in reads] == [(10, None)]
    done = found.step(WasRead(reads[0].request, 0, 10, 11, (entry(11, 9, 1, 6),)), 0.01)
    got = {each.subscription: [at for at, *_ in each.messages] for each in done if isinstance(each, Deliver)}
    assert got == {"u": [place(11, 0), place(11, 2)], "v": [place(11, 1)], "w": [place(11, 0)]}
    again = [each for each in found.step(Tick(), 0.2) if isinstance(each, Read)]
    assert [(each.after, each.upto) for each in again] == [(11, None)]
    found.step(Failed(again[0].request, "no answer"), 0.21)
    assert [each.after for each in found.step(Tick(), 0.4) if isinstance(each, Read)] == [11], "all ask again, once"


@pytest.mark.parametrize("comes", [True, False])
def test_now_and_then_it_asks_where_the_log_ends_and_reads_only_what_does_not_come(comes: bool) -> None:
    found = edge(settings=replace(SETTINGS, trust=1.0, report=100.0))
    at, now, locates, reads = 11, 1.0, [], []
    while not locates:
        for channel in (1, 2):
            found.step(frame(channel, end_of(at - 1), end_of(at)), now)
        effects = found.step(Tick(), now)
        locates += [each for each in effects if isinstance(each, Locate)]
        reads += [each for each in effects if isinstance(each, Read)]
        at, now = at + 1, now + 0.05
        assert now < 3.0
    found.step(Located(locates[0].request, 0, at + 2), now)
    for _ in range(20):
        old = 0 if comes else 1  # or one that was there before, again and again
        for channel in (1, 2):
            found.step(frame(channel, end_of(at - 1 - old), end_of(at - old)), now)
        at, now = at + comes, now + 0.05
        reads += [each for each in found.step(Tick(), now) if isinstance(each, Read)]
    assert bool(reads) is not comes


def test_who_is_furthest_behind_asks_for_the_others_too_and_nobody_whom_the_answer_does_not_reach_believes_it() -> None:
    """After a start every subscription stands elsewhere: a read for each would be the whole log many times over."""
    found = Edge("edge", (0,), SETTINGS)
    for k, at in enumerate((end_of(14), end_of(10), place(12, 0))):
        found.step(Subscribe(f"u{k}", "p > 5", {0: at}, None), 0.0)
    (asked,) = reads(found.step(Tick(), 1.0))
    assert (asked.after, asked.upto) == (10, None)
    answer = WasRead(asked.request, 0, 10, 12, (entry(11, 7), entry(12, 8, 9)), 1)
    effects = found.step(answer, 1.1)
    got = {e.subscription: [at for at, _ in e.messages] for e in effects if isinstance(e, Deliver) and e.messages}
    assert got == {"u1": [place(11, 0), place(12, 0), place(12, 1)], "u2": [place(12, 1)]}
    again = [read for step in range(4) for read in reads(found.step(Tick(), 1.2 + step))]
    assert 14 in {read.after for read in again} | {read.after + 2 for read in again}, "one was told that it has all"


def test_a_log_that_answers_late_is_asked_less_and_less_often_and_as_before_once_it_answers() -> None:
    found = Edge("edge", (0,), SETTINGS)
    found.step(Subscribe("u", "p > 5", {0: end_of(10)}, None), 0.0)

    def asked(begin: float, seconds: float) -> list[tuple[float, Read]]:
        moments = [begin + step / 100 for step in range(int(100 * seconds))]
        return [(now, read) for now in moments for read in reads(found.step(Tick(), now))]

    unanswered = asked(0.0, 20.0)
    pauses = [after - before for (before, _), (after, _) in pairwise(unanswered)]
    assert pauses == sorted(pauses)
    assert 5 <= len(pauses) <= 10, pauses
    read = unanswered[-1][1]
    for k in range(8):
        found.step(WasRead(read.request, 0, read.after, read.after, (), 1), 20.0 + k)
        ((_, read),) = asked(20.1 + k, 0.15)
    assert len(asked(30.0, 0.7)) >= 2, "it goes on as if the log were still slow"


def test_frames_that_come_late_again_and_again_are_waited_for_instead_of_reading_the_log() -> None:
    found = edge(settings=replace(SETTINGS, trust=100.0, report=100.0))
    at, now, reads = 11, 1.0, []
    for n in range(6):  # channel 2 is 0.2 s behind channel 1
        found.step(frame(1, end_of(at - 1), end_of(at), (place(at, 0), 9)), now)
        for step in range(1, 5):
            for each in found.step(Tick(), now + step * 0.04):
                if isinstance(each, Read):
                    reads.append(n)
                    found.step(WasRead(each.request, 0, at - 1, at, (entry(at, 9),)), now + step * 0.04)
        found.step(frame(2, end_of(at - 1), end_of(at)), now + 0.2)
        at, now = at + 1, now + 0.3
    assert reads.count(0) == 1
    assert not {2, 3, 4, 5} & set(reads), "after the first it knows better"
    assert found.counts["read in vain"] >= 1
    assert found.grace <= SETTINGS.most_grace
    for _ in range(200):
        now += 101.0
        found.step(Tick(), now)
    assert found.grace == SETTINGS.grace, "and forgets"


def test_what_was_asked_of_the_log_before_the_plan_came_is_taken_up_to_its_cut_over_only() -> None:
    found = Edge("edge", (0,), SETTINGS)
    found.step(Subscribe("u", "p > 5", {0: end_of(10)}), 0.0)
    (read,) = reads(found.step(Tick(), 0.0))
    found.step(Noted("plan.1", plan((1,)).to_bytes(), 1), 0.01)
    found.step(epoch(1, cutover=12), 0.01)
    answer = (entry(11, 9), entry(12), entry(13, 8), entry(14, 7))
    assert places(found.step(WasRead(read.request, 0, 10, 14, answer), 0.02)) == [place(11, 0)]
    carried = frame(1, end_of(12), end_of(13), (place(13, 0), 8))
    assert places(found.step(carried, 0.03)) == [place(13, 0)]
    (read,) = reads(found.step(Tick(), 0.02 + SETTINGS.patience))
    assert (read.after, read.upto) == (13, None), "what does not come by the channel is read after all"
    assert places(found.step(WasRead(read.request, 0, 13, 14, answer[-1:]), 0.6)) == [place(14, 0)]


def test_a_reading_of_the_log_that_was_due_without_a_plan_is_not_done_once_there_is_one() -> None:
    found = Edge("edge", (0,), SETTINGS)
    found.step(Subscribe("u", "p > 5", {0: end_of(10)}), 0.0)
    (read,) = reads(found.step(Tick(), 0.0))
    found.step(WasRead(read.request, 0, 10, 10, ()), 0.01)
    found.step(Noted("plan.1", plan((1,)).to_bytes(), 1), 0.02)
    found.step(epoch(1, cutover=10), 0.02)
    assert reads(found.step(Tick(), 0.01 + SETTINGS.tail)) == []
    assert reads(found.step(Tick(), 0.01 + SETTINGS.patience)), "silence is not believed for long"


def test_a_source_that_was_only_slow_to_speak_is_given_longer_and_its_silence_is_believed_again_later() -> None:
    found, at = edge(settings=replace(SETTINGS, trust=1e9), plan=plan((1,))), 10
    waited = []
    for _ in range(3):
        start = now = 10.0 * at
        found.step(frame(1, end_of(at), end_of(at)), now)
        while not (asked := reads(found.step(Tick(), now))):
            now += 0.01
        waited.append(now - start)
        found.step(WasRead(asked[0].request, 0, at, at + 1, (entry(at + 1, 9),)), now)
        found.step(frame(1, end_of(at), end_of(at + 1), (place(at + 1, 0), 9)), now + 0.3)
        at += 1
    assert waited[0] == pytest.approx(SETTINGS.patience, abs=0.02)
    assert waited[1] == pytest.approx(2 * (waited[0] + 0.3), abs=0.05)
    assert found.patience <= SETTINGS.most_patience
    for k in range(200):
        found.step(Tick(), 1000.0 + 10 * k)
    assert found.patience == SETTINGS.patience


def test_what_seems_missing_while_more_stands_ready_is_not_read_unless_nothing_carries_it() -> None:
    found = edge(plan=plan((1,)))
    found.step(frame(1, end_of(11), end_of(12)), 0.1)
    assert reads(found.step(Tick(busy=True), 0.2)) == []
    assert found.wake_at <= 0.25, "it is looked at again soon"
    assert reads(found.step(Tick(), 0.25))
    without = Edge("edge", (0,), SETTINGS)
    without.step(Subscribe("u", "p > 5", {0: end_of(10)}), 0.0)
    assert reads(without.step(Tick(busy=True), 0.0))
