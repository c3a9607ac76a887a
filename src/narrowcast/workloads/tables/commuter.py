"""The commuter workload as tables: subscriptions, when each holds, and the messages of days."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from narrowcast.model.arrays import Ints
from narrowcast.workloads.checks import number, whole
from narrowcast.workloads.commuter import HOUR, SLOT, Commuter, commuter
from narrowcast.workloads.overlay_clients import START_US
from narrowcast.workloads.tables import faults, schemas
from narrowcast.workloads.tables.common import by_rate, interest_sources, shares
from narrowcast.workloads.tables.source import BATCH, TableSource, batch_rng, pick, row_batches

MESSAGES = pa.schema([("ts", schemas.TIME), ("topic", pa.string()), ("value", pa.float64()), ("size", pa.int64())])
WISHES = pa.schema(
    [("subscriber", pa.string()), ("profile", pa.string()), ("since", schemas.TIME), ("until", schemas.TIME)]
)
DAY_US = 24 * 3600 * 10**6


def commuter_tables(
    *,
    messages: int = 100_000,
    users: int = 300,
    seed: int = 0,
    sites: int = 8,
    topics: int = 40,
    wishes: int = 10,
    swing: float = 1.0,
    nights: float = 0.1,
    noise: float = 0.1,
    hours: float = 24.0,
) -> list[TableSource]:
    """`topic IN (…)` for home, for work and for always; `wishes` says from when until when each of them holds."""
    hours = number("hours", hours, low=0.25)
    day = commuter(users, sites, topics, seed, wishes=wishes, swing=swing, nights=nights, noise=noise, churn=0.0)
    texts = _profiles(day)
    plain = schemas.PLAIN_SUBSCRIPTIONS
    always = faults.subscription_faults(with_node=False, with_bound=False)
    return [
        TableSource("subscriptions", plain, None, lambda: row_batches(plain, ((u, t) for u, t, _ in texts)), always),
        TableSource("wishes", WISHES, None, lambda: row_batches(WISHES, _held(day, texts, hours))),
        _messages(day, whole("messages", messages), hours, seed),
        *interest_sources(day.at(12 * HOUR), np.full(day.base.size, 200.0), rate=float(day.base.sum()), key="topic"),
    ]


def _profiles(day: Commuter) -> list[tuple[str, str, int]]:
    """(subscriber, profile, place) of every wish: at home, at work, anywhere."""
    found = []
    for u, name in enumerate(day.user_names):
        for place in range(3):
            flows: Ints = day.flow[(day.user == u) & (day.place == place)]
            words = ", ".join(f"'{day.flow_names[k]}'" for k in flows)
            found.append((name, f"topic IN ({words})", place))
    return found


def _held(day: Commuter, texts: list[tuple[str, str, int]], hours: float) -> Iterator[tuple[Any, ...]]:
    """Each wish with the times between which it holds, over all days."""
    from datetime import UTC, datetime, timedelta

    midnight = datetime.fromtimestamp(START_US // DAY_US * DAY_US / 1e6, UTC)
    number_of = {name: u for u, name in enumerate(day.user_names)}
    for name, text, place in texts:
        u = number_of[name]
        leaves, returns = float(day.leaves[u]), float(day.returns[u])
        if place == 2 or not np.isfinite(leaves):
            if place != 1:
                yield name, text, None, None
            continue
        for begin in range(-1, int(np.ceil(hours / 24)) + 1):
            out, back = begin * 24 * HOUR + leaves, begin * 24 * HOUR + returns
            back += 24 * HOUR if back < out else 0.0
            since, until = (out, back) if place == 1 else (back, out + 24 * HOUR)
            if until > 0 and since < hours * HOUR and since < until:
                yield name, text, midnight + timedelta(seconds=since), midnight + timedelta(seconds=until)


def _messages(day: Commuter, n: int, hours: float, seed: int) -> TableSource:
    """So many messages in all, spread over the time and the topics by their rates."""
    slots = np.arange(round(hours * HOUR / SLOT))
    cumulative = [shares(day.at(slot * SLOT).rates) for slot in slots]
    of_slot = np.cumsum([day.rates(slot * SLOT).sum() for slot in slots])
    names, start = pa.array(day.flow_names), START_US // DAY_US * DAY_US

    def batches() -> Iterator[pa.RecordBatch]:
        for batch, at in enumerate(range(0, n, BATCH)):
            rng = batch_rng(seed, 7, batch)
            rows = min(BATCH, n - at)
            where = np.sort(rng.uniform(at / n, (at + rows) / n, rows)) * of_slot[-1]
            slot = np.minimum(np.searchsorted(of_slot, where, side="right"), slots.size - 1)
            begun = np.append(0.0, of_slot)[slot]
            within = (where - begun) / (of_slot[slot] - begun)
            flow = np.concatenate([by_rate(rng, cumulative[s], int((slot == s).sum())) for s in np.unique(slot)])
            ts = start + ((slot + within) * SLOT * 1e6).astype(np.int64)
            columns = [pa.array(ts, schemas.TIME), pick(names, flow), pa.array(np.round(rng.normal(0, 10, rows), 3)),
                       pa.array(rng.integers(50, 1000, rows))]  # fmt: skip
            yield pa.RecordBatch.from_arrays(columns, schema=MESSAGES)

    return TableSource("messages", MESSAGES, n, batches, faults.MESSAGE_FAULTS, faults.MESSAGE_TEXT_FAULTS)
