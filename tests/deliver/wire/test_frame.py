"""Frames survive the way through bytes; anything else is refused with a reason, never with an exception."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.wire import (
    Attach,
    Carried,
    Frame,
    Malformed,
    Pulse,
    decode,
    encode,
    end_of,
    index_of,
    place,
    sequence_of,
)
from narrowcast.deliver.wire.frame import FRAME_BYTES, MESSAGE_BYTES, MOST_BYTES, SEAL_BYTES
from narrowcast.errors import InputError

REASONS = {"short", "long", "magic", "version", "kind", "checksum", "length", "order", "text"}
u32 = st.integers(0, 2**32 - 1)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    places = sorted(draw(st.sets(st.integers(2, 2**64 - 2), max_size=6)))
    after = draw(st.integers(0, places[0] - 1)) if places else draw(st.integers(0, 2**64 - 1))
    upto = draw(st.integers(places[-1] if places else after, 2**64 - 1))
    messages = tuple(Carried(at, draw(u32), draw(st.binary(max_size=40))) for at in places)
    return Frame(draw(st.integers(0, 2**16 - 1)), draw(u32), draw(u32), after, upto, messages)


def resealed(body: bytes) -> bytes:
    """With a checksum that is right, so that what is behind it is tried."""
    return body + crc32(body).to_bytes(4, "little")


@given(frames())
def test_a_frame_comes_back_as_it_went(frame: Frame) -> None:
    data = encode(frame)
    assert decode(data) == frame
    assert len(data) + SEAL_BYTES == FRAME_BYTES + sum(MESSAGE_BYTES + len(m[2]) for m in frame.messages)


@given(st.text(max_size=60), u32, u32, st.booleans())
def test_an_attachment_comes_back_as_it_went(edge: str, epoch: int, channel: int, on: bool) -> None:
    attach = Attach(edge, epoch, channel, on)
    assert decode(encode(attach)) == attach


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.lists(st.tuples(u32, st.integers(0, 2**40)), max_size=5))
def test_a_pulse_comes_back_as_it_went_unless_it_speaks_of_the_future(
    after: int, length: int, lately: list[tuple[int, int]]
) -> None:
    pulse = Pulse(3, 7, after, after + length, tuple(lately))
    honest = all(at <= after + length for _, at in lately)
    assert decode(encode(pulse)) == (pulse if honest else Malformed("order"))
    assert isinstance(decode(encode(pulse)[:-1]), Malformed)


@given(st.binary(max_size=120))
def test_noise_is_refused_with_a_reason(data: bytes) -> None:
    found = decode(data)
    assert isinstance(found, Malformed)
    assert found.reason in REASONS


@given(st.sampled_from([b"nc\x03" + bytes((kind,)) for kind in (1, 2, 3, 4, 7)]), st.binary(max_size=120))
def test_noise_with_a_right_head_and_checksum_does_not_raise(head: bytes, rest: bytes) -> None:
    found = decode(resealed(head + rest))
    assert repr(decode(resealed(head + rest), checked=True)) == repr(found)
    assert isinstance(decode(head + rest, checked=True), Frame | Attach | Pulse | Malformed)
    if isinstance(found, Frame):  # noise may be a frame, but never one that lies
        at = [found.after, *(m[0] for m in found.messages), found.upto]
        assert at == sorted(at)
        assert all(m[0] > found.after for m in found.messages)
    elif isinstance(found, Malformed):
        assert found.reason in REASONS


@given(frames(), st.data())
def test_one_flipped_bit_is_always_seen(frame: Frame, data: st.DataObject) -> None:
    whole = bytearray(encode(frame))
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    assert isinstance(decode(bytes(whole)), Malformed)


@given(frames(), st.data())
def test_a_cut_frame_is_refused(frame: Frame, data: st.DataObject) -> None:
    whole = encode(frame)
    assert isinstance(decode(whole[: data.draw(st.integers(0, len(whole) - 1))]), Malformed)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda body: b"xx" + body[2:], "magic"),
        (lambda body: body[:2] + b"\x63" + body[3:], "version"),
        (lambda body: body[:3] + b"\x63" + body[4:], "kind"),
        (lambda body: body[:4], "short"),
        (lambda body: body + b"\0", "length"),
        (lambda body: body[:-1], "length"),
        (lambda body: body[:34] + (2**40).to_bytes(8, "big") + body[42:], "order"),
        (lambda body: body[:50] + b"\xff\xff" + body[52:], "length"),
    ],
)
def test_each_fault_has_its_reason(change, reason) -> None:  # type: ignore[no-untyped-def]
    body = encode(Frame(1, 2, 3, end_of(4), end_of(5), (Carried(place(5, 0), 0, b"abc"),)))[:-4]
    assert decode(resealed(change(body))) == Malformed(reason)


def test_a_message_outside_the_claim_is_refused() -> None:
    for at in (place(4, 0), place(6, 0)):
        assert decode(encode(Frame(1, 2, 3, end_of(4), end_of(5), (Carried(at, 0, b""),)))) == Malformed("order")


def test_too_large_a_frame_cannot_be_made_and_is_refused() -> None:
    with pytest.raises(InputError, match="at most 1048576 bytes"):
        encode(Frame(0, 0, 0, 0, end_of(1), (Carried(place(1, 0), 0, bytes(MOST_BYTES)),)))
    assert decode(bytes(MOST_BYTES + 1)) == Malformed("long")


@given(st.integers(0, 2**47), st.integers(0, 65533))
def test_places_order_as_entries_and_indices_do(sequence: int, index: int) -> None:
    at = place(sequence, index)
    assert (sequence_of(at), index_of(at)) == (sequence, index)
    assert end_of(sequence - 1) < at < place(sequence, index + 1) <= end_of(sequence) < place(sequence + 1, 0)
