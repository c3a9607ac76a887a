"""Planting a known share of bad rows among the good ones, and remembering where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
import pyarrow as pa

from narrowcast.workloads.tables.sink import Inserts
from narrowcast.workloads.tables.source import Row, TableSource


@dataclass(frozen=True, slots=True)
class Planted:
    """One bad row: its table, the row counted from 1 as quarantine counts it, and what is bad about it."""

    table: str
    file: str
    row: int
    kind: str


class Planter:
    """Adds ⌈share·rows⌉ bad rows to a table, of every kind in turn; the good rows stay as they were."""

    def __init__(self, source: TableSource, file: str, share: float, seed: int, *, typed: bool) -> None:
        faults = dict(source.faults) | ({} if typed else dict(source.text_faults))
        self.source, self.file, self.share = source, file, share
        self.kinds = list(faults.items())
        self.rng = np.random.default_rng([seed, 0xBAD, len(source.name)])
        self.good = 0
        self.planted: list[Planted] = []

    def inserts(self, batch: pa.RecordBatch) -> Inserts:
        """The bad rows that go into this batch, each made from the good row just before it."""
        first = self.good
        self.good += batch.num_rows
        if not self.share or not self.kinds:
            return []
        due = ceil(self.share * self.good) - len(self.planted)
        models = np.sort(self.rng.choice(batch.num_rows, size=min(due, batch.num_rows), replace=False))
        rows = batch.take(pa.array(models)).to_pylist()
        return list(self._spoil(first, zip(models.tolist(), rows, strict=True)))

    def _spoil(self, first: int, models: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
        for at, row in models:
            n = len(self.planted)
            kind, fault = self.kinds[n % len(self.kinds)]
            self.planted.append(Planted(self.source.name, self.file, first + at + 2 + n, kind))
            yield at + 1, fault(row, n)
