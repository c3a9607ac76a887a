"""Audience classes: messages of the window that the same gateways want, from the same source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.semantic.window import Window


@dataclass(frozen=True, eq=False)
class AudienceClasses:
    """Class i is wanted at `reach[i]`, comes from source group `source[i]` and weighs `weight[i]`."""

    reach: Bools
    source: Ints
    weight: Floats

    @property
    def n(self) -> int:
        return int(self.source.size)


def in_common(first: Any, second: Any) -> NDArray[np.float32]:
    """How many columns each row of the first has in common with each of the second, both of zeros and ones.

    The fast routine for floats may look at more than its rows and raise a flag for nothing; it is not heeded.
    """
    with np.errstate(invalid="ignore"):
        found: NDArray[np.float32] = first.astype(np.float32, copy=False) @ second.astype(np.float32, copy=False).T
    return found


def meet(first: Bools, second: Bools) -> Bools:
    """Which rows of the first share a column with which of the second. What is no number counts as shared: wider."""
    found: Bools = in_common(first, second) != 0
    return found


def audience_classes(window: Window) -> AudienceClasses:
    """The distinct (audience, source) pairs of messages that anybody wants, in a fixed order."""
    wanted = window.audience.any(axis=1)
    audience, source = window.audience[wanted], window.source[wanted]
    key = np.column_stack((source.astype(">u4").view(np.uint8).reshape(-1, 4), np.packbits(audience, axis=1)))
    rows = np.ascontiguousarray(key).view(f"V{key.shape[1]}").ravel() if len(key) else np.zeros(0, "V4")
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    weight = np.bincount(inverse, weights=window.weight[wanted], minlength=first.size)
    return AudienceClasses(audience[first], source[first], weight.astype(np.float64))


def packed(sets: Bools) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Rows of bits as 64-bit words."""
    words = max(1, -(-sets.shape[1] // 64))
    wide = np.zeros((sets.shape[0], words * 64), np.bool_)
    wide[:, : sets.shape[1]] = sets
    return np.packbits(wide, axis=1, bitorder="little").view("<u8").astype(np.uint64).reshape(sets.shape[0], words)
