"""What a task tells of itself beside its sums: messages by verdict, their times, and how much it handed over.

Counted by the pass that matches, so that taking in a log and measuring it is one job. What a task hands over beyond
its room is marked late: whoever gathers sums at the driver leaves it where it is (`gather`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from narrowcast.data.ingest.verdicts import KIND
from narrowcast.data.statistics.partials import sum_rows

if TYPE_CHECKING:
    import pyarrow as pa

AT = "_at_us"
# Of VERDICT rows, `flow` is the kind of fault (null: good), `messages` how many, `bytes` and `weight` the first and
# last time. Of HANDED rows, `flow` is a kind of sums, `messages` its bytes and `bytes` those that are late.
VERDICT, HANDED = "verdict", "handed"


class TaskTally:
    """The messages of one task by verdict, and the first and last time of the good ones."""

    def __init__(self) -> None:
        self.verdicts: Counter[str | None] = Counter()
        self.times: list[int] = []

    def good(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The good rows of a batch, all of them counted; a batch without verdicts as it is."""
        import pyarrow.compute as pc

        if KIND not in batch.schema.names:
            return batch
        kinds = batch.column(KIND)
        if kinds.null_count < len(kinds):
            found = pc.value_counts(kinds.drop_null())
            names, counts = (found.field(name).to_pylist() for name in ("values", "counts"))
            self.verdicts.update(dict(zip(names, counts, strict=True)))
            batch = batch.filter(kinds.is_null())
        self.verdicts[None] += batch.num_rows
        ends = pc.min_max(batch.column(AT)).as_py()
        self.times += [at for at in ends.values() if at is not None]
        return batch

    def rows(self) -> pa.RecordBatch | None:
        """The counts as rows of `partials.SCHEMA`; None without verdicts."""
        if not self.verdicts:
            return None
        kinds = list(self.verdicts)
        span = (min(self.times), max(self.times)) if self.times else (None, None)
        ends = [[end if kind is None else None for kind in kinds] for end in span]
        return sum_rows(VERDICT, [self.verdicts[kind] for kind in kinds], *ends, flow=kinds)


def with_late(batches: Iterator[pa.RecordBatch], tally: TaskTally, room: int) -> Iterator[pa.RecordBatch]:
    """The batches with a column `late`, true beyond `room` bytes; then the tally, and what was handed over."""
    import pyarrow as pa

    handed: Counter[str] = Counter()
    late: Counter[str] = Counter()
    for batch in batches:
        if not batch.num_rows:
            continue
        kind = batch.column("kind")[0].as_py()
        beyond = handed.total() + batch.nbytes > room
        handed[kind] += batch.nbytes
        late[kind] += batch.nbytes if beyond else 0
        yield batch.append_column("late", pa.repeat(beyond, batch.num_rows))
    kinds = list(handed)
    told = sum_rows(HANDED, [handed[kind] for kind in kinds], [late[kind] for kind in kinds], flow=kinds)
    for rows in (tally.rows(), told):
        if rows is not None:
            yield rows.append_column("late", pa.repeat(False, rows.num_rows))
