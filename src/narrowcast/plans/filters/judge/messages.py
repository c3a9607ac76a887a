"""No false exclusion on messages themselves: each climbs down the tree to everybody at a node who wants it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from narrowcast.evaluate.columns import places
from narrowcast.evaluate.messages import drawn, wanted
from narrowcast.model.arrays import Bools
from narrowcast.model.plan import Tables
from narrowcast.plans.filters.judge.carried import CarriedTree, carried, tree_faults

CHUNK = 4_096


def message_faults(
    plan: Tables,
    messages: Any,
    subscriptions: Sequence[tuple[str, str]],
    *,
    nodes: Sequence[str],
    sample: int = 100_000,
) -> tuple[list[str], int]:
    """Who would miss a message, and how many wanted (message, subscriber) pairs were looked at.

    Messages start at the root. A node with a filter passes on to a child what somebody at or below the child wants,
    one without passes on everything. O(messages · nodes).
    """
    import pyarrow as pa

    if tree_faults(plan):
        return [], 0
    read = carried(plan)
    at = places(pa.array(nodes, pa.string()), pa.array(read.names, pa.string()))
    rows = drawn(messages.num_rows, sample)
    found: dict[str, str] = {}
    looked = 0
    for start in range(0, rows.size, CHUNK):
        part = rows[start : start + CHUNK]
        message, which = wanted(messages.take(part), [profile for _, profile in subscriptions])
        looked += message.size
        wants = np.zeros((len(read.names), part.size), np.bool_)
        there = at[which] >= 0
        wants[at[which][there], message[there]] = True
        gets = _carried_down(read, wants)
        missed = ~there | ~gets[at[which], message]
        for i in np.flatnonzero(missed).tolist():
            who, node = subscriptions[which[i]][0], nodes[which[i]]
            why = "which a filter above it holds back" if there[i] else f"which is not in the tree: {node!r}"
            found.setdefault(who, f"message {part[message[i]]} is wanted by {who} at its node, {why}")
    return list(found.values()), looked


def _carried_down(read: CarriedTree, wants: Bools) -> Bools:
    """Nodes × messages: what reaches each node, if each filter passes on what is wanted at or below the child."""
    below = wants.copy()
    for level in read.levels[:0:-1]:
        np.logical_or.at(below, read.parents[level], below[level])
    gets = np.zeros_like(wants)
    gets[read.root] = True
    for level in read.levels[1:]:
        above = read.parents[level]
        gets[level] = gets[above] & (below[level] | ~read.filters[above][:, None])
    return gets
