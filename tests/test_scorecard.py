"""The scorecard says what broke, and ends with a code that says so too."""

from __future__ import annotations

from pathlib import Path

import pytest

import scorecard
from scorecard import Score, Trial


def breaks(folder: Path, n: int) -> Score:
    raise AssertionError("three messages are missing\nand more")


def skips(folder: Path, n: int) -> Score:
    pytest.skip("not here")


def test_a_trial_that_breaks_is_a_row_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = (
        Trial("one", 5, 50, breaks),
        Trial("two", 7, 70, lambda folder, n: Score(n, "nothing")),
        Trial("three", 1, 1, skips),
    )
    found = [row[:4] for row in scorecard.rows(trials, quick=True, say=lambda text: None)]
    assert found == [
        ("one", "5", "three messages are missing", "BROKEN"),
        ("two", "7", "nothing", "held"),
        ("three", "0", "not here", "skipped"),
    ]
    monkeypatch.setattr(scorecard, "TRIALS", trials)
    assert scorecard.main(["--quick"]) == 1
    assert scorecard.main(["--only", "two"]) == 0
    assert "70" in capsys.readouterr().out


def test_planted_bugs_are_among_the_trials_and_every_size_is_the_larger_in_the_whole_run() -> None:
    assert sum(trial.what.startswith("planted") for trial in scorecard.TRIALS) == 4
    assert all(trial.full >= trial.quick for trial in scorecard.TRIALS)
