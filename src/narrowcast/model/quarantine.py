"""Where bad rows go: file, row and reason, so that rows in = accepted + quarantined, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Bools

SCHEMA = ("file", "row", "reason")


@dataclass
class Quarantine:
    """Rows set aside so far. With `strict` the first of them is an InputError instead.

    >>> aside = Quarantine()
    >>> aside.add("flows.csv", [2], "rate is negative")
    >>> aside.rows
    [('flows.csv', 3, 'rate is negative')]
    """

    strict: bool = False
    rows: list[tuple[str, int, str]] = field(default_factory=list)

    def add(self, file: str | Path, indices: Sequence[int], reason: str) -> None:
        """Set rows aside, given by 0-based index; they are reported counting from 1."""
        if self.strict and len(indices):
            raise InputError(
                f"{file}, row {indices[0] + 1}: {reason}", got=reason, hint="fix it, or run without --strict"
            )
        self.rows += [(str(file), int(i) + 1, reason) for i in indices]

    def write(self, path: Path) -> None:
        """As a Parquet table, sorted by file and row."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = list(zip(*sorted(self.rows), strict=True)) or [(), (), ()]
        types = (pa.string(), pa.int64(), pa.string())
        arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
        pq.write_table(pa.table(dict(zip(SCHEMA, arrays, strict=True))), path)


@dataclass
class Sieve:
    """Checks on the rows of one table, in order; a row fails by the first check that refuses it."""

    file: str | Path
    n: int
    quarantine: Quarantine

    def __post_init__(self) -> None:
        self.good: Bools = np.ones(self.n, np.bool_)

    def refuse(self, bad: Any, reason: str) -> None:
        """Set aside the still good rows where `bad` holds."""
        failed = self.good & np.asarray(bad, dtype=np.bool_)
        if failed.any():
            self.quarantine.add(self.file, np.flatnonzero(failed).tolist(), reason)
            self.good &= ~failed
