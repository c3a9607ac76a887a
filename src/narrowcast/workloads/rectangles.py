"""Range queries that crowd together."""

from __future__ import annotations

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.workloads.checks import generator, number, share, whole

#: Draws of a place before it is moved inside by force; only a spread far beyond the space needs that.
TRIES = 64


def rectangles(
    n: int = 100,
    cf: float = 0.8,
    sf: float = 0.3,
    df: float = 100.0,
    side: tuple[float, float] = (20.0, 40.0),
    space: float | None = None,
    d: int = 2,
    seed: int = 0,
) -> Floats:
    """Clustered query rectangles as an (n, d, 2) array of lows and highs (Crespo et al., §7.1).

    The share `cf` of the queries is clustered, the rest lies anywhere. A cluster holds the share `sf`
    of the clustered queries, so there are about 1/sf clusters, each around a random origin; a query's
    centre lies at a distance drawn from N(0, df²) in a random direction. Sides are drawn between the
    two of `side`. The space is a cube of side `space`: 100 for up to 12 queries, 400 beyond, as published.
    Every rectangle lies inside: a centre that would put it outside is drawn again, which the paper leaves open.

    >>> boxes = rectangles(n=30, seed=2)
    >>> boxes.shape, bool((boxes >= 0).all() and (boxes <= 400).all())
    ((30, 2, 2), True)
    """
    whole("n", n)
    whole("d", d, low=1)
    number("df", df, low=0.0)
    width = number("space", published_space(n) if space is None else space, low=0.0)
    low, high = _sides(side, width)
    rng = generator(seed)
    half = rng.uniform(low, high, (n, d)) / 2
    cluster = _clusters(n, share("cf", cf), share("sf", sf))
    origins = rng.uniform(0, width, (int(cluster.max(initial=-1)) + 1, d))
    centre = rng.uniform(half, width - half)
    todo = np.flatnonzero(cluster >= 0)
    for _ in range(TRIES):
        centre[todo] = origins[cluster[todo]] + _steps(rng, todo.size, d, df)
        todo = todo[((centre < half) | (centre > width - half))[todo].any(axis=1)]
        if not todo.size:
            break
    centre = np.clip(centre, half, width - half)
    return np.stack((centre - half, centre + half), axis=-1)


def published_space(n: int) -> float:
    """The side of the database in the paper's study of n queries."""
    return 100.0 if n <= 12 else 400.0


def _sides(side: tuple[float, float], width: float) -> tuple[float, float]:
    low, high = (number("side", s, low=0.0) for s in side)
    if not 0 < low <= high <= width:
        raise InputError(
            f"side must be two lengths from 0 to the space's {width:g}, the smaller first, got {side}",
            name="side",
            got=side,
        )
    return low, high


def _clusters(n: int, cf: float, sf: float) -> Ints:
    """The cluster of each query, −1 for one that lies anywhere."""
    clustered = round(cf * n)
    if clustered and sf == 0:
        raise InputError(
            "sf must be above 0, got 0: a cluster needs some of the clustered queries", name="sf", hint="0 < sf ≤ 1"
        )
    cluster = np.full(n, -1, np.int64)
    cluster[:clustered] = np.arange(clustered) // max(1, round(sf * clustered))
    return cluster


def _steps(rng: np.random.Generator, n: int, d: int, df: float) -> Floats:
    """Vectors of a length from N(0, df²) in directions spread evenly over the sphere."""
    direction = rng.standard_normal((n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.normal(0.0, df, (n, 1))
