"""Topic feeds: the random and the mechanical workload as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from narrowcast.model import Interest
from narrowcast.workloads.mechanical import mechanical
from narrowcast.workloads.random import random
from narrowcast.workloads.tables import faults, schemas
from narrowcast.workloads.tables.common import by_rate, interest_sources, message_source, shares, times
from narrowcast.workloads.tables.lists import blocks, quoted
from narrowcast.workloads.tables.source import TableSource, batch_rng, pick, row_batches

RATE = 1000.0
LEVELS = ("debug", "info", "warning", "error")
MESSAGES = pa.schema(
    [
        ("ts", schemas.TIME),
        ("topic", pa.string()),
        ("level", pa.string()),
        ("value", pa.float64()),
        ("size", pa.int64()),
    ]
)


def random_tables(
    *, messages: int = 100_000, users: int = 250, seed: int = 0, flows: int = 10_000, share: float = 0.03
) -> list[TableSource]:
    """Topics picked at random: `topic IN (…)`, in several profiles per subscriber."""
    interest = random(flows, users, share, seed, names=True)
    return _tables(interest, lambda: _lists(interest), messages, seed)


def mechanical_tables(
    *, messages: int = 100_000, users: int = 79, seed: int = 0, topics: int = 6100, skew: float = 0.0
) -> list[TableSource]:
    """A middleware cell: a process subscribes to all topics of its node, its role, … by a prefix."""
    interest = mechanical(users, topics, seed, skew=skew, names=True)
    return _tables(interest, lambda: _prefixes(interest), messages, seed)


def _tables(interest: Interest, rows: Any, messages: int, seed: int) -> list[TableSource]:
    topics = pa.array(interest.flow_names)
    cumulative = shares(interest.rates)

    def columns(batch: int, n: int) -> list[Any]:
        rng = batch_rng(seed, 3, batch)
        level = np.searchsorted((0.5, 0.9, 0.98), rng.random(n), side="right")
        return [
            times(rng, batch, n, RATE),
            pick(topics, by_rate(rng, cumulative, n)),
            pick(pa.array(LEVELS), level),
            np.round(rng.normal(0.0, 10.0, n), 3),
            rng.integers(50, 1000, n),
        ]

    subscriptions = TableSource(
        "subscriptions",
        schemas.PLAIN_SUBSCRIPTIONS,
        None,
        lambda: row_batches(schemas.PLAIN_SUBSCRIPTIONS, rows()),
        faults.subscription_faults(with_node=False, with_bound=False),
    )
    sizes = np.full(interest.n_flows, 525.0)
    return [
        subscriptions,
        message_source(MESSAGES, messages, columns),
        *interest_sources(interest, sizes, rate=RATE, key="topic"),
    ]


def _lists(interest: Interest) -> Iterator[tuple[str, str]]:
    users = interest.user_names or ()
    for block in blocks(interest, quoted(interest.flow_names)):
        for user, _, profile in block.texts("topic"):
            yield users[user], profile


def _prefixes(interest: Interest) -> Iterator[tuple[str, str]]:
    """A topic is `scope/number/name`: those of one audience share what comes before the name."""
    offsets, flows = interest.by_user
    prefix = [name.rsplit("/", 1)[0] for name in interest.flow_names or ()]
    for u, user in enumerate(interest.user_names or ()):
        for start in dict.fromkeys(prefix[k] for k in flows[offsets[u] : offsets[u + 1]]):
            yield user, f"topic LIKE '{start}/%'"
