"""The source: frames that connect, claims that are true, cut-over at the marker, and restarts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Effect, Join, Lookup, Read, Send, Write
from narrowcast.deliver.parts.events import Noted, Tick, WasRead
from narrowcast.deliver.parts.source import Source, SourceSettings
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Entry, Multicast, Unicast
from narrowcast.deliver.wire import Batch, Frame, Marker, Pulse, encode, encode_entry, encode_payload, end_of, place
from narrowcast.deliver.wire.frame import MOST_BYTES

ONE, TWO = Multicast(0, 1), Multicast(0, 2)
PLAN = Routing({1: ONE, 2: TWO}, key=("s",), flows=(("a", (1,)), ("b", (2,))), rest=(2,))
OTHER = Routing({1: ONE}, key=("s",), flows=(("a", (1,)), ("b", (1,))), rest=(1,))


def batch(*symbols: str) -> bytes:
    return encode_entry(Batch("c", 0, tuple(encode_payload({"s": s}) for s in symbols)))


def entries(first: int, *data: bytes) -> tuple[Entry, ...]:
    return tuple(Entry(first + k, each) for k, each in enumerate(data))


def frames(effects: list[Effect]) -> list[Frame]:
    return [e.what for e in effects if isinstance(e, Send) and isinstance(e.what, Frame)]


def started(at: int = 0, epoch: int = 1, **settings: object) -> Source:
    """A source that has found its place under plan 1; time is 0."""
    source = Source("source", 0, SourceSettings(**settings))  # type: ignore[arg-type]
    assert Lookup("source.0") in source.step(Tick(), 0.0)
    source.step(Noted("plan.1", PLAN.to_bytes(), 1), 0.0)
    saved = records.pack({"sequence": at, "epoch": epoch})
    source.step(Noted("source.0", saved, 2), 0.0)
    return source


def test_each_channel_gets_its_own_messages_and_the_idle_one_is_told_later() -> None:
    source = started(settle=0.02)
    found = frames(source.step(WasRead(0, 0, 0, 2, entries(1, batch("a", "b"), batch("a"))), 0.0))
    found += frames(source.step(Tick(), 0.0))
    assert [(f.channel, f.after, f.upto, [m[0] for m in f.messages]) for f in found] == [
        (1, end_of(0), end_of(2), [place(1, 0), place(2, 0)]),
        (2, end_of(0), end_of(2), [place(1, 1)]),
    ]
    source.step(WasRead(0, 0, 2, 3, entries(3, batch("a")), 1), 0.01)
    found = frames(source.step(Tick(), 0.01)) + frames(source.step(Tick(), 0.031))
    assert Frame(0, 2, 1, end_of(2), end_of(3)) in found


def test_frames_of_a_channel_connect_and_stay_within_their_size_even_inside_an_entry() -> None:
    source = started(most_messages=2, most_bytes=1200)
    found = frames(source.step(WasRead(0, 0, 0, 1, entries(1, batch("a", "a", "a", "a", "a"))), 0.0))
    found += frames(source.step(Tick(), 0.0))
    mine = [f for f in found if f.channel == 1]
    assert [len(f.messages) for f in mine] == [2, 2, 1]
    assert [f.after for f in mine] == [end_of(0), mine[0].upto, mine[1].upto]
    small = started(most_bytes=80)
    mine = [f for f in frames(small.step(WasRead(0, 0, 0, 1, entries(1, batch(*"aaaa"))), 0.0)) if f.channel == 1]
    assert mine
    assert all(len(f.messages) == 1 for f in mine)


def test_the_marker_ends_one_plan_and_begins_the_next_at_the_same_place() -> None:
    source = started()
    source.step(Noted("plan.2", OTHER.to_bytes(), 3), 0.0)
    read = entries(1, batch("b"), encode_entry(Marker(2)), batch("b"))
    found = frames(source.step(WasRead(0, 0, 0, 3, read), 0.0)) + frames(source.step(Tick(), 0.0))
    old = [f for f in found if f.epoch == 1]
    new = [f for f in found if f.epoch == 2]
    assert {f.channel: f.upto for f in old} == {1: end_of(2), 2: end_of(2)}
    assert [(f.channel, f.after, f.upto) for f in new] == [(1, end_of(2), end_of(3))]


def test_the_profiles_of_the_next_plan_are_read_before_the_source_is_ready_for_it() -> None:
    source = started()
    coming = Routing({1: Multicast(0, 1)}, {}, content={1: "p > 1"})
    source.step(Noted("plan.2", coming.to_bytes(), 9), 0.0)
    assert "_content" in vars(source.plans[2])


def test_a_marker_that_comes_again_or_too_late_does_nothing() -> None:
    source = started()
    source.step(WasRead(0, 0, 0, 1, entries(1, encode_entry(Marker(1)))), 0.0)
    assert source.in_force == 1
    source.step(WasRead(0, 0, 1, 2, entries(2, encode_entry(Marker(0)))), 0.0)
    assert source.in_force == 1


def test_without_the_plan_in_force_nothing_is_said_until_it_comes() -> None:
    source = started()
    found = frames(source.step(WasRead(0, 0, 0, 2, entries(1, encode_entry(Marker(5)), batch("a"))), 0.0))
    assert all(f.upto == end_of(1) for f in found)
    assert frames(source.step(Tick(), 1.0)) == []
    effects = source.step(Noted("plan.5", OTHER.to_bytes(), 9), 1.1)
    assert Join(ONE, True) in effects
    found = frames(source.step(WasRead(0, 0, 1, 2, entries(2, batch("a"))), 1.2)) + frames(source.step(Tick(), 1.2))
    assert [(f.epoch, f.after, f.upto) for f in found] == [(5, end_of(1), end_of(2))]


def test_after_a_restart_claims_begin_where_it_goes_on() -> None:
    source = started(at=40)
    read = [e for e in source.step(Tick(), 0.01) if isinstance(e, Read)]
    assert [r.after for r in read] == [40]
    found = frames(source.step(WasRead(read[0].request, 0, 40, 41, entries(41, batch("a"))), 0.1))
    found += frames(source.step(Tick(), 0.1))
    assert found
    assert min(f.after for f in found) == end_of(40)


def test_a_checkpoint_is_what_has_been_sent_and_the_epoch_in_force_there() -> None:
    source = started(checkpoint=0.5)
    source.step(WasRead(0, 0, 0, 1, entries(1, batch("a"))), 0.0)
    source.step(Tick(), 0.0)
    saved = [e for e in source.step(Tick(), 0.6) if isinstance(e, Write) and e.key == "source.0"]
    assert [records.unpack(e.data or b"") for e in saved] == [{"sequence": 1, "epoch": 1}]


def test_one_pulse_speaks_for_all_channels_and_for_the_pulses_before_it() -> None:
    source = Source("source", 0, SourceSettings(settle=0.02, heartbeat=9.0))
    source.step(Tick(), 0.0)
    source.step(Noted("plan.1", replace(PLAN, pulse=Unicast("p")).to_bytes(), 1), 0.0)
    source.step(Noted("source.0", records.pack({"sequence": 0, "epoch": 1}), 2), 0.0)
    told = []
    for k in range(7):
        now = k * 0.1
        effects = source.step(WasRead(0, 0, k, k + 1, entries(k + 1, batch("a" if k == 0 else "b"))), now)
        effects += source.step(Tick(), now)
        assert [len(f.messages) for f in frames(effects)] == [1]  # no frame without a message
        assert sum(isinstance(e, Send) and e.address == Unicast("p") for e in effects) == 1  # at once: it is idle
        effects += source.step(Tick(), now + 0.03)
        told += [e.what for e in effects if isinstance(e, Send) and e.address == Unicast("p")]
    assert told[0] == Pulse(0, 1, end_of(0), end_of(1), ((1, end_of(1)),))
    assert told[1] == Pulse(0, 1, end_of(0), end_of(2), ((1, end_of(1)), (2, end_of(2))))
    assert told[6] == Pulse(0, 1, end_of(3), end_of(7), ((2, end_of(7)),))  # channel 1 has been silent for long


def test_more_channels_than_a_pulse_can_name_have_heartbeats_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("narrowcast.deliver.parts.source.MOST_LATELY", 1)
    source = Source("source", 0, SourceSettings(settle=0.02, heartbeat=9.0))
    source.step(Tick(), 0.0)
    source.step(Noted("plan.1", replace(PLAN, pulse=Unicast("p")).to_bytes(), 1), 0.0)
    source.step(Noted("source.0", records.pack({"sequence": 0, "epoch": 1}), 2), 0.0)
    effects = source.step(WasRead(0, 0, 0, 1, entries(1, batch("a", "b"))), 0.0)
    effects += source.step(Tick(), 0.0) + source.step(Tick(), 0.03)
    assert Send(Unicast("p"), Pulse(0, 1, end_of(1), end_of(1), ((1, end_of(1)),))) in effects
    assert frames(effects)[-1] == Frame(0, 2, 1, end_of(1), end_of(1))


def test_a_tail_that_skips_entries_is_not_believed() -> None:
    source = started()
    assert frames(source.step(WasRead(0, 0, 5, 6, entries(6, batch("a"))), 0.0)) == []
    assert source.sequence == 0


def test_a_busy_source_pulses_no_more_often_than_settle_and_an_idle_one_at_once() -> None:
    source = Source("source", 0, SourceSettings(settle=0.02, heartbeat=9.0))
    source.step(Tick(), 0.0)
    source.step(Noted("plan.1", replace(PLAN, pulse=Unicast("p")).to_bytes(), 1), 0.0)
    source.step(Noted("source.0", records.pack({"sequence": 0, "epoch": 1}), 2), 0.0)

    def pulses(k: int, now: float) -> int:
        effects = source.step(WasRead(0, 0, k, k + 1, entries(k + 1, batch("a"))), now) + source.step(Tick(), now)
        return sum(isinstance(e, Send) and e.address == Unicast("p") for e in effects)

    busy = [pulses(k, 1.0 + k * 0.001) for k in range(60)]
    assert sum(busy) == 3  # at 1.000, 1.020 and 1.040
    assert busy[0] == 1
    assert pulses(60, 2.0) == 1


@pytest.mark.parametrize(("taken", "at_once"), [({"u": (1,), "v": (2,)}, 0), ({"u": (1,), "v": (1, 2)}, 1)])
def test_a_pulse_is_for_those_who_take_several_channels_and_for_others_a_heartbeat(
    taken: dict[str, tuple[int, ...]], at_once: int
) -> None:
    source = Source("source", 0, SourceSettings(heartbeat=0.25))
    source.step(Tick(), 0.0)
    source.step(Noted("plan.1", replace(PLAN, pulse=Unicast("p"), taken=taken).to_bytes(), 1), 0.0)
    source.step(Noted("source.0", records.pack({"sequence": 0, "epoch": 1}), 2), 0.0)

    def pulses(effects: list[Any]) -> int:
        return sum(isinstance(e, Send) and e.address == Unicast("p") for e in effects)

    effects = source.step(WasRead(0, 0, 0, 1, entries(1, batch("a"))), 1.0) + source.step(Tick(), 1.0)
    assert pulses(effects) == at_once
    assert pulses(source.step(Tick(), 1.25)) == 1


def test_entries_that_are_gone_from_the_log_are_not_spoken_for() -> None:
    source = started()
    found = frames(source.step(WasRead(0, 0, 0, 9, entries(9, batch("a")), first=9), 0.0))
    assert found + frames(source.step(Tick(), 5.0)) == []  # perhaps a marker was among them
    assert source.sequence == 9


def test_a_source_that_cannot_read_the_log_stops_saying_that_nothing_is_new() -> None:
    source = started(heartbeat=0.1, retry=0.1)
    source.step(WasRead(0, 0, 0, 0, ()), 0.0)
    assert len(frames(source.step(Tick(), 0.1))) == 2
    assert frames(source.step(Tick(), 2.0)) == []


def test_a_message_that_no_frame_can_hold_is_left_to_the_log_and_never_claimed() -> None:
    source = started()
    large = encode_payload({"s": "a", "x": "y"}) + b" " * MOST_BYTES
    small = encode_payload({"s": "a"})
    payloads = (small, large, small, large, large)
    entry = encode_entry(Batch("c", 0, payloads))
    found = frames(source.step(WasRead(0, 0, 0, 1, entries(1, entry)), 0.0)) + frames(source.step(Tick(), 0.3))
    mine = [f for f in found if f.channel == 1]
    claimed = [at for f in mine for at in range(f.after + 1, min(f.upto, place(1, 9)) + 1)]
    assert [m[0] for f in mine for m in f.messages] == [place(1, 0), place(1, 2)]
    assert not {place(1, 1), place(1, 3), place(1, 4)} & set(claimed)
    assert mine[-1].upto == end_of(1), "what follows is claimed again"
    assert all(encode(f) for f in mine)
    assert source.counts["too large"] == 3


def test_foreign_entries_and_payloads_are_counted_and_passed_over() -> None:
    source = started()
    bad = encode_entry(Batch("c", 0, (b"\xff", encode_payload({"s": "a"}))))
    found = frames(source.step(WasRead(0, 0, 0, 2, entries(1, b"noise noise", bad)), 0.0))
    found += frames(source.step(Tick(), 0.0))
    assert [m[0] for f in found for m in f.messages] == [place(2, 1)]
    assert source.counts["payload"] == 1
    assert source.counts["entry magic"] == 1
