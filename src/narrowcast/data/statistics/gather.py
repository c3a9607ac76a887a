"""The workers' sums at the driver, as far as they fit there: by counted bytes, never guessed.

Each task has room for a share of `FIT` bytes; what it hands over beyond that is marked late and stays with Spark. A
kind of sums that is complete here is finished here (`arrays`), any other by shuffles (`tables`): the same tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.spark.home import job_named, n_partitions
from narrowcast.data.statistics import partials as p
from narrowcast.data.statistics.sparse_sums import COLUMN_BYTES
from narrowcast.data.statistics.tables import SUMS, Totals, totals
from narrowcast.data.statistics.tally import HANDED, VERDICT

if TYPE_CHECKING:
    import pyarrow as pa

# What of the workers' sums the driver holds; its tables take several times as much.
FIT = 128 << 20


def room(messages: DataFrame) -> int:
    """How many bytes each task on these messages may hand over for the driver to hold them all."""
    return FIT // max(1, n_partitions(messages))


@dataclass(frozen=True, eq=False)
class Gathered:
    """Sums that are at the driver, rows of `partials.SCHEMA`, and what the tasks told of themselves.

    `late` has the kinds of sums of which some are not here. `verdicts` counts messages by kind of fault (None:
    good), `times_us` are the first and last time; both are empty where messages came without verdicts.
    """

    sums: pa.Table
    handed: Mapping[str, int]
    late: frozenset[str]
    verdicts: Mapping[str | None, int]
    times_us: tuple[int, int] | None

    def of(self, kind: str) -> pa.Table:
        import pyarrow.compute as pc

        return self.sums.filter(pc.equal(self.sums["kind"], kind))

    def has(self, *kinds: str) -> bool:
        """Whether all sums of these kinds are here."""
        return not self.late & {*kinds}


def gathered(partials: DataFrame) -> Gathered:
    """What fits of `match.partials` with `room`, in one job."""
    import pyarrow.compute as pc

    with job_named(partials.sparkSession, "matching messages"):
        rows = partials.where(~F.col("late")).drop("late").toArrow()
    kinds = rows["kind"]
    verdicts: Counter[str | None] = Counter()
    handed: Counter[str] = Counter()
    late: Counter[str] = Counter()
    times: list[int] = []
    for row in rows.filter(pc.equal(kinds, VERDICT)).to_pylist():
        verdicts[row["flow"]] += row["messages"]
        times += [at for at in (row["bytes"], row["weight"]) if at is not None]
    for row in rows.filter(pc.equal(kinds, HANDED)).to_pylist():
        handed[row["flow"]] += row["messages"]
        late[row["flow"]] += row["bytes"]
    span = (min(times), max(times)) if times else None
    return Gathered(rows, handed, frozenset(kind for kind, size in late.items() if size), verdicts, span)


def totals_of(here: Gathered, partials: DataFrame, seconds: float | None) -> Totals:
    """`tables.totals`, without a job where the sums for it are here."""
    if not here.has(p.TOTAL, p.PROFILE):
        return totals(partials, seconds)
    messages, size, weight = (int(n) for n in _summed(here.of(p.TOTAL)).sum(axis=0))
    profiles = here.of(p.PROFILE)
    a = profiles["a"].to_numpy()
    by_profile = np.zeros((int(a.max(initial=-1)) + 1, 3), np.int64)
    np.add.at(by_profile, a, _summed(profiles))
    most = {kind: here.handed.get(kind, 0) // COLUMN_BYTES for kind in (p.PAIR, p.OVERLAP)}
    return Totals(messages, size, weight, seconds, here.sums.num_rows, most, by_profile)


def _summed(rows: pa.Table) -> p.Ints:
    return np.column_stack([rows[name].to_numpy() for name in SUMS]).reshape(-1, 3)
