"""The job of the cluster test, run as a program: measure on a master, and say when matching begins."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from narrowcast.data.spark.session import session
from narrowcast.data.statistics import gather
from narrowcast.data.statistics.measure import MeasureSettings, find_inputs, measure_folder


def places(_: Any) -> list[str]:
    import narrowcast

    return [str(narrowcast.__file__)]


def main(master: str, inputs: str, out: str) -> None:
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    small = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "2"}
    spark = session(master, extra=loopback | small)
    if not master.startswith("local"):
        gather.FIT = 0  # all by shuffles, which lose what a killed worker held; the other tables are the driver's
        print("package:", *sorted(set(spark.sparkContext.range(0, 4, numSlices=4).mapPartitions(places).collect())))

    def tell(step: Any) -> None:
        if step.table == "matcher":
            Path(f"{out}.begun").touch()
        print(f"{step.table}: {step.rows} rows, {step.seconds:.1f} s", flush=True)

    measure_folder(
        spark, find_inputs(inputs), out, MeasureSettings(key=("symbol",), overlap=False, partitions=8), explain=tell
    )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
