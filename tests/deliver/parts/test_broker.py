"""The broker: forwards by channel, thins out only while its filter is active, and never changes a claim."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from statistics import median
from time import process_time
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.broker import Broker, BrokerSettings, FilterMode
from narrowcast.deliver.parts.effects import Send
from narrowcast.deliver.parts.events import Arrived, Noted, Tick, Written
from narrowcast.deliver.parts.filter_moves import next_order
from narrowcast.deliver.parts.relay import glance
from narrowcast.deliver.parts.wanted_below import WantedBelow
from narrowcast.deliver.routing.routes import by_tree
from narrowcast.deliver.transport import Link, Overlay
from narrowcast.deliver.wire import Attach, Carried, Frame, Malformed, encode, encode_payload, end_of, place
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.predicate import predicate

TREE = Overlay("root", (("root", "left"), ("root", "right")))
MESSAGES = tuple(Carried(place(2, k), 0, encode_payload({"p": p})) for k, p in enumerate((1, 3, 9)))
FRAME = Frame(0, 0, 1, end_of(1), end_of(3), MESSAGES)


def told(*profiles: str, version: int = 1) -> bytes:
    """What a child says that it wants."""
    return records.pack({"version": version, "up": list(profiles), "turn": 0, "subs": {}, "sure": {}, "changes": 0})


def broker(mode: FilterMode | None = None, filters: tuple[str, ...] = ("root",)) -> Broker:
    """The root, with "p > 5" wanted on the left, "p < 2" on the right, and "p = 3" at an edge of its own."""
    found = Broker("root", BrokerSettings(forget=1.0))
    found.step(Noted("plan.1", by_tree(TREE, filters).to_bytes(), 1), 0.0)
    found.step(Noted(records.wants_of(1, "root"), None, 0), 0.0)
    own = {"profile": "p = 3", "edge": "edge-w", "gateway": "root"}
    found.step(Noted(records.named(records.SUBSCRIPTION, "w"), records.pack(own), 2), 0.0)
    for child, profile in (("left", "p > 5"), ("right", "p < 2")):
        found.step(Noted(records.wants_of(1, child), told(profile), 3), 0.0)
    if mode is not None:
        key = records.named(records.FILTER, "root")
        found.step(Noted(key, records.pack({"state": mode.value}), 2), 0.0)
    return found


def sent(found: Broker, frame: Frame = FRAME, now: float = 0.1) -> dict[str, list[int]]:
    """The places each target gets; the claim must be the frame's own. The frame may have been here before."""
    found._passed.clear()
    got = {}
    for effect in found.step(Arrived(frame), now):
        assert isinstance(effect, Send)
        assert isinstance(effect.address, Link)
        assert isinstance(effect.what, Frame)
        assert (effect.what.after, effect.what.upto) == (frame.after, frame.upto)
        got[effect.address.node] = [m[0] for m in effect.what.messages]
    return got


def test_an_active_filter_sends_each_child_what_someone_below_wants() -> None:
    found = broker()
    found.step(Arrived(Attach("edge-w", 1, 0)), 0.0)
    assert sent(found) == {"left": [place(2, 2)], "right": [place(2, 0)], "edge-w": [place(2, 1)]}


@pytest.mark.parametrize("mode", [FilterMode.PASSIVE, FilterMode.MIGRATING, FilterMode.SPAWNING])
def test_a_filter_that_does_not_work_passes_everything_on(mode: FilterMode) -> None:
    everything = [m[0] for m in FRAME.messages]
    assert sent(broker(mode)) == {"left": everything, "right": everything}


def test_the_root_drops_what_nobody_wants_whether_its_filter_works_or_not() -> None:
    unwanted = Frame(0, 0, 1, end_of(1), end_of(3), (*MESSAGES, Carried(place(3, 0), 0, encode_payload({"p": 4}))))
    wanted = [m[0] for m in MESSAGES]
    assert sent(broker(FilterMode.PASSIVE), unwanted) == {"left": wanted, "right": wanted}
    unheard = broker(FilterMode.PASSIVE)
    unheard.step(Noted(records.wants_of(1, "left"), None, 4), 0.0)
    assert len(sent(unheard, unwanted)["right"]) == 4, "a child may want anything"


def test_an_edge_that_does_not_know_what_has_left_gets_nothing_until_it_does() -> None:
    found = broker()
    found.step(Arrived(Attach("edge-w", 1, 0)), 0.0)
    found.step(Noted(records.named(records.SUBSCRIPTION, "w"), None, 4), 0.0)
    assert sent(found)["edge-w"] == [place(2, 1)], "nothing has changed until the registry has it"
    at = found._places[1]
    while at.writing is not None:
        found.step(Written(at.request, 5), 0.0)
    assert "edge-w" not in sent(found)
    found.step(Arrived(Attach("edge-w", 1, 0, turn=1)), 0.0)
    assert sent(found)["edge-w"] == []


