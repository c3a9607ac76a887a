"""How profiles may overlap: four readings of the one sentence that SemCast (§5) has on it.

The paper varies a "matching probability" and does not say how profiles and messages are drawn. Each reading gives
texts of profiles and a table of messages for one number, its *level*; what gateways then share is measured.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from narrowcast.workloads.overlay_clients import SCALE, arcs

Drawn = tuple[tuple[str, ...], pa.Table]


def circle(n: int, messages: int, level: float, rng: np.random.Generator) -> Drawn:
    """Arcs of a circle that lie anywhere; `level` is their mean length, 0 for arcs side by side."""
    return arcs(n, level, rng), pa.table({"reading": rng.integers(SCALE, size=messages)})


def core(n: int, messages: int, level: float, rng: np.random.Generator) -> Drawn:
    """An arc of its own for each profile, and a share `level` of the messages that everybody wants."""
    texts = tuple(f"everybody OR {text}" for text in arcs(n, 0.0, rng))
    everybody = rng.random(messages) < level
    return texts, pa.table({"everybody": everybody, "reading": rng.integers(SCALE, size=messages)})


def topics(n: int, messages: int, level: float, rng: np.random.Generator) -> Drawn:
    """round(1 / level) topics; of one topic a profile wants what is above its own threshold."""
    k = max(1, round(1 / level))
    thresholds = rng.choice(SCALE, n, replace=False)
    texts = tuple(f"topic = {i % k} AND reading >= {thresholds[i]}" for i in range(n))
    return texts, pa.table({"topic": rng.integers(k, size=messages), "reading": rng.integers(SCALE, size=messages)})


def chance(n: int, messages: int, level: float, rng: np.random.Generator) -> Drawn:
    """Every profile matches every message with the same chance, each pair on its own."""
    wanted = rng.random((messages, n)) < level
    numbers = np.array([f"{i}," for i in range(n)])
    tags = ["," + "".join(numbers[row]) for row in wanted]
    return tuple(f"tags LIKE '%,{i},%'" for i in range(n)), pa.table({"tags": pa.array(tags, pa.string())})


#: By name: how it is drawn, and levels at which gateways share from a few percent to nearly all.
READINGS: dict[str, tuple[Callable[[int, int, float, np.random.Generator], Drawn], tuple[float, ...]]] = {
    "common core": (core, (0.001, 0.005, 0.02, 0.06, 0.3)),
    "topics": (topics, (0.004, 0.02, 0.05, 0.2, 1.0)),
    "circle": (circle, (0.001, 0.004, 0.01, 0.04, 0.2)),
    "chance": (chance, (0.003, 0.01, 0.03, 0.1)),
}
