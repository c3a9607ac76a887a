"""A process to be killed: a streaming query that publishes rows, and one that keeps statistics of what was published.

    python streaming_job.py FOLDER ENTRIES

FOLDER has `rows` (Parquet files to publish), `nats` (the data folder of the server) and `subscriptions.parquet`;
what comes out goes there too. Each line of output is a micro-batch that was done; the process ends once everything is.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from narrowcast.model import snapshot
from narrowcast.pipeline.session import session
from narrowcast.pipeline.stream_statistics import follow

HALF_LIFE_S = 3600.0
SCHEMA = "n bigint, symbol string, price double, ts timestamp"


def main(folder: Path, entries: str) -> None:
    spark = session("local[2]", quick=True, extra={"spark.sql.shuffle.partitions": "2"})
    nats = str(folder / "nats")
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    # A shuffle, so that a micro-batch that is run again need not have its rows in the same order.
    sink = rows.repartition(2).writeStream.format("narrowcast").option("url", nats)
    sent = sink.option("checkpointLocation", str(folder / "sent")).trigger(processingTime="0 seconds").start()
    log = spark.readStream.format("narrowcast").option("url", nats).option("maxEntriesPerTrigger", entries)
    followed = follow(
        spark,
        log.schema(f"_shard int, _sequence bigint, {SCHEMA}").load(),
        folder / "subscriptions.parquet",
        checkpoint=folder / "statistics",
        out=folder / "out",
        key=("symbol",),
        half_life_s=HALF_LIFE_S,
        every_s=0.0,
        keep=2,
    )
    wanted, deadline = int((folder / "wanted").read_text()), time.monotonic() + 1500
    told: set[tuple[str, int]] = set()
    while time.monotonic() < deadline:
        for name, query in (("sent", sent), ("followed", followed.query)):
            if query.exception() is not None:
                raise SystemExit(str(query.exception()))
            for progress in query.recentProgress:
                if (name, progress.batchId) not in told:
                    told.add((name, progress.batchId))
                    print(name, progress.batchId, progress.numInputRows, flush=True)
        found = snapshot.latest(folder / "out")
        if found is not None and found.messages >= wanted:
            break
        time.sleep(0.1)
    else:
        raise SystemExit("not done in time")
    sent.stop()
    followed.stop()
    spark.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
