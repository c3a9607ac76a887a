"""The checker: each kind of broken promise has its name, and a run that tried nothing does not count."""

from __future__ import annotations

from typing import Any

import pytest

from history import History, check


def wants(profile: str, message: Any) -> bool:
    return bool(message["p"] > int(profile))


def history(*delivered: int, n: int = 4) -> History:
    """Entries 1..n with p = their number, all acknowledged; u wants p > 1 and got these."""
    found = History()
    found.subscribed("u", "1", {0: (0, 0)})
    for q in range(1, n + 1):
        found.logged(0, q, 0, {"p": q})
        found.acked(0, q, 0, {"p": q}, found.now())
    for q in delivered:
        found.delivered("u", 0, q, 0, {"p": q})
    return found


def test_a_whole_run_is_sound_and_counts() -> None:
    verdict = check(history(2, 3, 4), wants=wants)
    assert verdict.sound
    assert verdict.counts
    assert str(verdict).startswith("3 delivered, 0 lost, 0 missed")


@pytest.mark.parametrize(
    ("delivered", "fault", "at"),
    [
        ((2, 4), "missed", 3),
        ((2, 3, 3, 4), "repeated", 3),
        ((1, 2, 3, 4), "wrong", 1),
        ((3, 2, 4), "disordered", 2),
    ],
)
def test_each_broken_promise_is_named(delivered: tuple[int, ...], fault: str, at: int) -> None:
    verdict = check(history(*delivered), wants=wants)
    assert not verdict.sound
    assert getattr(verdict, fault) == (("u", (0, at, 0)),)


def test_an_acknowledged_message_that_the_log_does_not_hold_is_lost() -> None:
    found = history(2, 3, 4)
    del found.log[0, 1, 0]
    found.log[0, 4, 0] = {"p": 7}
    verdict = check(found, wants=wants)
    assert verdict.lost == ((0, 1, 0), (0, 4, 0))
    assert verdict.wrong == (("u", (0, 4, 0)),)


def test_what_lies_before_the_start_is_neither_owed_nor_welcome() -> None:
    found = history(3, 4)
    found.subscriptions["u"].start[0] = (2, 0)
    found.subscriptions["u"].since = 100
    assert check(found, wants=wants).sound
    found.delivered("u", 0, 2, 0, {"p": 2})
    assert check(found, wants=wants).wrong


def test_a_start_ahead_of_what_was_sent_afterwards_excuses_nothing() -> None:
    found = history(4)
    found.subscriptions["u"].start[0] = (3, 0)
    assert len(check(found, wants=wants).missed) == 2


def test_an_announced_gap_excuses_exactly_what_is_in_it() -> None:
    found = history(4)
    found.gap("u", 0, (2, 0), (3, 0))
    verdict = check(found, wants=wants)
    assert verdict.missed == (("u", (0, 2, 0)),)
    assert verdict.excused == 1


def test_one_that_left_may_lack_the_end_but_nothing_before() -> None:
    found = history(2)
    found.ended("u")
    assert check(found, wants=wants).sound
    found = history(3)
    found.ended("u")
    assert check(found, wants=wants).missed == (("u", (0, 2, 0)),)


def test_a_run_without_its_faults_or_without_anything_to_miss_does_not_count() -> None:
    found = history(2, 3, 4)
    found.asked = {"crash", "loss"}
    found.fault("loss")
    found.subscribed("v", "99", {0: (0, 0)})
    verdict = check(found, wants=wants)
    assert verdict.sound
    assert verdict.doubts == ("no crash happened", "v had no message to miss")


def test_unacknowledged_messages_may_come_or_not() -> None:
    found = history(2, 3, 4)
    found.logged(0, 5, 0, {"p": 5})
    assert check(found, wants=wants).sound
    found.delivered("u", 0, 5, 0, {"p": 5})
    assert check(found, wants=wants).sound


def test_processes_can_write_their_history_as_lines() -> None:
    found = History()
    found.read(
        [
            '["subscribed", "u", "1", {"0": [0, 0]}]',
            '["logged", 0, 1, 0, {"p": 2}]',
            '["acked", 0, 1, 0, {"p": 2}]',
            '["gap", "u", 0, [0, 0], [0, 5]]',
            '["delivered", "u", 0, 1, 0, {"p": 2}]',
        ]
    )
    assert check(found, wants=wants).sound
    with pytest.raises(ValueError, match=r"record must be one of .*, got 'nonsense'"):
        found.read(['["nonsense"]'])
