"""Message aggregation: what filtering costs per message with h messages in a packet (Tock et al., §3.2, §5.2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints, amounts

PRICES = "prices.json"  # in the folder of a running system
LEAST_SAMPLES = 12
MOST_UNEXPLAINED = 0.5
MOST_ERROR = 0.25  # of alpha and beta, beside their sum
LOOSE = 1e-3
STRETCHES = 6  # of time, each of which is left out once


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
    """Fit α(h) and β(h) to a subscriber's measured CPU, by least squares without negative prices.

    In each measurement a subscriber accepts sessions of rate `accepted` (θ1) and discards others of
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


@dataclass(frozen=True, slots=True)
class RunningPrices:
    """α and β in CPU seconds of a subscriber per message, at the `h` messages per packet that a running system had.

    `unexplained`: the share of the variance of CPU that the fit leaves on stretches of time that it was not made from.
    `errors`: standard errors of α and β, by how far they move when a sixth of the time is left out. A machine that is
    slower for seconds is in them.
    """

    alpha: float
    beta: float
    h: float
    unexplained: float
    errors: tuple[float, float]
    n_samples: int


def calibrate_running(
    accepted: ArrayLike,
    discarded: ArrayLike,
    accepted_packets: ArrayLike,
    discarded_packets: ArrayLike,
    cpu: ArrayLike,
    subscribers: Sequence[str],
) -> RunningPrices:
    """Fit α and β to what subscribers of a running system took, passed by and spent (Tock et al., §3.2, §5.2).

    Each sample is one subscriber over a while: rates of messages, and of the packets they came in, and `cpu`. Both have
    a price in a group and one more in a session; whatever else a subscriber spends is its own constant. Raises
    InputError where the fit is none: too few samples, CPU that does not follow the traffic, or traffic that varied too
    little to tell α from β.

    >>> taken, passed = np.tile([1.0, 5, 3, 9], 4), np.repeat([8.0, 2, 4, 1], 4)
    >>> spent = 7 + 2 * (taken + passed) + taken
    >>> found = calibrate_running(taken, passed, taken / 2, passed / 2, spent, ["a"] * 16)
    >>> round(found.alpha, 6), round(found.beta, 6), found.h, found.unexplained < 1e-9
    (2.0, 1.0, 2.0, True)
    """
    theta1 = amounts("accepted", accepted)
    given = {"discarded": discarded, "accepted_packets": accepted_packets, "discarded_packets": discarded_packets}
    theta2, packets1, packets2, load = (amounts(n, v, theta1.size) for n, v in ({**given, "cpu": cpu}).items())
    if theta1.size < LEAST_SAMPLES:
        raise InputError(
            f"samples must be at least {LEAST_SAMPLES}, got {theta1.size}", name="samples", hint="watch for longer"
        )
    whose = np.unique(np.asarray(subscribers), return_inverse=True)[1]
    design = _from_mean(np.column_stack([theta1 + theta2, packets1 + packets2, theta1, packets1]), whose)
    spent = _from_mean(load[:, None], whose)[:, 0]
    h = float((theta1 + theta2).sum() / max((packets1 + packets2).sum(), 1e-12))
    unexplained, errors = _without_each_stretch(design, spent, whose, np.array([[1, 1 / h, 0, 0], [0, 0, 1, 1 / h]]))
    if not unexplained <= MOST_UNEXPLAINED:
        raise InputError(
            f"the CPU of subscribers must follow their traffic, but {min(unexplained, 1):.0%} of it is unexplained",
            name="cpu",
            hint="watch for longer, under traffic that varies, on hosts that do little else",
        )
    part = nnls(design, spent)[0]
    alpha, beta = float(part[0] + part[1] / h), float(part[2] + part[3] / h)
    if max(errors) > MOST_ERROR * (alpha + beta):
        prices = " and ".join(f"{p * 1e6:.2f} ± {e * 1e6:.2f}" for p, e in zip((alpha, beta), errors, strict=True))
        raise InputError(
            f"traffic must vary so that it can tell alpha from beta, got {prices} µs",
            name="accepted",
            hint="watch for longer, under more traffic, or more subscribers that take different sessions of a group",
        )
    return RunningPrices(alpha, beta, h, unexplained, errors, theta1.size)


def _from_mean(values: Floats, whose: Ints) -> Floats:
    """Less the mean of each subscriber."""
    count = np.bincount(whose)
    means = np.column_stack([np.bincount(whose, column) / count for column in values.T])
    found: Floats = values - means[whose]
    return found


def _without_each_stretch(
    design: Floats, spent: Floats, whose: Ints, prices: Floats
) -> tuple[float, tuple[float, float]]:
    """The share of the variance that is left on stretches of time by fits to the others, and how far both `prices` move
    between fits (a jackknife; with signs free, or a price at 0 would seem sure). Infinite if no fit can tell."""
    size = np.maximum(np.linalg.norm(design, axis=0), 1e-12)
    unit, ways = design / size, prices / size
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    unseen = np.abs(ways @ np.linalg.pinv(unit, rcond=1e-6) @ unit - ways).max(axis=1) > LOOSE
    at, left, found = np.empty(spent.size, np.int64), 0.0, []
    for mine in (np.flatnonzero(whose == k) for k in range(int(whose.max()) + 1)):
        at[mine] = np.arange(mine.size) * STRETCHES // mine.size
    for out in (at == k for k in range(STRETCHES)):
        left += float(((spent[out] - design[out] @ nnls(design[~out], spent[~out])[0]) ** 2).sum())
        found.append(prices @ np.linalg.lstsq(design[~out], spent[~out], rcond=None)[0])
    moved = np.sqrt((STRETCHES - 1) * np.var(found, axis=0))
    moved[unseen] = np.inf
    total = float((spent**2).sum())
    return left / total if total > 0 else 1.0, (float(moved[0]), float(moved[1]))


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


# In a file: what `calibrate --system` writes and the next plan reads.


def write_prices(fit: RunningPrices, path: Path) -> None:
    """Whole or not at all: somebody may be reading."""
    half = path.with_suffix(".part")
    half.write_text(json.dumps(asdict(fit), indent=2) + "\n", encoding="utf-8")
    half.replace(path)


def read_prices(path: Path) -> tuple[float, float]:
    """(α, β) with α + β = 2, as by default; only their ratio decides about a plan."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        alpha, beta = float(found["alpha"]), float(found["beta"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: no prices here: {error}", name="prices", hint="narrowcast calibrate --system"
        ) from None
    if not (alpha >= 0 and beta >= 0 and alpha + beta > 0 and isfinite(alpha + beta)):
        raise InputError(f"{path}: alpha and beta must be above 0, got {alpha} and {beta}", name="prices")
    return 2 * alpha / (alpha + beta), 2 * beta / (alpha + beta)
