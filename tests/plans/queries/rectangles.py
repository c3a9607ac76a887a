"""Queries that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

import narrowcast as nc

BASE = {"km": 365e-5, "kt": 3.25e-5, "ku": 0.16e-5}
THREE = [[[0, 2], [0, 1]], [[0, 1], [0, 2]], [[1, 2], [1, 2]]]
ORACLE = {"km": 10, "kt": 9, "ku": 4}


def rectangles(n: int, seed: int) -> Any:
    """The study's rectangles: 100×100 up to 12 queries, 400×400 beyond."""
    return nc.workloads.rectangles(n=n, seed=seed % 2**32)


def local(n: int, seed: int, d: int = 2) -> Any:
    """The study's density whatever n is: the database grows with the queries."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 40 * n ** (1 / d), (n, d))
    return np.stack([low, low + rng.uniform(20, 40, (n, d))], axis=-1)
