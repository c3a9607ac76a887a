"""No false exclusion on messages themselves: each goes to everyone whose profile matches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.columns import places
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.delivery import delivery
from narrowcast.profiles.flow_key import flow_name


def message_faults(
    plan: Tables,
    messages: Any,
    subscriptions: Sequence[tuple[str, str]],
    *,
    key: Sequence[str] = (),
    sample: int = 100_000,
) -> tuple[list[str], int]:
    """Who would miss a message, and how many wanted (message, subscriber) pairs were looked at.

    `subscriptions` are (subscriber, profile) pairs, `key` the attributes that make a message's flow, by default
    the plan's own. A message is delivered if the plan knows that its subscriber wants its flow, and brings it: by a
    group that the subscriber has joined, or by unicast. Of more messages than `sample` some are drawn, always the
    same ones. O(matches · log).
    """
    key = tuple(key) or plan.key
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
    rows = _drawn(messages.num_rows, sample)
    flow, user, at = _wanted(messages.take(rows), subscriptions, key)
    read = delivery(plan)
    import pyarrow as pa

    known_flow = places(flow, pa.array(read.flow_names, pa.string()))
    known_user = places(user, pa.array(read.user_names, pa.string()))
    brought = read.by_group | read.by_unicast
    covered = read.pair(read.want_flow, read.want_user)[brought]
    missed = (known_flow < 0) | (known_user < 0) | ~np.isin(read.pair(known_flow, known_user), covered)
    planned = np.isin(read.pair(known_flow, known_user), read.pair(read.want_flow, read.want_user))
    found: dict[tuple[str | None, str], str] = {}
    for i in np.flatnonzero(missed).tolist():
        what, who = flow[i].as_py(), user[i].as_py()
        why = "is not in its group" if planned[i] and known_flow[i] >= 0 <= known_user[i] else "was not planned for it"
        found.setdefault((what, who), f"message {rows[at[i]]} (flow {what!r}) is wanted by {who}, who {why}")
    return list(found.values()), len(flow)


def _drawn(n: int, sample: int) -> Any:
    if n <= sample:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, sample, replace=False))


def _wanted(messages: Any, subscriptions: Sequence[tuple[str, str]], key: Sequence[str]) -> tuple[Any, Any, Any]:
    """The flow, the subscriber and the message of each match."""
    import pyarrow as pa

    from narrowcast.profiles import Matcher

    at, which = Matcher([profile for _, profile in subscriptions]).match(messages)
    columns = [messages[name].to_pylist() for name in key]
    names = pa.array(
        [flow_name(dict(zip(key, values, strict=True)), key) for values in zip(*columns, strict=True)], pa.string()
    )
    users = pa.array([subscriber for subscriber, _ in subscriptions], pa.string())
    return names.take(pa.array(at)), users.take(pa.array(which)), at
