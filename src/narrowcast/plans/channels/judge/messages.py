"""No false exclusion on messages themselves: each goes to everyone whose profile matches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from narrowcast.evaluate.columns import places
from narrowcast.evaluate.messages import drawn, wanted_flows
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.delivery import delivery


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
    rows = drawn(messages.num_rows, sample)
    flow, user, at = wanted_flows(messages.take(rows), subscriptions, key)
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
