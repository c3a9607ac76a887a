"""The exam of a query-merging method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from narrowcast.plans.queries.api import QueriesPlan


def exam_queries(method: Callable[[NDArray[np.float64], int], QueriesPlan]) -> None:
    """Merge small sets of boxes with `method(boxes, seed)`; AssertionError if one is wrong."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        low = rng.uniform(0, 50, (4 if seed else 1, 2))
        boxes = np.stack([low, low + rng.uniform(0, 40, low.shape)], axis=2)
        before = boxes.copy()
        plan = method(boxes, seed)
        assert np.array_equal(boxes, before), "the input was changed"
        answered = {q for members in plan.sets for q in members}
        assert answered == set(range(len(boxes))), "a query is left out"
        for members, box in zip(plan.sets, plan.boxes, strict=True):
            for query in members:
                assert (box[:, 0] <= boxes[query, :, 0]).all(), "a merged query is too narrow"
                assert (box[:, 1] >= boxes[query, :, 1]).all(), "a merged query is too narrow"
        assert plan.cost <= plan.baseline * (1 + 1e-9), "dearer than answering every query apart"
        assert method(boxes, seed).sets == plan.sets, "same seed, another plan"
