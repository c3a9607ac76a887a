"""The job of the Connect test, run as a program: a client of a Spark Connect server measures its own frames."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import narrowcast as nc
from narrowcast.errors import InputError

COLUMNS = "subscriber string, profile string"


def main(remote: str, market: str, out: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    messages, subscriptions = (spark.read.parquet(f"{market}/{name}.parquet") for name in ("messages", "subscriptions"))
    before = dict(spark.conf.getAll)
    demand = nc.measure(messages, subscriptions, key="symbol", out=f"{out}/frames")
    nc.measure(f"{market}/messages.parquet", f"{market}/subscriptions.parquet", key="symbol", out=f"{out}/paths")
    # Rows that are set aside, and tables that only Spark takes in.
    wrong = spark.createDataFrame([("ann", "symbol =")], COLUMNS)
    bad = subscriptions.select("subscriber", "profile").limit(3).unionByName(wrong)
    partly = nc.measure(messages, bad, key="symbol")
    alike = messages.selectExpr("symbol", "price AS Pid", "price AS PID")
    told = ""
    try:
        nc.measure(alike, spark.createDataFrame([("ann", "Pid > 1")], COLUMNS), key="symbol")
    except InputError as error:
        told = str(error)
    said = {
        "settings as before": dict(spark.conf.getAll) == before,
        "views": [row["viewName"] for row in spark.sql("SHOW VIEWS").collect()],
        "tags": sorted(spark.getTags()),
        "interest": nc.frame(demand, "interest", spark).count(),
        "set aside": [row["reason"] for row in nc.frame(partly, "quarantine", spark).collect()],
        "alike": told,
        "plan": nc.plan(demand, groups=3, sessions=6).kind,
        "modules": sorted({"py4j", "pyspark.core.context"} & sys.modules.keys()),
    }
    Path(out, "said.json").write_text(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
