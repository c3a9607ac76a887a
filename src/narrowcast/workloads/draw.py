"""Weighted distinct choices: exact, in bounded memory, without an n × n anything.

Drawing one thing after another without putting it back ("successive sampling") is the same as
drawing with replacement and ignoring repeats, and the same as keeping the m smallest of the keys
E_i / w_i with E_i exponential. The first is fast when few of many are wanted, the second always ends;
both give exactly the same distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.model.arrays import Floats, Ints

#: Values held at once while drawing; part of the seeded result, so it never depends on the machine.
CHUNK = 1 << 22


def exponential_ranks(rng: np.random.Generator, size: int, decay: float, n: int) -> NDArray[np.int32]:
    """n ranks in [0, size), drawn with weight e^(−decay·rank/size): the inverse of a cut-off geometric."""
    u = rng.random(n)
    if decay == 0.0:
        u *= size
    else:
        u *= np.expm1(-decay)
        np.log1p(u, out=u)
        u *= -size / decay
    return np.minimum(u.astype(np.int32), size - 1)


def rank_weights(size: int, decay: float) -> Floats:
    """e^(−decay·x) for x = 0, 1/size, …, (size − 1)/size."""
    weights: Floats = np.exp(-decay * np.arange(size) / max(size, 1))
    return weights


def distinct_ranks(
    rng: np.random.Generator, rows: int, m: int, size: int, decay: float
) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """For each of `rows` choosers, m distinct ranks by weight: (first row, matrix with ascending rows) by chunks."""
    if m == 0:
        return
    weights = rank_weights(size, decay)
    # Repeats are few when twice the draws would already be enough on average.
    rejection = m < size and -np.expm1(2 * m * np.log1p(-weights / weights.sum())).sum() >= m
    step = max(1, CHUNK // (m if rejection else size))
    for first in range(0, rows, step):
        n = min(step, rows - first)
        if rejection:
            yield first, _first_distinct(rng, n, m, size, decay)
        else:
            keys = rng.standard_exponential((n, size)) / weights
            yield first, np.sort(smallest(keys, m).astype(np.int32), axis=1)


def _first_distinct(rng: np.random.Generator, n: int, m: int, size: int, decay: float) -> NDArray[np.int32]:
    """The first m distinct values of n endless sequences of draws. Never overshoots: each round draws
    only as many as are still missing, so no draw is ever thrown away for coming too late."""
    drawn = exponential_ranks(rng, size, decay, n * m).reshape(n, m)
    drawn.sort(axis=1)
    todo: Ints = np.arange(n)
    while True:
        rows = drawn[todo]
        repeat = np.zeros(rows.shape, np.bool_)
        np.equal(rows[:, 1:], rows[:, :-1], out=repeat[:, 1:])
        again = repeat.any(axis=1)
        if not again.any():
            return drawn
        todo, rows, repeat = todo[again], rows[again], repeat[again]
        rows[repeat] = exponential_ranks(rng, size, decay, int(repeat.sum()))
        rows.sort(axis=1)
        drawn[todo] = rows


def smallest(keys: NDArray[Any], m: int) -> NDArray[np.int64]:
    """The columns of the m smallest keys of each row, in no particular order."""
    if m >= keys.shape[1]:
        return np.broadcast_to(np.arange(keys.shape[1]), keys.shape)
    return np.argpartition(keys, m - 1, axis=1)[:, :m]
