"""SF, streams (sessions) first (Tock et al. 2005, §4.3): flows to sessions, then sessions to groups."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.methods.kmeans import in_order, kmeans
from narrowcast.plans.channels.points import Points


def streams_first(
    points: Points, groups: int, sessions: int, rng: np.random.Generator, start: tuple[Ints, Ints] | None = None
) -> tuple[Ints, Ints]:
    """Sessions of points and groups of sessions. Good when sessions are hardly more than groups.

    `start` is a plan to begin from. O(passes · pairs · sessions).
    """
    session = kmeans(points, sessions, rng, None if start is None else start[0])
    given = None if start is None else np.resize(start[1], sessions)
    used, session = in_order(session)
    merged = points.merged(session, used.size)
    return session, kmeans(merged, groups, rng, None if given is None else given[used])
