"""Every statistic, defined once: what `measure` makes of a log and what `follow` keeps of a stream are these.

The formulas hold for whole columns of any kind that knows +, - and /: NumPy arrays at the driver and on workers, and
Spark's columns. Counts are whole numbers; bytes come in units of 1 / BYTE and weights in units of 1 / WEIGHT
(`partials`), or in messages where a stream has weighed them as of now: `unit` says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from narrowcast.data.statistics.partials import BYTE, WEIGHT, Ints

if TYPE_CHECKING:
    import pyarrow as pa

Amounts = Any
"""A NumPy array or a Spark column."""


def size_bytes(units: Amounts) -> Amounts:
    """Bytes, from whole units of 1 / BYTE."""
    return units / float(BYTE)


def per_second(amount: Amounts, seconds: float | None) -> Amounts:
    """A rate; without times, the amount in the whole log."""
    return amount / (seconds or 1.0)


def share(part: Amounts, whole: float) -> Amounts:
    """A part of the whole; of nothing, nothing."""
    return part / float(whole or 1)


def flow_columns(messages: Amounts, units: Amounts, seconds: float | None) -> dict[str, Amounts]:
    """Of each flow: rate (messages a second), size (mean bytes), messages, bytes."""
    size = size_bytes(units)
    return {"rate": per_second(messages, seconds), "size": size / messages, "messages": messages, "bytes": size}


def pair_columns(messages: Amounts, units: Amounts) -> dict[str, Amounts]:
    """Of each flow and profile that matches messages of it: messages, bytes."""
    return {"messages": messages, "bytes": size_bytes(units)}


def profile_rates(messages: Ints, units: Ints, seconds: float | None) -> pa.Table:
    """How fast what each profile matches flows: profile, messages, bytes, rate, rate_bytes_s."""
    import pyarrow as pa

    size = size_bytes(units)
    rates = {"rate": per_second(messages, seconds), "rate_bytes_s": per_second(size, seconds)}
    return pa.table({"profile": np.arange(len(messages)), "messages": messages, "bytes": size, **rates})


def selectivity(weight: Any, total: float, *, unit: int = WEIGHT) -> pa.Table:
    """The decayed share of the messages in the window that each profile matches: profile, weight, selectivity."""
    import pyarrow as pa

    shares = {"weight": weight / float(unit), "selectivity": share(weight, total)}
    return pa.table({"profile": np.arange(len(weight)), **shares})


OVERLAP_SCHEMA = "profile bigint, other bigint, weight double, share double, share_of_other double"


def overlap_columns(profile: Ints, other: Ints, both: Any, own: Any, *, unit: int = WEIGHT) -> dict[str, Any]:
    """How much of what one profile matches another matches too, decayed; `own` is the weight of each profile.

    profile < other; `share` is O[profile][other] of the profile's own weight, `share_of_other` the other way round.
    """
    shares = {"share": both / own[profile], "share_of_other": both / own[other]}
    return {"profile": profile, "other": other, "weight": both / float(unit), **shares}


def recent_seconds(seconds: float | None, half_life_s: float | None) -> float:
    """What weights are a count over: of a steady flow, weight / this is its rate, however long the log is.

    >>> recent_seconds(100.0, None), round(recent_seconds(1e9, 10.0), 3)
    (100.0, 14.427)
    """
    if half_life_s is None or seconds is None:
        return seconds or 1.0
    mean = half_life_s / np.log(2)
    return float(-mean * np.expm1(-seconds / mean))
