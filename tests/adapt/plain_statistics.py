"""Statistics of a log in plain Python, written as snapshots: what the streaming job does, slowly and by definition."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from narrowcast.deliver.wire import Batch, decode_entry
from narrowcast.model import snapshot as snapshots

Wants = Callable[[str, Mapping[str, Any]], bool]


class PlainStatistics:
    """Reads a log on and on. A message counts from when it is read, at the weight of its age."""

    def __init__(self, out: Path, key: str, half_life_s: float, wants: Wants) -> None:
        self.out, self.key, self.half_life_s, self.wants = out, key, half_life_s, wants
        self.at = self.number = 0
        self.messages: Counter[str] = Counter()
        self.seen: list[tuple[float, Mapping[str, Any]]] = []
        self.began = time.time()

    def take(self, entries: Iterable[Any], now: float) -> None:
        for entry in entries:
            self.at = entry.sequence
            found = decode_entry(entry.data)
            for payload in found.payloads if isinstance(found, Batch) else ():
                row = json.loads(payload)
                self.messages[row[self.key]] += 1
                self.seen.append((now, row))
        self.seen = [(at, row) for at, row in self.seen if at > now - 10 * self.half_life_s]

    def write(self, subscriptions: Mapping[str, str], now: float) -> snapshots.Snapshot:
        """A snapshot of now, for these subscriptions; only what they match of late is interest."""
        weight: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for at, row in self.seen:
            age = 0.5 ** ((now - at) / self.half_life_s)
            weight[row[self.key]] += age  # type: ignore[assignment]
            for name, profile in subscriptions.items():
                if self.wants(profile, row):
                    pairs[row[self.key], name] += age  # type: ignore[assignment]
        h = self.half_life_s / 0.6931
        span = h * (1 - 0.5 ** ((now - self.began) / self.half_life_s))
        names = sorted(self.messages)
        flows = {
            "flow": names,
            "rate": [self.messages[f] / (now - self.began) for f in names],
            "size": [100.0] * len(names),
            "messages": [self.messages[f] for f in names],
            "bytes": [100 * self.messages[f] for f in names],
            "weight": [float(weight[f]) for f in names],
            "recent_rate": [weight[f] / span for f in names],
        }
        interest = {
            "flow": [flow for flow, _ in sorted(pairs)],
            "subscriber": [name for _, name in sorted(pairs)],
            "weight": [float(pairs[pair]) for pair in sorted(pairs)],
        }
        empty = {
            name: pa.table({c: pa.array([], pa.string()) for c in cols}) for name, cols in snapshots.TABLES.items()
        }
        tables = empty | {"flows": pa.table(flows), "interest": pa.table(interest)}
        self.number += 1
        made = snapshots.Snapshot(
            self.number, {0: self.at}, sum(self.messages.values()), float(sum(weight.values())), now - self.began,
            int(self.began * 1e6), int(now * 1e6), self.half_life_s, (self.key,), tables, now,
        )  # fmt: skip
        snapshots.save(made, self.out)
        return made
