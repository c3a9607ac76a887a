"""One rule for how many threads are started."""

import os

import pytest

from narrowcast.threads import thread_count


@pytest.mark.parametrize(("told", "threads"), [("1", 1), ("7", 7)])
def test_the_usual_variable_is_obeyed(told: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert thread_count() == threads


@pytest.mark.parametrize("told", [None, "", "0", "many"])
def test_otherwise_there_is_one_for_each_core(told: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if told is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert 1 <= thread_count() <= (os.cpu_count() or 1)
