"""Rectangles as the paper's simulator draws them (§7.1): some in clusters, some anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

BASE = {"km": 365e-5, "kt": 3.25e-5, "ku": 0.16e-5}
THREE = [[[0, 2], [0, 1]], [[0, 1], [0, 2]], [[1, 2], [1, 2]]]
ORACLE = {"km": 10, "kt": 9, "ku": 4}


def rectangles(n: int, seed: int, side: float | None = None, cf: float = 0.8, sf: float = 0.3, df: float = 100) -> Any:
    rng = np.random.default_rng(seed)
    side = (100.0 if n <= 12 else 400.0) if side is None else side
    centres = rng.uniform(0, side, (n, 2))
    in_cluster, per_cluster = int(cf * n), max(1, round(sf * cf * n))
    origins = rng.uniform(0, side, (n // per_cluster + 1, 2))[np.arange(in_cluster) // per_cluster]
    angle, distance = rng.uniform(0, 2 * np.pi, in_cluster), rng.normal(0, df, in_cluster)
    shift = distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    centres[:in_cluster] = np.clip(origins + shift, 0, side)
    half = rng.uniform(20, 40, (n, 2)) / 2
    return np.stack([centres - half, centres + half], axis=-1)


def local(n: int, seed: int, d: int = 2) -> Any:
    """The study's density whatever n is: the database grows with the queries."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 40 * n ** (1 / d), (n, d))
    return np.stack([low, low + rng.uniform(20, 40, (n, d))], axis=-1)