def test_a_damaged_frame_ends_here_whether_it_would_be_opened_or_not() -> None:
    sound = encode(FRAME)
    cut = sound[:-6] + sound[-4:]
    body = bytearray(sound[:-4])
    body[50:52] = (7).to_bytes(2, "big")  # another number of messages, under a checksum that is right
    forged = bytes(body) + crc32(body).to_bytes(4, "little")
    for data in (sound[:60] + b"?" + sound[61:], cut):
        assert glance(data) == Malformed("checksum")
    frame = glance(forged)
    assert isinstance(frame, Frame)
    filtering = broker()
    assert sent(filtering, frame) == {}, "it claims that there was nothing"
    assert filtering.counts["malformed frames"] == 1
    assert sent(filtering, glance(sound)) == sent(broker())  # type: ignore[arg-type]


def test_a_filter_can_be_woken_again() -> None:
    found = broker(FilterMode.PASSIVE)
    found.step(Noted(records.named(records.FILTER, "root"), None, 3), 0.0)
    assert sent(found)["left"] == [place(2, 2)]


def test_filters_migrate_and_spawn_while_frames_flow() -> None:
    """Every order on the way from one placement to another, to a broker with a filter by plan and to one without."""
    everything, wanted = [m[0] for m in FRAME.messages], [place(2, 2)]
    for here, filters, placement in ((broker(filters=()), (), {"root"}), (broker(), ("root",), {"left"})):
        states = dict.fromkeys(filters, "active")
        while (order := next_order(states, placement)) is not None:
            name, mode = order
            states[name] = mode.value
            record = records.pack({"state": mode.value, "version": len(states), "epoch": 1})
            if name == "root":
                here.step(Noted(records.named(records.FILTER, "root"), record, 10), 0.1)
            assert sent(here)["left"] == (wanted if states.get("root") == "active" else everything)
        assert {name for name, state in states.items() if state == "active"} == placement


def test_an_order_for_another_epoch_is_not_for_this_one() -> None:
    found = broker()
    record = records.pack({"state": "passive", "version": 1, "epoch": 7})
    found.step(Noted(records.named(records.FILTER, "root"), record, 10), 0.1)
    assert sent(found)["left"] == [place(2, 2)]


def test_a_state_that_is_not_understood_passes_everything_on() -> None:
    found = broker()
    for data in (b'{"state":"asleep"}', b"{}", b"no json", b"[]"):
        found.step(Noted(records.named(records.FILTER, "root"), data, 9), 0.0)
        assert len(sent(found)["left"]) == 3


def test_an_edge_the_plan_does_not_know_gets_everything() -> None:
    found = broker()
    found.step(Arrived(Attach("stranger", 1, 0)), 0.0)
    assert len(sent(found)["stranger"]) == 3


def test_an_attachment_that_is_not_repeated_ends() -> None:
    found = broker()
    found.step(Arrived(Attach("edge-w", 1, 0)), 0.0)
    assert "edge-w" in sent(found, now=0.9)
    found.step(Tick(), 1.1)
    assert "edge-w" not in sent(found, now=1.1)
    found.step(Arrived(Attach("edge-w", 1, 0)), 1.2)
    found.step(Arrived(Attach("edge-w", 1, 0, on=False)), 1.3)
    assert "edge-w" not in sent(found, now=1.4)


def test_a_frame_of_a_plan_it_does_not_know_is_dropped_and_counted() -> None:
    found = broker()
    assert sent(found, Frame(0, 0, 9, 0, 1)) == {}
    assert sent(found, Frame(0, 5, 1, 0, 1)) == {}
    assert found.counts["unknown channel"] == 2


def test_it_says_that_it_is_ready_once_it_knows_the_next_plan() -> None:
    found = broker()
    record = {"term": 1, "current": 0, "next": 1, "phase": "preparing", "cutover": {}}
    effects = found.step(Noted(records.EPOCH, records.pack(record), 5), 0.2)
    assert b'"ready":1' in effects[-1].data  # type: ignore[union-attr, operator]


def test_the_broker_loads_neither_numba_nor_numpy_nor_arrow_nor_spark() -> None:
    rooms = ", ".join(f"narrowcast.deliver.{name}" for name in ("parts.broker", "transport", "wire"))
    code = f"import {rooms}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert {"numba", "numpy", "pyarrow", "pyspark", "asyncio", "socket"}.isdisjoint(done.stdout.split())


BOUNDS = st.integers(0, 5)


