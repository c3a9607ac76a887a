"""No false exclusion on messages themselves: each reaches the gateway of everybody who wants it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from narrowcast.evaluate.messages import drawn, wanted
from narrowcast.model.plan import Tables
from narrowcast.plans.semantic.judge.proof import Formulas
from narrowcast.plans.semantic.judge.reader import ReadOverlay


def message_faults(
    plan: Tables,
    messages: Any,
    subscriptions: Sequence[tuple[str, str]],
    *,
    nodes: Sequence[str],
    sample: int = 100_000,
) -> tuple[list[str], int]:
    """Who would miss a message, and how many wanted (message, subscriber) pairs were looked at.

    A message matches profiles of the plan. By content, the formulas of the channels say which of them carry it, and
    their members get it. By audience, the gateways where one of those profiles is wanted get it, which `faults` has
    shown for every audience. O(messages · channels).
    """
    read = ReadOverlay(plan)
    if read.broken:
        return [], 0
    rows = drawn(messages.num_rows, sample)
    table = messages.take(rows)
    numbers = list(read.read_profiles)
    matched: list[set[int]] = [set() for _ in range(rows.size)]
    for at, which in zip(*wanted(table, [read.read_profiles[p] for p in numbers]), strict=True):
        matched[at].add(numbers[which])
    formulas = Formulas(read.parts, read.content, read.read_profiles) if read.rule == "content" else None
    known: dict[frozenset[int], set[str]] = {}

    def reached(at: int) -> set[str]:
        own = frozenset(matched[at])
        if own not in known:
            sets = (
                [read.wanted[p] for p in own] if formulas is None else [read.members[c] for c in formulas.channels(own)]
            )
            known[own] = set().union(*sets)
        return known[own]

    message, which = wanted(table, [profile for _, profile in subscriptions])
    found: dict[str, str] = {}
    for at, of in zip(message.tolist(), which.tolist(), strict=True):
        who, node = subscriptions[of][0], nodes[of]
        if node not in reached(at):
            why = "which none of its channels reaches" if node in read.nodes else "which is not a node of the plan"
            found.setdefault(who, f"message {rows[at]} is wanted by {who} at {node}, {why}")
    return list(found.values()), int(np.size(message))
