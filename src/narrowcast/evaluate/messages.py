"""Messages sent through a plan by its judge: which of them are wanted, by whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Ints
from narrowcast.profiles.flow_key import flow_name


def drawn(n: int, sample: int) -> Ints:
    """The places of at most `sample` of n messages, always the same ones.

    >>> drawn(3, 10).tolist(), drawn(10, 3).size
    ([0, 1, 2], 3)
    """
    if n <= sample:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, sample, replace=False))


def wanted(messages: Any, profiles: Sequence[Any]) -> tuple[Ints, Ints]:
    """(message, profile) of each match; a column that is not there counts as null."""
    from narrowcast.profiles import Matcher

    return Matcher(profiles).match(messages, missing="null")


def wanted_flows(messages: Any, subscriptions: Sequence[tuple[str, str]], key: Sequence[str]) -> tuple[Any, Any, Ints]:
    """The flow, the subscriber and the message of each match, by the attributes that make a flow."""
    import pyarrow as pa

    if not key:
        raise InputError(
            "the plan does not say which attributes make a flow", name="key", hint="name them: --key symbol"
        )
    for name in key:
        if name not in messages.column_names:
            had = ", ".join(messages.column_names)
            raise InputError(
                f"messages must have the column {name!r}, which makes a message's flow; they have {had}",
                name="key",
                allowed=tuple(messages.column_names),
                got=name,
            )
    at, which = wanted(messages, [profile for _, profile in subscriptions])
    columns = [messages[name].to_pylist() for name in key]
    names = pa.array(
        [flow_name(dict(zip(key, values, strict=True)), key) for values in zip(*columns, strict=True)], pa.string()
    )
    users = pa.array([subscriber for subscriber, _ in subscriptions], pa.string())
    return names.take(pa.array(at)), users.take(pa.array(which)), at
