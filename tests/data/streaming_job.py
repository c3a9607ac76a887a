"""A process to be killed: a streaming query that publishes rows, and one that keeps statistics of what was published.

    python streaming_job.py FOLDER ENTRIES sent followed

FOLDER has `rows` (Parquet files to publish), `nats` (the data folder of the server) and `subscriptions.parquet`;
what comes out goes there too. Each line of output is a micro-batch that was done; the process ends once the
queries named have nothing left to do.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from narrowcast.data.spark.session import session
from narrowcast.data.statistics.follow import follow
from narrowcast.model import snapshot

HALF_LIFE_S = 3600.0
SCHEMA = "n bigint, symbol string, price double, ts timestamp"


def send(spark: Any, folder: Path) -> Any:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    # A shuffle, so that a micro-batch that is run again need not have its rows in the same order.
    sink = rows.repartition(2).writeStream.format("narrowcast").option("url", str(folder / "nats"))
    return sink.option("checkpointLocation", str(folder / "sent")).trigger(availableNow=True).start()


def keep_statistics(spark: Any, folder: Path, entries: str) -> Any:
    log = spark.readStream.format("narrowcast").option("url", str(folder / "nats"))
    return follow(
        spark,
        log.option("maxEntriesPerTrigger", entries).schema(f"_shard int, _sequence bigint, {SCHEMA}").load(),
        folder / "subscriptions.parquet",
        checkpoint=folder / "statistics",
        out=folder / "out",
        key=("symbol",),
        half_life_s=HALF_LIFE_S,
        every_s=0.0,
        keep=2,
    ).query


def is_done(name: str, query: Any, folder: Path) -> bool:
    if query.exception() is not None:
        raise SystemExit(str(query.exception()))
    if name == "sent":
        return not query.isActive
    found = snapshot.latest(folder / "out")
    return found is not None and found.messages >= int((folder / "wanted").read_text())


def main(folder: Path, entries: str, names: list[str]) -> None:
    spark = session("local[2]", quick=True, extra={"spark.sql.shuffle.partitions": "2"})
    made = {"sent": lambda: send(spark, folder), "followed": lambda: keep_statistics(spark, folder, entries)}
    queries = {name: made[name]() for name in names}
    told: set[tuple[str, int]] = set()
    deadline = time.monotonic() + 1500
    done = False
    while not done and time.monotonic() < deadline:
        time.sleep(0.1)
        done = all(is_done(name, query, folder) for name, query in queries.items())
        for name, query in queries.items():
            for progress in query.recentProgress:
                if progress.numInputRows and (name, progress.batchId) not in told:
                    told.add((name, progress.batchId))
                    print(name, progress.batchId, progress.numInputRows, flush=True)
    if not done:
        raise SystemExit("not done in time")
    for query in queries.values():
        query.stop()
    spark.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
