"""The Matcher against a NumPy scan and against the same profiles as a Spark SQL join, in one run.

    python benchmarks/speed/matcher.py [--quick] [--no-spark]

Every peer must give the same pairs. The Matcher's time includes reading the Arrow table; the peers
get their data as they like it best: NumPy as arrays with symbols already numbered, Spark as cached
tables. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from narrowcast.profiles import Matcher, Profile

RANGES = ("price", "size", "spread", "age")
N_SYMBOLS = 500
console = Console(width=110)
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Workload:
    """Conjunctions of 2–4 predicates: an optional symbol, and a low and a high per range attribute (NaN: none)."""

    name: str
    symbol: NDArray[np.int64]  # −1: any
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def texts(self) -> list[str]:
        result = []
        for k in range(self.symbol.size):
            terms = [f"symbol = 'S{self.symbol[k]}'"] if self.symbol[k] >= 0 else []
            for name, low, high in zip(RANGES, self.low[k].tolist(), self.high[k].tolist(), strict=True):
                if low == low and high == high:
                    terms.append(f"{name} BETWEEN {low} AND {high}")
                elif low == low:
                    terms.append(f"{name} >= {low}")
                elif high == high:
                    terms.append(f"{name} <= {high}")
            result.append(" AND ".join(terms))
        return result


def workload(name: str, n: int, with_symbol: float, seed: int) -> Workload:
    """Profiles like `symbol = 'S7' AND price >= 103.2 AND size BETWEEN 120 AND 400`."""
    rng = np.random.default_rng(seed)
    symbol = np.where(rng.random(n) < with_symbol, rng.integers(0, N_SYMBOLS, n), -1)
    low, high = np.full((n, len(RANGES)), np.nan), np.full((n, len(RANGES)), np.nan)
    for k in range(n):
        n_ranges = int(rng.integers(1, 4)) if symbol[k] >= 0 else int(rng.integers(2, 5))
        for a in rng.permutation(len(RANGES))[:n_ranges]:
            place = rng.random()
            width = rng.uniform(0.02, 0.3)
            shape = rng.integers(4)  # half of the ranges are bounded on both sides
            low[k, a] = np.round(1000 * place, 2) if shape != 1 else np.nan
            high[k, a] = np.round(1000 * (place + width), 2) if shape != 2 else np.nan
            if shape == 1:
                high[k, a] = np.round(1000 * width, 2)
            elif shape == 2:
                low[k, a] = np.round(1000 * (1 - width), 2)
    return Workload(name, symbol, low, high)


def messages(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    symbols = pa.array([f"S{k}" for k in rng.integers(0, N_SYMBOLS, n)])
    return pa.table({"symbol": symbols, **{name: np.round(rng.uniform(0, 1000, n), 2) for name in RANGES}})


def scan_by_profile(work: Workload, symbol: NDArray[np.int32], values: list[NDArray[np.float64]]) -> Pairs:
    """For each profile one comparison of a whole column per bound; pairs come out by profile."""
    rows, profiles = [], []
    for k in range(work.symbol.size):
        mask = symbol == work.symbol[k] if work.symbol[k] >= 0 else None
        for a, column in enumerate(values):
            for bound, compare in ((work.low[k, a], np.greater_equal), (work.high[k, a], np.less_equal)):
                if bound == bound:
                    mask = compare(column, bound) if mask is None else mask & compare(column, bound)
        found = np.flatnonzero(mask)
        rows.append(found)
        profiles.append(np.full(found.size, k))
    return np.concatenate(rows), np.concatenate(profiles)


def scan_by_message(work: Workload, symbol: NDArray[np.int32], values: list[NDArray[np.float64]]) -> Pairs:
    """For each message one comparison with all profiles per bound."""
    low, high = (
        np.where(np.isnan(work.low), -np.inf, work.low).T.copy(),
        np.where(np.isnan(work.high), np.inf, work.high).T.copy(),
    )
    any_symbol = work.symbol < 0
    rows, profiles = [], []
    for i in range(symbol.size):
        mask = any_symbol | (work.symbol == symbol[i])
        for a, column in enumerate(values):
            mask &= (low[a] <= column[i]) & (high[a] >= column[i])
        found = np.flatnonzero(mask)
        rows.append(np.full(found.size, i))
        profiles.append(found)
    return np.concatenate(rows), np.concatenate(profiles)


def _sorted(rows: NDArray[np.int64], profiles: NDArray[np.int64]) -> Pairs:
    order = np.lexsort((profiles, rows))
    return rows[order], profiles[order]


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


def same(a: Pairs, b: Pairs, what: str) -> None:
    if not (np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1])):
        console.print(f"[red]{what} gives {b[0].size} pairs, the Matcher {a[0].size}, and they differ")
        sys.exit(1)


def numpy_seconds(work: Workload, table: pa.Table, expected: Pairs) -> tuple[float, str]:
    """Seconds of the faster way to scan, and which that is."""
    symbol = np.array([int(name[1:]) for name in table["symbol"].to_pylist()], np.int32)
    values = [table[name].to_numpy() for name in RANGES]
    few = slice(0, 200)
    by_message, _ = timed(lambda: scan_by_message(work, symbol[few], [v[few] for v in values]), 1)
    seconds, found = timed(lambda: scan_by_profile(work, symbol, values), 2)
    same(expected, _sorted(*found), "the NumPy scan")
    estimate = by_message / 200 * symbol.size
    if estimate < seconds:
        seconds, found = timed(lambda: scan_by_message(work, symbol, values), 1)
        same(expected, found, "the NumPy scan")
        return seconds, "by message"
    return seconds, "by profile"


def spark_session() -> Any:
    try:
        from narrowcast.data.spark.session import session

        return session(master="local[2]")
    except ImportError:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.driver.memory", "2g")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        return builder.config("spark.driver.extraJavaOptions", "-Dlog4j.rootCategory=ERROR").getOrCreate()


def spark_seconds(spark: Any, work: Workload, table: pa.Table, expected: Pairs, repeats: int) -> float:
    """Seconds of the join alone, warm. Profiles with a symbol join on it; the rest need a nested loop."""
    import pandas as pd

    bounds = {f"{name}_{side}": getattr(work, side)[:, a] for a, name in enumerate(RANGES) for side in ("low", "high")}
    names = [None if s < 0 else f"S{s}" for s in work.symbol]
    frame = pd.DataFrame({"profile": np.arange(work.symbol.size), "wanted": names, **bounds})
    profiles = spark.createDataFrame(frame.replace({np.nan: None}), _schema()).cache()
    rows = table.append_column("message", pa.array(np.arange(table.num_rows))).to_pandas()
    arrived = spark.createDataFrame(rows).repartition(2).cache()
    profiles.count(), arrived.count()
    profiles.createOrReplaceTempView("profiles")
    arrived.createOrReplaceTempView("messages")
    ranges = " AND ".join(
        f"({n}_low IS NULL OR {n} >= {n}_low) AND ({n}_high IS NULL OR {n} <= {n}_high)" for n in RANGES
    )
    parts = []
    if (work.symbol >= 0).any():
        parts.append(
            "SELECT /*+ BROADCAST(p) */ message, profile FROM messages m JOIN profiles p "
            f"ON symbol = wanted AND {ranges}"
        )
    if (work.symbol < 0).any():
        parts.append(
            "SELECT /*+ BROADCAST(p) */ message, profile FROM messages m JOIN "
            f"(SELECT * FROM profiles WHERE wanted IS NULL) p ON {ranges}"
        )
    joined = spark.sql(" UNION ALL ".join(parts))
    found = joined.toPandas()
    same(expected, _sorted(found["message"].to_numpy(), found["profile"].to_numpy()), "Spark")
    seconds, _ = timed(lambda: joined.write.format("noop").mode("overwrite").save(), repeats)
    profiles.unpersist(), arrived.unpersist()
    return seconds


def _schema() -> str:
    return "profile long, wanted string, " + ", ".join(f"{n}_{s} double" for n in RANGES for s in ("low", "high"))


def memory_bytes(matcher: Matcher) -> int:
    return len(pickle.dumps(matcher, protocol=5))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast it is")
    parser.add_argument("--no-spark", action="store_true")
    options = parser.parse_args()
    base = 1_000 if options.quick else 10_000
    n_messages, repeats = (5_000, 2) if options.quick else (20_000, 3)
    table = messages(n_messages, seed=1)
    spark = None if options.no_spark else spark_session()
    missed = compare(base, table, spark, repeats)
    if spark is not None:
        spark.stop()
    growth([base // 10, base, 10 * base], table, repeats)
    if missed:
        console.print(f"[red]missed: {'; '.join(missed)}")
    return 1 if missed and not options.quick else 0


def compare(base: int, table: pa.Table, spark: Any, repeats: int) -> list[str]:
    """The ratios, printed; returns the targets missed."""
    # (profiles, share with a symbol, least ratio to Spark, least ratio to NumPy)
    cases = [
        (workload("half with a symbol", base, 0.5, 2), 50, 5),
        (workload("ranges only", base, 0.0, 3), 50, 5),
        (workload("all with a symbol", base, 1.0, 4), None, 5),
        (workload("all with a symbol", 10 * base, 1.0, 5), None, 20),
    ]
    shown = Table(
        "profiles", "of which", "pairs", "Matcher µs/msg", "NumPy ×", "Spark ×", title="Time of peers / time of Matcher"
    )
    missed = []
    for work, least_spark, least_numpy in cases:
        matcher = Matcher(work.texts())
        matcher.match(table.slice(0, 100))
        seconds, found = timed(lambda m=matcher: m.match(table), repeats)
        by_numpy, how = numpy_seconds(work, table, found)
        ratio_numpy, ratio_spark = by_numpy / seconds, None
        if ratio_numpy < least_numpy:
            missed.append(f"{work.name}, {work.symbol.size}: {ratio_numpy:.1f}× NumPy, target {least_numpy}×")
        if spark is not None and work.symbol.size == base:
            # Enough work that Spark's time is that of the join and not of starting it.
            part = messages(100_000, seed=6) if least_spark is None else table.slice(0, 4_000)
            mine, pairs = timed(lambda m=matcher, p=part: m.match(p), repeats)
            ratio_spark = spark_seconds(spark, work, part, pairs, repeats) / mine
            if least_spark is not None and ratio_spark < least_spark:
                missed.append(f"{work.name}, {work.symbol.size}: {ratio_spark:.0f}× Spark, target {least_spark}×")
        shown.add_row(
            f"{work.symbol.size:,}",
            work.name,
            f"{found[0].size:,}",
            f"{seconds / table.num_rows * 1e6:.2f}",
            f"{ratio_numpy:.1f} ({how}; target {least_numpy})",
            "" if ratio_spark is None else f"{ratio_spark:.0f}" + (f" (target {least_spark})" if least_spark else ""),
        )
    console.print(shown)
    return missed


def growth(sizes: list[int], table: pa.Table, repeats: int) -> None:
    shown = Table("profiles", "of which", "parse s", "build s", "bytes/profile", "messages/s", title="Growth")
    for share, name in ((1.0, "all with a symbol"), (0.0, "ranges only")):
        for n in sizes:
            texts = workload(name, n, share, 7).texts()
            parse, profiles = timed(lambda t=texts: [Profile.parse(text) for text in t], 1)
            build, matcher = timed(lambda p=profiles: Matcher(p), 1)
            seconds, _ = timed(lambda m=matcher: m.match(table), repeats)
            row = (f"{n:,}", name, f"{parse:.2f}", f"{build:.2f}", f"{memory_bytes(matcher) / n:.0f}")
            shown.add_row(*row, f"{table.num_rows / seconds:,.0f}")
    console.print(shown)


if __name__ == "__main__":
    sys.exit(main())
