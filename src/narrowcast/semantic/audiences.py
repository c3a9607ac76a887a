"""Audience classes: messages of the window that the same gateways want, from the same source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from narrowcast.model._arrays import Bools, Floats, Ints
from narrowcast.semantic.window import Window


@dataclass(frozen=True, eq=False)
class Classes:
    """Class i is wanted at `reach[i]`, comes from source group `source[i]` and weighs `weight[i]`."""

    reach: Bools
    source: Ints
    weight: Floats

    @property
    def n(self) -> int:
        return int(self.source.size)


def audience_classes(window: Window) -> Classes:
    """The distinct (audience, source) pairs of messages that anybody wants, in a fixed order."""
    wanted = window.audience.any(axis=1)
    audience, source = window.audience[wanted], window.source[wanted]
    key = np.column_stack((source.astype(">u4").view(np.uint8).reshape(-1, 4), np.packbits(audience, axis=1)))
    rows = np.ascontiguousarray(key).view(f"V{key.shape[1]}").ravel() if len(key) else np.zeros(0, "V4")
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    weight = np.bincount(inverse, weights=window.weight[wanted], minlength=first.size)
    return Classes(audience[first], source[first], weight.astype(np.float64))


def packed(sets: Bools) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Rows of bits as 64-bit words."""
    words = max(1, -(-sets.shape[1] // 64))
    wide = np.zeros((sets.shape[0], words * 64), np.bool_)
    wide[:, : sets.shape[1]] = sets
    return np.packbits(wide, axis=1, bitorder="little").view("<u8").astype(np.uint64).reshape(sets.shape[0], words)
