"""Price search: the whole budget question answered by charging for each filter.

For a charge μ the cheapest placement (least traffic + μ · filters) is found without counting. It
is optimal for the number of filters it happens to use, and traffic + μ · (filters − j) bounds the
traffic with j filters from below: the placements found lie on the lower convex hull of the curve.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from narrowcast.plans.filters.kernels.core import Core, core_cost
from narrowcast.plans.filters.kernels.grow import grow
from narrowcast.plans.filters.kernels.price import priced
from narrowcast.plans.filters.kernels.splice import pieces
from narrowcast.plans.filters.kernels.trim import trim
from narrowcast.plans.filters.problem import Walked

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Two charges this near in value lead to the same edge of the hull.
EDGE = 1e-12
# Charges beside the search, at the curve's slope at k/2, k/4, …: they tighten the rest of the curve.
EXTRA = 4
# More steps than any search has needed; stopping early only leaves a larger gap.
STEPS = 100
# Vertices looked at while adding filters greedily: some seconds.
GROWTH_LIMIT = 2e8


@dataclass(frozen=True, eq=False, slots=True)
class _Point:
    """A placement, how many filters it has and its traffic."""

    mask: Bools
    filters: int
    traffic: float


@dataclass(slots=True)
class _Known:
    """The best traffic and the best bound for 0..k filters so far."""

    best: Floats
    bound: Floats
    counts: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.arange(self.best.size, dtype=np.float64)

    def note(self, point: _Point) -> None:
        if point.filters < self.best.size:
            self.best[point.filters] = min(self.best[point.filters], point.traffic)

    def charge(self, point: _Point, price: float) -> None:
        np.maximum(self.bound, point.traffic + price * (point.filters - self.counts), out=self.bound)
        self.note(point)


def search(way: Walked, k: int) -> tuple[Bools, Floats, Floats]:
    """(placement, best known curve, lower bounds) for at most k filters.

    Narrows the edge of the hull above k by charging its slope: a handful of O(n log n) steps. If
    no corner has exactly k filters, pieces of the two corners are exchanged, which stays on the
    edge, and what remains is added or taken away greedily.
    """
    core = way.core
    low = _point(core, np.zeros(core.parent.size, np.bool_))
    high = _priced(core, 0.0)
    known = _Known(np.full(k + 1, np.inf), np.full(k + 1, high.traffic))
    known.bound[0] = low.traffic
    known.note(low)
    known.note(high)
    greedy = _grown(core, known, low.mask, k)
    if high.filters <= k:
        return _finish(core, known, high, high)
    for _ in range(STEPS):
        if low.filters == k:
            break
        price = (low.traffic - high.traffic) / (high.filters - low.filters)
        point = _priced(core, price)
        known.charge(point, price)
        edge = low.traffic + price * low.filters
        if point.traffic + price * point.filters >= edge * (1 - EDGE) or point.filters in (low.filters, high.filters):
            break
        if point.filters <= k:
            low = point
        else:
            high = point
    best = low if low.filters == k else _between(core, known, low, high, k)
    return _finish(core, known, min(best, greedy, key=_order), high)


def _priced(core: Core, price: float) -> _Point:
    return _point(core, priced(core, np.full(core.parent.size, price)))


def _point(core: Core, mask: Bools) -> _Point:
    return _Point(mask, int(mask.sum()), float(core_cost(core, mask)))


def _between(core: Core, known: _Known, low: _Point, high: _Point, k: int) -> _Point:
    """A placement of at most k filters from the two ends of an edge of the hull."""
    candidates = [low]
    for mask in (low.mask, *_spliced(core, low, high, k), high.mask):
        found = _trimmed(core, mask, k) if mask.sum() > k else _grown(core, known, mask, k)
        if found.filters <= k:
            known.note(found)
            candidates.append(found)
    return min(candidates, key=_order)


def _order(point: _Point) -> tuple[float, int]:
    return point.traffic, point.filters


def _spliced(core: Core, low: _Point, high: _Point, k: int) -> list[Bools]:
    """`low` with pieces of `high`: as near below k as pieces allow, and the same with one more."""
    piece, more = pieces(core, low.mask, high.mask)
    roots = np.flatnonzero(more > 0)
    roots = roots[np.argsort(-more[roots], kind="stable")]
    wanted = np.zeros(more.size, np.bool_)
    room, spare = k - low.filters, -1
    for root in roots.tolist():
        if more[root] <= room:
            wanted[root] = True
            room -= int(more[root])
        else:
            spare = root
    found = [_exchange(low, high, piece, wanted)]
    if room and spare >= 0:
        wanted[spare] = True
        found.append(_exchange(low, high, piece, wanted))
    return found


def _exchange(low: _Point, high: _Point, piece: NDArray[np.int64], wanted: Bools) -> Bools:
    return np.where((piece >= 0) & wanted[piece], high.mask, low.mask)


def _trimmed(core: Core, mask: Bools, k: int) -> _Point:
    removed, _ = trim(core, mask, k)
    mask = mask.copy()
    mask[removed] = False
    return _point(core, mask)


def _grown(core: Core, known: _Known, mask: Bools, k: int) -> _Point:
    """Up to k filters, as many of them as time allows."""
    start = _point(core, mask)
    affordable = int(GROWTH_LIMIT // core.parent.size) + 1
    added, saving = grow(core, mask, min(k - start.filters, affordable))
    values = start.traffic - np.cumsum(saving)
    at = slice(start.filters + 1, start.filters + 1 + added.size)
    known.best[at] = np.minimum(known.best[at], values)
    mask = mask.copy()
    mask[added] = True
    return _point(core, mask)


def _finish(core: Core, known: _Known, best: _Point, high: _Point) -> tuple[Bools, Floats, Floats]:
    """Fill the curve below k by trimming and a few more charges, then let it never rise."""
    known.note(best)
    for point in (best, high):
        removed, loss = trim(core, point.mask, 0)
        left = point.filters - 1 - np.arange(removed.size)
        keep = left < known.best.size
        np.minimum.at(known.best, left[keep], (point.traffic + np.cumsum(loss))[keep])
    known.best = np.minimum.accumulate(known.best)
    for j in sorted({min(best.filters, known.best.size - 1) >> i for i in range(1, EXTRA + 1)} - {0}):
        price = float(known.best[j - 1] - known.best[j + 1]) / 2
        known.charge(_priced(core, price), price)
    known.best = np.minimum.accumulate(known.best)
    known.bound = np.minimum(known.bound, known.best)
    return best.mask, known.best, known.bound
