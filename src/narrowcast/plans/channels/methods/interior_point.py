"""Interior point (the hybrid paper, §4.1): relax X and Y to (0, 1), log barrier, Newton, round.

Neither convex nor concave, and the Hessian is dense in all groups × (flows + users) unknowns: for
small systems and for comparison only.
"""

from __future__ import annotations

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.channels.methods.two_phase import matrix
from narrowcast.plans.channels.points import Points

LARGEST = 400
# How much of a wanted pair the relaxed XY must cover; strictly below 1, so that one group has an interior.
COVER = 0.8


def interior_point(points: Points, clusters: int, rng: np.random.Generator) -> Ints:
    """The group of each flow: the largest entry of its row of X. O(steps · unknowns³)."""
    unknowns = clusters * (points.n + points.n_users)
    if unknowns > LARGEST:
        raise UnsupportedError(
            f"interior-point takes at most {LARGEST} unknowns, groups × (flows + subscribers), got {unknowns}",
            works=("kmeans", "two-phase", "bmd", "flow-merge", "random"),
        )
    W = matrix(points).toarray()
    x = rng.uniform(0.93, 0.97, unknowns)
    scale = float(points.rates.sum()) * points.n_users or 1.0
    for barrier in scale * 0.1 ** np.arange(1, 6):
        for _ in range(12):
            step, slope = _newton(x, W, points.rates, clusters, barrier)
            if slope > -1e-9 * scale:
                break
            x = _line_search(x, step, slope, W, points.rates, clusters, barrier)
    group: Ints = np.argmax(x[: points.n * clusters].reshape(points.n, clusters), axis=1)
    return group


def _split(x: Floats, W: Floats, k: int) -> tuple[Floats, Floats]:
    n, m = W.shape
    return x[: n * k].reshape(n, k), x[n * k :].reshape(k, m)


def _value(x: Floats, W: Floats, rates: Floats, k: int, barrier: float) -> float:
    X, Y = _split(x, W, k)
    slack = (X @ Y)[W > 0] - COVER
    if x.min() <= 0 or x.max() >= 1 or (slack.size and slack.min() <= 0):
        return np.inf
    logs = np.log(x).sum() + np.log1p(-x).sum() + np.log(slack).sum()
    return float((rates @ X) @ Y.sum(axis=1) - barrier * logs)


def _newton(x: Floats, W: Floats, rates: Floats, k: int, barrier: float) -> tuple[Floats, float]:
    """A descent step: Newton's, with the Hessian lifted until it is positive definite."""
    X, Y = _split(x, W, k)
    n, m = W.shape
    inverse = np.where(W > 0, 1 / np.where(W > 0, X @ Y - COVER, 1.0), 0.0)
    gradient = np.concatenate(
        [
            (np.outer(rates, Y.sum(axis=1)) - barrier * inverse @ Y.T).ravel(),
            (np.repeat((rates @ X)[:, None], m, axis=1) - barrier * X.T @ inverse).ravel(),
        ]
    )
    gradient += barrier * (1 / (1 - x) - 1 / x)
    H = np.diag(barrier * (1 / x**2 + 1 / (1 - x) ** 2))
    S = barrier * inverse**2
    # −log of a slack: S·∇s∇sᵀ − barrier·inverse·∇²s, with s = X_i·Y_j.
    xx = np.einsum("ij,aj,bj->iab", S, Y, Y)
    yy = np.einsum("ij,ia,ib->jab", S, X, X)
    xy = np.einsum("ij,aj,ib->iabj", S, Y, X)
    for i in range(n):
        H[i * k : (i + 1) * k, i * k : (i + 1) * k] += xx[i]
    at = n * k + np.arange(k)[:, None] * m
    for j in range(m):
        rows = (at[:, 0] + j)[:, None]
        H[rows, rows.T] += yy[j]
    cross = xy.reshape(n * k, k * m)
    for a in range(k):
        cross[np.arange(n) * k + a, a * m : (a + 1) * m] += rates[:, None] - barrier * inverse
    H[: n * k, n * k :] += cross
    H[n * k :, : n * k] += cross.T
    lift = 0.0
    while True:
        try:
            L = np.linalg.cholesky(H + lift * np.eye(x.size))
            break
        except np.linalg.LinAlgError:
            lift = max(10 * lift, 1e-6 * float(np.abs(np.diag(H)).max()))
    step = -np.linalg.solve(L.T, np.linalg.solve(L, gradient))
    return step, float(step @ gradient)


def _line_search(x: Floats, step: Floats, slope: float, W: Floats, rates: Floats, k: int, barrier: float) -> Floats:
    here, t = _value(x, W, rates, k, barrier), 1.0
    while t > 1e-10:
        if _value(x + t * step, W, rates, k, barrier) <= here + 0.1 * t * slope:
            return x + t * step
        t /= 2
    return x
