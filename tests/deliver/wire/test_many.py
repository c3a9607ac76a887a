"""What is read together is what would have been read one by one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.merged_frames import naive_merged
from narrowcast.deliver.wire import (
    Frame,
    Malformed,
    Pulse,
    decode_many,
    decode_payload,
    decode_payloads,
    encode,
    encode_payload,
)
from narrowcast.deliver.wire.bundle import bundled, unbundled

texts = st.text(max_size=6)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    texts,
    st.decimals(allow_nan=False, allow_infinity=False),
)
rows = st.dictionaries(texts, values, max_size=4)
# Pieces that are nothing alone, and something together with their neighbours.
pieces = st.sampled_from(
    [b"{}", b'{"a":1', b'"b":2}', b'{"a":[1', b"2]}", b"{},{}", b"1", b"[]", b"", b"{}\n", b"\xff", b"]"]
)


@given(st.lists(st.one_of(rows.map(encode_payload), pieces), max_size=8))
def test_payloads_decoded_together_are_those_decoded_one_by_one(payloads: list[bytes]) -> None:
    assert repr(decode_payloads(payloads)) == repr([decode_payload(each) for each in payloads])


def test_payloads_that_would_complete_each_other_stay_malformed() -> None:
    found = decode_payloads([b'{"a":[1', b"2]}", b'{},{"b":1}'])
    assert found == [Malformed("payload")] * 3


@st.composite
def packets(draw: st.DrawFn) -> list[bytes]:
    """Frames of a few channels, most of which connect; some lost, some damaged, some no frames."""
    ends: dict[tuple[int, int], int] = {}
    made = []
    for _ in range(draw(st.integers(0, 12))):
        key = (draw(st.integers(0, 1)), draw(st.integers(0, 2)))
        after = ends.get(key, 10)
        places = sorted(draw(st.sets(st.integers(after + 1, after + 9), max_size=4)))
        upto = ends[key] = after + 9
        messages = tuple((at, draw(st.integers(0, 3)), draw(st.binary(max_size=9))) for at in places)
        whole = encode(Frame(0, key[0], key[1], after, upto, messages))
        fate = draw(st.sampled_from(["", "", "", "", "lost", "damaged", "pulse", "noise"]))
        damaged = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
        made.append(
            {"": whole, "damaged": damaged, "pulse": encode(Pulse(0, 1, 2, 3)), "noise": b"noise"}.get(fate, b"")
        )
    return [each for each in made if each]


@given(packets())
def test_frames_read_together_say_what_they_said_one_by_one(found: list[bytes]) -> None:
    assert decode_many(found) == naive_merged(found)


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=20), st.integers(20, 300))
def test_a_bundle_gives_back_its_frames_in_order_and_keeps_to_its_size(frames: list[bytes], most: int) -> None:
    frames = [b"nc" + frame for frame in frames]
    made = list(bundled(frames, most))
    assert [frame for packet, _ in made for frame in unbundled(packet)] == frames
    assert sum(count for _, count in made) == len(frames)
    assert all(len(packet) <= most or count == 1 for packet, count in made)


@pytest.mark.parametrize("cut", [3, 5, 8, 12, 20])
def test_a_bundle_that_was_cut_is_left_for_its_reader_to_refuse(cut: int) -> None:
    ((packet, _),) = bundled([b"nc first frame", b"nc second frame"], 1000)
    assert unbundled(packet[:cut]) == [packet[:cut]]
    assert isinstance(decode_many(unbundled(packet[:cut]))[0], Malformed)


@given(st.binary(max_size=80))
def test_noise_that_looks_like_a_bundle_does_not_raise(noise: bytes) -> None:
    whole = b"nb\x01" + noise
    assert whole.endswith(b"".join(unbundled(whole)))


def test_json_itself_agrees() -> None:
    rows = [{"a": n, "b": "x" * n, "c": None} for n in range(50)]
    assert decode_payloads([json.dumps(row).encode() for row in rows]) == rows
