"""The job of the cluster test, run as a program: measures on a master in its own session, and says how far it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from narrowcast.data.spark.java import java_home
from narrowcast.data.statistics import gather
from narrowcast.data.statistics.measure import MeasureSettings, find_inputs, measure_folder


def places(_: Any) -> list[str]:
    import importlib.util

    found = importlib.util.find_spec("narrowcast")
    return [str(found and found.origin)]


def main(master: str, inputs: str, out: str) -> None:
    os.environ["JAVA_HOME"] = str(java_home())
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    small = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "2"}
    spark = builder.config(map=loopback | small).getOrCreate()
    context = spark.sparkContext

    def workers_have() -> list[str]:
        return sorted(set(context.range(0, 4, numSlices=4).mapPartitions(places).collect()))

    if not master.startswith("local"):
        gather.FIT = 0  # all by shuffles, which lose what a killed worker held; the other tables are the driver's
        print("before:", *workers_have(), flush=True)

    def tell(step: Any) -> None:
        if step.table == "matcher":
            Path(f"{out}.begun").touch()
        print(f"{step.table}: {step.rows} rows, {step.seconds:.1f} s", flush=True)

    settings = MeasureSettings(key=("symbol",), overlap=False, partitions=8)
    measure_folder(spark, find_inputs(inputs), out, settings, explain=tell)
    print("after:", *workers_have(), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
