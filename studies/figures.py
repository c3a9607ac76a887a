"""Figures as data: a few plain forms that become a PNG and an interactive page alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Band:
    """Means along x with a 95 % band for the mean; `n` is how many seeds the least supported mean has."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    n: int


@dataclass(frozen=True, eq=False, slots=True)
class Lines:
    """Named curves over one axis."""

    title: str
    x: str
    y: str
    curves: Mapping[str, Band]
    log_x: bool = False
    log_y: bool = False
    note: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Bars:
    """One bar per name, with its band."""

    title: str
    y: str
    bars: Mapping[str, Band] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Matrix:
    """Values over two axes, as a picture."""

    title: str
    x: str
    y: str
    values: Floats
    value: str = ""
    x_values: Sequence[Any] | None = None
    y_values: Sequence[Any] | None = None
    note: str = ""


Figure = Lines | Bars | Matrix


def curves(
    rows: Iterable[Mapping[str, Any]], x: str, y: str, by: str | None = None, label: Callable[[Any], str] = str
) -> dict[str, Band]:
    """A curve for each value of column `by`: mean and band of column `y` over the rows with equal `x`.

    >>> rows = [{"k": 1, "cost": 2.0}, {"k": 1, "cost": 4.0}, {"k": 2, "cost": 1.0}]
    >>> curves(rows, "k", "cost")[""].mean.tolist()
    [3.0, 1.0]
    """
    found: dict[Any, dict[float, list[float]]] = {}
    for row in rows:
        at = found.setdefault(row[by] if by else "", {})
        at.setdefault(float(row[x]), []).append(float(row[y]))
    return {label(name): _band(values) for name, values in found.items()}


def _band(values: Mapping[float, Sequence[float]]) -> Band:
    xs = sorted(values)
    mean = np.array([np.mean(values[at]) for at in xs])
    error = np.array([_error(values[at]) for at in xs])
    return Band(np.array(xs), mean, mean - error, mean + error, min(len(values[at]) for at in xs))


def _error(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the mean."""
    return 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0


def mean(rows: Iterable[Mapping[str, Any]], column: str, **where: Any) -> float:
    """The mean of a column over the rows that agree with `where`.

    >>> mean([{"k": 1, "cost": 2.0}, {"k": 2, "cost": 4.0}], "cost", k=2)
    4.0
    """
    values = [float(row[column]) for row in rows if all(row[name] == value for name, value in where.items())]
    return float(np.mean(values)) if values else float("nan")
