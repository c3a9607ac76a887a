"""The rule of the published variants: a message goes to every channel whose content it matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from narrowcast.model.arrays import Bools, Ints
from narrowcast.plans.semantic.content import Content, holds


@dataclass(frozen=True, eq=False)
class ContentRouter:
    contents: tuple[Content, ...]

    def __call__(self, matched: Any, audience: Bools, source: Ints) -> tuple[Ints, Ints]:
        table = matched.toarray() > 0
        known: dict[int, Bools] = {}
        carried = np.zeros((matched.shape[0], len(self.contents)), np.bool_)
        for c, content in enumerate(self.contents):
            carried[:, c] = holds(content, table, known)
        rows, cols = np.nonzero(carried)
        return rows, cols