@given(st.lists(st.tuples(st.sampled_from("lr"), BOUNDS), max_size=12))
def test_a_child_gets_what_any_subscription_below_it_wants_and_nothing_else(wanted: list[tuple[str, int]]) -> None:
    table = WantedBelow()
    for child, bound in wanted:
        table.add(child, f"p > {bound}")
    for side in "lr":
        bounds = [bound for child, bound in wanted if child == side]
        assert (side in table) == bool(bounds)
        for p in range(8) if bounds else ():
            assert table.wants(side, {"p": p}) == any(p > bound for bound in bounds)


MANY = 800


def many() -> list[Noted]:
    """A tree with 800 different subscriptions, half of them below each child, as the registry holds it."""
    texts = [f"symbol = 'S{k}' AND price BETWEEN {k} AND {k + 10}" for k in range(MANY)]
    return [
        Noted("plan.1", by_tree(TREE, ["root"]).to_bytes(), 1),
        Noted(records.wants_of(1, "root"), None, 0),
        Noted(records.wants_of(1, "left"), told(*texts[::2]), 3),
        Noted(records.wants_of(1, "right"), told(*texts[1::2]), 3),
    ]


def forget_parsed() -> None:
    """As in a process that has just started."""
    parsed.cache_clear()
    predicate.cache_clear()


def epoch_is(phase: str, current: int, next_: int | None) -> Noted:
    record = {"term": 1, "current": current, "next": next_, "phase": phase, "cutover": {}}
    return Noted(records.EPOCH, records.pack(record), 5 + current)


def prepared(found: Broker, now: float) -> int:
    """Tick as long as the broker wants it at once; how often that was."""
    ticks = 0
    while found.wake_at <= now:
        found.step(Tick(), now)
        ticks += 1
    return ticks


FIRST = tuple(
    Carried(place(2, k), 0, encode_payload({"symbol": f"S{k}", "price": k + (0 if k < 32 else 11)})) for k in range(64)
)
LARGE = Frame(0, 0, 1, end_of(1), end_of(2), FIRST)


@pytest.mark.parametrize("in_time", [True, False], ids=["prepared in time", "plan and frame arrive together"])
def test_the_first_frame_of_an_epoch_with_800_subscriptions_is_answered_in_50_ms(in_time: bool) -> None:
    plan, took, longest = many(), [], []
    for _ in range(5):
        forget_parsed()
        found = Broker("root")
        begin = process_time()
        for each in plan:
            found.step(each, 0.0)
        found.step(epoch_is("preparing", 0, 1), 0.0)
        longest.append(process_time() - begin)
        if in_time:
            assert prepared(found, 0.0) > 5
        found.step(epoch_is("steady", 1, None), 0.1)
        begin = process_time()
        got = sent(found, LARGE)
        took.append(process_time() - begin)
        everything = [m[0] for m in FIRST]
        assert got["left"] == (everything[:32:2] if in_time else everything)
    assert median(took) < 0.05
    assert median(longest) < 0.05  # nor do frames of the epoch before wait for the next plan


def test_what_is_passed_on_before_the_filter_is_ready_is_all_and_soon_it_is_filtered() -> None:
    forget_parsed()
    found = Broker("root")
    for each in many():
        found.step(each, 0.0)
    assert len(sent(found, LARGE, now=0.0)["right"]) == 64
    prepared(found, 0.0)
    assert sent(found, LARGE)["right"] == [m[0] for m in FIRST[1:32:2]]
    assert found.wake_at > 0.0


def test_a_plan_that_is_taken_back_while_it_is_prepared_is_forgotten() -> None:
    forget_parsed()
    found = Broker("root")
    for each in many():
        found.step(each, 0.0)
    found.step(Noted("plan.1", None, 2), 0.0)
    found.step(epoch_is("steady", 0, None), 0.0)
    assert prepared(found, 0.0) <= 1
    assert sent(found) == {}


def test_a_root_passes_on_once_what_several_sources_send_in_frames_of_their_own() -> None:
    found = broker()
    small = [replace(FRAME, after=end_of(k), upto=end_of(k + 1), messages=()) for k in (1, 2, 3)]

    def passed(frame: Frame) -> int:
        return len(found.step(Arrived(frame), 0.1))

    assert [passed(each) for each in (FRAME, FRAME, *small[:2])] == [2, 0, 0, 0]
    assert passed(small[2]) == 2, "this goes further"
    assert passed(replace(FRAME, upto=end_of(9))) == 2, "and so does this, of which a part is known"
    assert passed(replace(FRAME, shard=1)) == 2, "another shard"
    assert found.counts["repeated frames"] == 3


def test_a_broker_below_the_root_passes_on_whatever_comes() -> None:
    found = Broker("left")
    found.step(Noted("plan.1", by_tree(Overlay("root", (("root", "left"), ("left", "far"))), ()).to_bytes(), 1), 0.0)
    assert [len(found.step(Arrived(FRAME), 0.1)) for _ in range(2)] == [1, 1]
