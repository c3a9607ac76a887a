"""The publishing side: batching, one batch at a time, repeats under the same name, and honest doubt."""

from __future__ import annotations

import pytest

from narrowcast.deliver.parts.effects import Acked, Append, Rejected, Unsure
from narrowcast.deliver.parts.events import Appended, Failed, Publish, Tick
from narrowcast.deliver.parts.publisher import Publisher, PublisherSettings
from narrowcast.deliver.wire import Batch, decode_entry
from narrowcast.errors import InputError

SETTINGS = PublisherSettings(most_messages=4, linger=0.01, retry=0.2, window=1.0)


def payloads_of(effect: object) -> tuple[bytes, ...]:
    assert isinstance(effect, Append)
    batch = decode_entry(effect.data)
    assert isinstance(batch, Batch)
    return batch.payloads


def test_messages_wait_for_company_and_are_acknowledged_where_they_stand() -> None:
    client = Publisher("c", SETTINGS)
    assert client.step(Publish(1, 0, (b"a",)), 0.0) == []
    assert client.step(Publish(2, 0, (b"b", b"c")), 0.001) == []
    assert client.wake_at == pytest.approx(0.01)
    (append,) = client.step(Tick(), 0.01)
    assert payloads_of(append) == (b"a", b"b", b"c")
    assert client.step(Appended(append.request, 7), 0.02) == [Acked(1, 0, 7, 0), Acked(2, 0, 7, 1)]  # type: ignore[union-attr]


def test_a_full_batch_goes_at_once_and_the_next_waits_for_its_answer() -> None:
    client = Publisher("c", SETTINGS)
    (first,) = client.step(Publish(1, 0, (b"a",) * 4), 0.0)
    assert client.step(Publish(2, 0, (b"b",) * 4), 0.0) == []
    effects = client.step(Appended(first.request, 1), 0.1)  # type: ignore[union-attr]
    assert effects[0] == Acked(1, 0, 1, 0)
    assert payloads_of(effects[1]) == (b"b",) * 4


def test_shards_do_not_wait_for_each_other() -> None:
    client = Publisher("c", SETTINGS)
    assert len(client.step(Publish(1, 0, (b"a",) * 4), 0.0)) == 1
    assert len(client.step(Publish(2, 1, (b"b",) * 4), 0.0)) == 1


def test_a_repeat_has_the_same_name_and_bytes_and_either_answer_will_do() -> None:
    client = Publisher("c", SETTINGS)
    (first,) = client.step(Publish(1, 0, (b"a",) * 4), 0.0)
    (again,) = client.step(Tick(), 0.2)
    assert isinstance(first, Append)
    assert isinstance(again, Append)
    assert (again.dedup, again.data) == (first.dedup, first.data)
    assert client.step(Appended(first.request, 3), 0.3) == [Acked(1, 0, 3, 0)]
    assert client.step(Appended(again.request, 3), 0.4) == []


def test_a_failure_is_tried_again_sooner() -> None:
    client = Publisher("c", SETTINGS)
    (first,) = client.step(Publish(1, 0, (b"a",) * 4), 0.0)
    client.step(Failed(first.request), 0.01)  # type: ignore[union-attr]
    assert client.wake_at == pytest.approx(0.11)


def test_when_the_log_may_have_forgotten_the_name_nothing_is_promised() -> None:
    client = Publisher("c", SETTINGS)
    (first,) = client.step(Publish(1, 0, (b"a",) * 4), 0.0)
    client.step(Publish(2, 0, (b"b",)), 0.0)
    effects = client.step(Tick(), 1.0)
    assert effects[0] == Unsure(1)
    assert payloads_of(effects[1]) == (b"b",)
    assert client.step(Appended(first.request, 3), 1.1) == []  # type: ignore[union-attr]


def test_what_the_log_will_never_take_is_said_at_once_and_the_next_batch_goes() -> None:
    client = Publisher("c", SETTINGS)
    (first,) = client.step(Publish(1, 0, (b"a",) * 4), 0.0)
    client.step(Publish(2, 0, (b"b",) * 4), 0.0)
    effects = client.step(Failed(first.request, "too large", final=True), 0.01)  # type: ignore[union-attr]
    assert effects[0] == Rejected(1, "too large")
    assert payloads_of(effects[1]) == (b"b",) * 4


def test_a_refusal_after_a_try_without_an_answer_says_that_nobody_knows_of_that_one() -> None:
    client = Publisher("c", SETTINGS)
    (first,) = client.step(Publish(1, 0, (b"a",) * 4), 0.0)
    client.step(Failed(first.request), 0.01)  # type: ignore[union-attr]
    (second,) = client.step(Tick(), 0.2)
    (said,) = client.step(Failed(second.request, "disk is full", final=True), 0.21)  # type: ignore[union-attr]
    assert said == Rejected(1, "disk is full; it is unknown whether an earlier try of the same messages got through")


def test_a_message_that_is_too_large_is_refused_before_anything_is_sent() -> None:
    client = Publisher("c", PublisherSettings(most_payload=10))
    with pytest.raises(InputError, match="message must be at most 10 bytes, got 11"):
        client.step(Publish(1, 0, (b"a", b"x" * 11)), 0.0)
    assert client.step(Tick(), 1.0) == []


def test_a_name_too_long_for_an_entry_is_refused_at_the_start() -> None:
    with pytest.raises(InputError, match="at most 255 bytes, got 300"):
        Publisher("c" * 300)


def test_nothing_at_once_is_refused() -> None:
    with pytest.raises(InputError, match="1 to 65534 messages, got 0"):
        Publisher("c").step(Publish(1, 0, ()), 0.0)
