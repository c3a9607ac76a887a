"""The second job of the Connect test, run as a program: replay, answer, plan and the log through one server."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from narrowcast.data.answer.answer import Merging, answer
from narrowcast.data.planning.plan_channels import plan_channels
from narrowcast.data.planning.replay import replay
from narrowcast.data.statistics.follow import follow
from narrowcast.errors import NarrowcastError
from narrowcast.plans.queries.api import Constants


def refusal(job: Callable[[], Any]) -> str:
    """What the job is refused with; "" if it is not."""
    try:
        job()
    except NarrowcastError as error:
        return str(error)
    return ""


def main(remote: str, place: str, log: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    before = dict(spark.conf.getAll)
    at = Path(place)
    given = at / "messages.parquet"
    replayed = replay(
        spark, at, given, key=("flow",), subscriptions=at / "subscriptions.parquet", out=at / "connect-replay"
    )
    asked = at / "queries.parquet", at / "table.parquet"
    merging = Merging(constants=Constants(km=1.0, kt=1e-3, ku=1e-3))
    answered = answer(spark, *asked, at / "connect-answer", merging)
    wishes = at / "flows.parquet", at / "interest.parquet"
    planned = plan_channels(spark, *wishes, groups=2, sessions=3)
    stream = spark.readStream.format("rate").load().selectExpr("'a' AS symbol")
    kept = {"checkpoint": at / "checkpoint", "out": at / "snapshots", "key": ["symbol"]}
    # The log: a frame is sent, read back, and read as a stream, by the server.
    source = {"url": log}
    frame = spark.range(50).selectExpr("concat('s', id % 5) AS symbol", "id AS n")
    frame.write.format("narrowcast").options(**source).mode("append").save()
    columns = "symbol string, n bigint"
    back = spark.read.format("narrowcast").options(**source).schema(columns).load().collect()
    reading = spark.readStream.format("narrowcast").options(**source).schema(columns).load()
    writing = reading.writeStream.format("parquet").option("checkpointLocation", str(at / "reading"))
    query = writing.option("path", str(at / "read")).trigger(availableNow=True).start()
    end = time.monotonic() + 200
    while query.isActive and time.monotonic() < end:
        time.sleep(0.2)
    said = {
        "cost": replayed.cost,
        "channels": [answered.channels, answered.rows, answered.set_aside],
        "plan": [planned.made_on, planned.plan.kind],
        "incremental": refusal(lambda: answer(spark, *asked, at / "never", merging, incremental=at / "state")),
        "shards": refusal(lambda: plan_channels(spark, *wishes, groups=2, sessions=3, driver_pairs=1)),
        "follow": refusal(lambda: follow(spark, stream, lambda: [("ann", "TRUE")], **kept)),
        "back": sorted([row["symbol"], row["n"]] for row in back),
        "streamed": spark.read.schema(columns).parquet(str(at / "read")).count(),
        "settings as before": dict(spark.conf.getAll) == before,
    }
    (at / "verbs.json").write_text(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
