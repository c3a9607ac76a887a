"""Sealed frames: opened by those who have the session's key, once, and by nobody else; all else is refused."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.wire import Attach, Frame, Malformed, Pulse, Seal, decode, encode, end_of, in_generation, place
from narrowcast.deliver.wire.columns import Columns
from narrowcast.deliver.wire.frame import EVERY, FRAME_BYTES
from narrowcast.deliver.wire.seal import WINDOW, session_key
from narrowcast.errors import TransportError

ROOT, PLAN, SYSTEM = b"r" * 32, 0xBEEF, 0xABCDEF
AT = in_generation(77, 12)
FRAME = Frame(0, 7, 3, end_of(AT - 1), end_of(AT), ((place(AT, 0), 1, b'{"price":1}'),))


def sender(root: bytes = ROOT, plan: int = PLAN, system: int = SYSTEM) -> Seal:
    found = Seal(system, sealed=True)
    found.know(3, plan)
    found.add_root(3, root)
    return found


def receiver(*channels: int, name: str = "") -> Seal:
    found = Seal(SYSTEM, sealed=True, name=name)
    found.know(3, PLAN)
    found.add_keys(3, PLAN, {c: session_key(ROOT, 3, c, PLAN) for c in channels or (7, EVERY)})
    return found


def opened(seal: Seal, data: bytes) -> object:
    found = seal.open(data)
    return found.reason if isinstance(found, Malformed) else decode(found)


LONG = pa.record_batch({"text": ["x" * 1000] * 40})
ROWS = Frame(0, 7, 3, end_of(AT - 1), end_of(AT), Columns(place(AT, 0) - 1, np.arange(40), LONG))  # larger than LARGE
PULSE = Pulse(0, 3, end_of(AT - 4), end_of(AT), ((7, end_of(AT)),))


@pytest.mark.parametrize("what", [FRAME, Attach("edge", 3, 7), PULSE, ROWS])
def test_what_is_sealed_comes_out_as_it_went_in_and_only_once(what: Frame | Attach | Pulse) -> None:
    data = sender().pack(what)
    other = receiver()
    assert opened(other, data) == what
    assert opened(other, data) == "replayed"
    assert opened(receiver(), data) == what  # somebody else has not had it yet


def test_nothing_of_a_message_can_be_read_on_the_way_and_the_same_frame_is_never_sealed_the_same() -> None:
    seal = sender()
    assert b"price" not in seal.pack(FRAME)
    assert len({seal.pack(FRAME) for _ in range(100)}) == 100
    assert len({sender().pack(FRAME)[24:30] for _ in range(100)}) == 100  # nor after a restart
    assert len(seal.pack(Frame(0, 7, 3, end_of(AT - 1), end_of(AT)))) == FRAME_BYTES


def test_a_receiver_opens_exactly_the_sessions_it_has_keys_for() -> None:
    other = Frame(0, 8, 3, end_of(AT - 1), end_of(AT))
    assert opened(receiver(7), sender().pack(other)) == "no key"
    assert opened(receiver(8), sender().pack(other)) == other
    keys = {session_key(ROOT, epoch, channel, plan) for epoch in (1, 2) for channel in (1, 2) for plan in (1, 2)}
    assert len(keys) == 8


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (encode(FRAME, SYSTEM, PLAN), "forged"),
        (sender(root=b"x" * 32).pack(FRAME), "forged"),
        (sender(system=5).pack(FRAME), "foreign"),
        (sender(plan=5).pack(FRAME), "foreign"),
        (encode(FRAME), "foreign"),
    ],
    ids=("not sealed", "another key", "another system", "another plan", "no system"),
)
def test_what_others_made_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    assert opened(receiver(), data) == reason


@pytest.mark.parametrize("frame", [FRAME, ROWS], ids=("messages", "columns"))
@given(data=st.data())
def test_a_frame_that_was_changed_or_cut_anywhere_is_refused(frame: Frame, data: st.DataObject) -> None:
    whole = bytearray(sender().pack(frame))
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    assert not isinstance(opened(receiver(), bytes(whole)), Frame)
    whole[bit // 8] ^= 1 << bit % 8
    assert not isinstance(opened(receiver(), bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])), Frame)


@given(st.binary(max_size=120))
def test_noise_does_not_raise(noise: bytes) -> None:
    for data in (noise, b"nc\x03" + noise, sender().pack(FRAME)[:24] + noise):
        assert not isinstance(opened(receiver(), data), Frame | Pulse | Attach)


def test_what_is_sealed_for_one_node_is_for_nobody_else() -> None:
    data = sender().pack(FRAME, "edge-1")
    assert opened(receiver(7, name="edge-1"), data) == FRAME
    assert opened(receiver(7, name="edge-2"), data) == "forged"
    assert opened(receiver(7), data[:3] + bytes([data[3] & ~0x40]) + data[4:]) == "forged"


def test_without_a_key_nothing_is_sent_and_a_plan_under_an_old_number_makes_old_keys_useless() -> None:
    with pytest.raises(TransportError, match="no key"):
        Seal(SYSTEM, sealed=True).pack(FRAME)
    edge = receiver()
    data = sender().pack(FRAME)
    edge.know(3, PLAN + 1)
    assert opened(edge, data) == "foreign"
    assert opened(edge, sender(plan=PLAN + 1).pack(FRAME)) == "no key"
    edge.know(3, PLAN)
    edge.forget(3)
    assert opened(edge, data) == "no key"


@given(st.lists(st.integers(1, 3 * WINDOW), max_size=60))
def test_a_number_is_new_once_unless_it_is_too_old_to_say(numbers: list[int]) -> None:
    seal, seen, last = Seal(SYSTEM), set(), 0
    for number in numbers:
        new = seal._is_new(1, 1, b"sender" + number.to_bytes(6, "big"))
        if last - number < WINDOW:
            assert new is (number not in seen)
        else:
            assert not new
        seen.add(number)
        last = max(last, number)


def test_frames_that_overtake_each_other_are_all_taken() -> None:
    seal, edge = sender(), receiver()
    packets = [seal.pack(FRAME) for _ in range(500)]
    Random(1).shuffle(packets)
    assert [opened(edge, data) == FRAME for data in packets] == [True] * 500
    assert {opened(edge, data) for data in packets} == {"replayed"}


def test_without_seals_a_frame_must_still_be_of_this_system_and_plan() -> None:
    plain = Seal(SYSTEM)
    plain.know(3, PLAN)
    assert opened(plain, encode(FRAME, SYSTEM, PLAN)) == FRAME
    assert opened(plain, encode(FRAME, SYSTEM + 1, PLAN)) == "foreign"
    assert opened(plain, encode(FRAME, SYSTEM, PLAN + 1)) == "foreign"
    assert opened(plain, sender().pack(FRAME)) == Malformed("checksum")
