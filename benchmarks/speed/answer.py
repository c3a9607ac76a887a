"""One scan against many: merged queries over a table, and the original queries one by one, on Spark in one run.

    python benchmarks/speed/answer.py [--rows 10000000] [--queries 1000] [--full]

Both ways write their answers as Parquet. The merged run is timed whole: reading and planning the queries, sizes
from the table, the scan, and the files. The original queries run one by one, in an order drawn by lot, until they
have taken five times as long: if they are not done by then, the target is met, measured and not estimated (the
time of all is then scaled up, and the output says so). `--full` runs every one. Answers of some queries are
extracted from the channels and compared with Spark's own. Prints JSON; exit code 1 if the target is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import narrowcast as nc
from narrowcast.data.answer.answer import Merging, answer
from narrowcast.data.spark.session import session
from narrowcast.plans.queries.api import Client, read_answers

TARGET = 5.0
PIECE = 1_000_000


def make(folder: Path, rows: int, queries: int, side: float, seed: int = 0) -> None:
    """Rows spread evenly over a square of 400; queries crowded as the study draws them."""
    rng = np.random.default_rng(seed)
    boxes = nc.workloads.rectangles(n=queries, side=(side / 2, side), seed=seed)
    writer = None
    for start in range(0, rows, PIECE):
        n = min(PIECE, rows - start)
        x, y = rng.uniform(0, 400, (2, n))
        part = pa.table({"id": np.arange(start, start + n), "x": x, "y": y, "value": rng.integers(0, 1000, n)})
        writer = writer or pq.ParquetWriter(folder / "table.parquet", part.schema)
        writer.write_table(part, row_group_size=250_000)
    if writer is not None:
        writer.close()
    texts = [f"x BETWEEN {float(a)} AND {float(b)} AND y BETWEEN {float(c)} AND {float(d)}" for (a, b), (c, d) in boxes]
    names = {"query": [f"q{i}" for i in range(queries)], "client": [f"c{i % 50}" for i in range(queries)]}
    pq.write_table(pa.table({**names, "profile": texts}), folder / "queries.parquet")


def one_by_one(spark: Any, folder: Path, texts: list[str], limit: float = float("inf")) -> tuple[int, float]:
    """Each query apart: read, filter, write. Spark pushes the ranges down into Parquet. (queries done, seconds)."""
    start, done = time.perf_counter(), 0
    for i, text in enumerate(texts):
        spark.read.parquet(str(folder / "table.parquet")).where(text).write.parquet(str(folder / "apart" / str(i)))
        done = i + 1
        if time.perf_counter() - start > limit:
            break
    return done, time.perf_counter() - start


def same_answers(spark: Any, folder: Path, chosen: list[int], texts: list[str]) -> bool:
    clients = {f"c{i % 50}": Client(f"c{i % 50}") for i in chosen}
    for name, client in clients.items():
        for got in read_answers(folder / "merged", name):
            client.receive(got)
    frame = spark.read.parquet(str(folder / "table.parquet"))
    return all(
        sorted(clients[f"c{i % 50}"].answers[f"q{i}"]["id"].to_pylist())
        == sorted(frame.where(texts[i]).select("id").toArrow()["id"].to_pylist())
        for i in chosen
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--side", type=float, default=40.0, help="the longest side of a query, in a square of 400")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--procedure", default="rectangle")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="narrowcast-answer-"))
    try:
        make(folder, options.rows, options.queries, options.side)
        texts = pq.read_table(folder / "queries.parquet")["profile"].to_pylist()
        order = np.random.default_rng(1).permutation(options.queries).tolist()
        spark = session(memory="2g")
        one_by_one(spark, folder, texts[:1])  # both ways start with a warm JVM and warm workers
        shutil.rmtree(folder / "apart")
        spark.range(10).mapInArrow(lambda batches: batches, "id bigint").count()
        merging = Merging(procedure=options.procedure)
        start = time.perf_counter()
        result = answer(spark, folder / "queries.parquet", folder / "table.parquet", folder / "merged", merging)
        merged = time.perf_counter() - start
        limit = float("inf") if options.full else TARGET * merged
        n, apart = one_by_one(spark, folder, [texts[i] for i in order], limit)
        whole = apart / n * options.queries
        equal = same_answers(spark, folder, order[:3], texts)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({
        "rows": options.rows, "queries": options.queries, "channels": result.channels, "rows_sent": result.rows,
        "merged_seconds": round(merged, 2),
        "of_which": {step.table: round(step.seconds, 2) for step in result.steps},
        "one_by_one_queries_run": n, "one_by_one_seconds_of_those": round(apart, 2),
        "one_by_one_seconds_of_all": round(whole, 2),
        "one_by_one_of_all_is": "measured" if n == options.queries else f"scaled up from {n} of {options.queries}",
        "at_least_times_faster": round(apart / merged, 1),
        "times_faster": round(whole / merged, 1), "target": TARGET, "answers_equal": equal,
    }, indent=2))  # fmt: skip
    return 0 if equal and apart / merged >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
