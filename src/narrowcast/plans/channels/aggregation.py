"""Message aggregation: what filtering costs per message with h messages in a packet (Tock et al., §3.2, §5.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, amounts


@dataclass(frozen=True, slots=True)
class Aggregation:
    """α(h) = α0 + α1/h and β(h) = β0 + β1/h: a part per message and a part per packet.

    >>> Aggregation(0.5, 4.0, 0.75, 2.0).at(8)
    (1.0, 1.0)
    """

    alpha0: float
    alpha1: float
    beta0: float
    beta1: float
    residual: float = 0.0

    def at(self, h: float) -> tuple[float, float]:
        """(α, β) with h messages per packet, ready for `plan(alpha=, beta=)`."""
        if not h >= 1:
            raise InputError(f"h, the messages per packet, must be at least 1, got {h}", name="h", got=h)
        return self.alpha0 + self.alpha1 / h, self.beta0 + self.beta1 / h


def calibrate(accepted: ArrayLike, discarded: ArrayLike, cpu: ArrayLike, h: ArrayLike = 1.0) -> Aggregation:
    """Fit α(h) and β(h) to a receiver's measured CPU, by least squares without negative prices.

    In each measurement a receiver accepts sessions of rate `accepted` (θ1) and discards others of
    rate `discarded` (θ2) from the same group: cpu ∝ (θ1 + θ2)·α(h) + θ1·β(h). First α and β are
    fitted for each h, then their two parts over h; with one h all goes into α0 and β0. `residual` is
    the root mean square of what the fit leaves, relative to the mean cpu.

    >>> found = calibrate([1, 2, 3, 1], [3, 1, 0, 0], [6.0, 7.0, 9.0, 3.0], h=8)
    >>> [round(x, 6) for x in found.at(8)], found.residual < 1e-9
    ([1.0, 2.0], True)
    """
    theta1 = amounts("accepted", accepted)
    theta2, load, packed = (
        amounts(name, values, theta1.size) for name, values in (("discarded", discarded), ("cpu", cpu), ("h", h))
    )
    if theta1.size and packed.min() < 1:
        raise InputError(f"h, the messages per packet, must be at least 1, got {packed.min()}", name="h")
    design = np.column_stack([theta1 + theta2, theta1])
    factors = np.unique(packed)
    prices = np.array([_two_prices(design[packed == f], load[packed == f], float(f)) for f in factors]).reshape(-1, 2)
    (a0, a1), (b0, b1) = (_over_h(factors, column) for column in prices.T)
    fitted = design[:, 0] * (a0 + a1 / packed) + design[:, 1] * (b0 + b1 / packed)
    mean = float(load.mean())
    return Aggregation(a0, a1, b0, b1, float(np.sqrt(((fitted - load) ** 2).mean())) / mean if mean > 0 else 0.0)


def _two_prices(design: Floats, load: Floats, h: float) -> Floats:
    if np.linalg.matrix_rank(design) < 2:
        raise InputError(
            f"the measurements with h = {h:g} cannot tell alpha from beta",
            name="accepted",
            hint="give at least two, with different shares of accepted and discarded rate",
        )
    found: Floats = nnls(design, load)[0]
    return found


def _over_h(factors: Floats, prices: Floats) -> tuple[float, float]:
    if factors.size == 1:
        return float(prices[0]), 0.0
    part, packet = nnls(np.column_stack([np.ones(factors.size), 1 / factors]), prices)[0]
    return float(part), float(packet)
