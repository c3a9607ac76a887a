"""Weighted distinct choices: both ways of drawing have the distribution of the definition."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.market import one_after_another
from narrowcast.workloads import draw as _draw


def chosen(rows: int, m: int, size: int, decay: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([part for _, part in _draw.distinct_ranks(rng, rows, m, size, decay)])


@given(
    rows=st.integers(1, 20),
    size=st.integers(1, 60),
    part=st.floats(0, 1),
    decay=st.sampled_from([0.0, 1.0, 8.0, 40.0]),
    seed=st.integers(0, 99),
)
def test_every_row_has_m_distinct_ranks_in_order(rows: int, size: int, part: float, decay: float, seed: int) -> None:
    m = max(1, round(part * size))
    drawn = chosen(rows, m, size, decay, seed)
    assert drawn.shape == (rows, m)
    assert (np.diff(drawn, axis=1) > 0).all()
    assert drawn.min() >= 0
    assert drawn.max() < size


@pytest.mark.parametrize(("m", "size", "decay"), [(2, 40, 8.0), (3, 12, 8.0), (4, 6, 3.0), (2, 30, 0.0)])
def test_ranks_are_chosen_as_often_as_one_after_another(m: int, size: int, decay: float) -> None:
    trials = 6000
    rng = random.Random(1)
    weights = _draw.rank_weights(size, decay).tolist()
    by_hand = np.zeros(size)
    for _ in range(trials):
        by_hand[one_after_another(rng, weights, m)] += 1
    ours = np.bincount(chosen(trials, m, size, decay).ravel(), minlength=size)
    # Two binomial counts with the same chance: five standard deviations apart is no accident.
    spread = np.sqrt(2 * np.maximum(by_hand * (1 - by_hand / trials), 4))
    assert (np.abs(ours - by_hand) < 5 * spread).all()


def test_both_ways_of_drawing_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    trials, m, size, decay = 20_000, 3, 50, 8.0
    by_rejection = np.bincount(_draw._first_distinct(rng, trials, m, size, decay).ravel(), minlength=size)
    keys = rng.standard_exponential((trials, size)) / _draw.rank_weights(size, decay)
    by_keys = np.bincount(_draw.smallest(keys, m).ravel(), minlength=size)
    spread = np.sqrt(2 * np.maximum(by_keys * (1 - by_keys / trials), 4))
    assert (np.abs(by_rejection - by_keys) < 5 * spread).all()


def test_a_draw_follows_the_cut_off_exponential() -> None:
    size, decay, n = 25, 8.0, 200_000
    drawn = np.bincount(_draw.exponential_ranks(np.random.default_rng(0), size, decay, n), minlength=size)
    weights = _draw.rank_weights(size, decay)
    expected = n * weights / weights.sum()
    assert (np.abs(drawn - expected) < 5 * np.sqrt(expected)).all()


def test_choosing_nearly_everything_ends() -> None:
    assert chosen(10, 99, 100, 30.0).shape == (10, 99)
    assert (chosen(3, 100, 100, 30.0) == np.arange(100)).all()
