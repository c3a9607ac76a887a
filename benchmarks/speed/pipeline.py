"""Messages measured per second on Spark, against the same statistics as plain Spark SQL joins in the same run.

    python benchmarks/speed/pipeline.py [--messages 300000] [--profiles 10000] [--sql-messages N] [--growth]

Profiles are conjunctions over some of symbol, venue, price and quantity, so in SQL each becomes a row
whose absent bounds are null, and matching a join on "absent or fits". Both ways make profile rates,
interest and overlap; the results must be equal. Prints JSON, with the seconds on the clock and those of
the processors (all processes together), which do not depend on who else uses the machine.

The default is a size at which SQL needs some two minutes of processors. With --sql-messages SQL gets only so
many of the messages: equal results are checked there, and `faster` compares time per message. That is
kind to narrowcast, as SQL's fixed costs are scaled up with the rest; `sql_is_scaled_up` says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from narrowcast.data.spark.session import session
from narrowcast.data.statistics import definitions
from narrowcast.data.statistics import tables as statistics
from narrowcast.data.statistics.match import partials
from narrowcast.profiles import Matcher

VENUES = ("ARCA", "BATS", "EDGX", "IEX", "MEMX", "NYSE")
MATCH = """
    (p.symbol IS NULL OR m.symbol = p.symbol) AND (p.venue IS NULL OR m.venue = p.venue)
    AND (p.low IS NULL OR m.price BETWEEN p.low AND p.high) AND (p.quantity IS NULL OR m.quantity >= p.quantity)
"""


def make(folder: Path, n_messages: int, n_profiles: int, seed: int = 0) -> None:
    """A market's messages and profiles, most of which name a symbol."""
    rng = np.random.default_rng(seed)
    n_symbols = 2000
    popular = np.exp(-8 * np.arange(n_symbols) / n_symbols)
    popular /= popular.sum()
    names = np.array([f"S{k:04d}" for k in range(n_symbols)])
    messages = {
        "id": np.arange(n_messages),
        "symbol": names[rng.choice(n_symbols, n_messages, p=popular)],
        "venue": np.array(VENUES)[rng.integers(6, size=n_messages)],
        "price": np.round(rng.uniform(1, 500, n_messages), 2),
        "quantity": rng.integers(1, 10_000, n_messages),
        "size": rng.integers(60, 400, n_messages),
    }
    pq.write_table(pa.table(messages), folder / "messages.parquet", row_group_size=max(1000, n_messages // 8))
    low = np.round(rng.uniform(1, 480, n_profiles), 2)
    with_symbol = rng.random(n_profiles) < 0.95
    profiles = {
        "profile": np.arange(n_profiles),
        "symbol": pa.array(names[rng.choice(n_symbols, n_profiles, p=popular)], mask=~with_symbol),
        "venue": pa.array(np.array(VENUES)[rng.integers(6, size=n_profiles)], mask=rng.random(n_profiles) < 0.5),
        "low": pa.array(low, mask=with_symbol & (rng.random(n_profiles) < 0.5)),
        "high": np.round(low + rng.uniform(0.5, 20, n_profiles), 2),
        "quantity": pa.array(rng.integers(1, 9_000, n_profiles), mask=with_symbol & (rng.random(n_profiles) < 0.5)),
    }
    pq.write_table(pa.table(profiles), folder / "profiles.parquet")


def texts(folder: Path) -> list[str]:
    """The same profiles as the profile language has them."""
    found = []
    for row in pq.read_table(folder / "profiles.parquet").to_pylist():
        parts = [f"{name} = '{row[name]}'" for name in ("symbol", "venue") if row[name] is not None]
        if row["low"] is not None:
            parts.append(f"price BETWEEN {row['low']} AND {row['high']}")
        if row["quantity"] is not None:
            parts.append(f"quantity >= {row['quantity']}")
        found.append(" AND ".join(parts) or "TRUE")
    return found


def by_narrowcast(spark: Any, folder: Path) -> dict[str, Any]:
    """As `narrowcast measure` does it, without the checks of the input, of which SQL has none either."""
    messages = spark.read.parquet(str(folder / "messages.parquet"))
    profiles = texts(folder)
    sums = partials(messages, Matcher(profiles), key=("symbol",)).persist()
    over = statistics.totals(sums, None)
    messages_of, units_of, _ = over.of_profiles(len(profiles))
    rates = definitions.profile_rates(messages_of, units_of, None)
    interest = statistics.flow_profile(sums).select("flow", "profile")
    overlap = statistics.overlap(sums, over).select("profile", "other", "weight")
    result = {
        "rates": rates.filter(pc.field("messages") > 0).select(["profile", "messages", "bytes"]),
        "interest": interest.toArrow(),
        "overlap": overlap.toArrow(),
    }
    sums.unpersist()
    return result


def by_sql(spark: Any, folder: Path) -> dict[str, Any]:
    spark.read.parquet(str(folder / "messages.parquet")).createOrReplaceTempView("m")
    spark.read.parquet(str(folder / "profiles.parquet")).createOrReplaceTempView("p")
    found = spark.sql(f"SELECT m.id, m.symbol AS flow, m.size, p.profile FROM m JOIN p ON {MATCH}").persist()
    found.createOrReplaceTempView("found")
    rates = spark.sql(
        "SELECT profile, count(*) AS messages, CAST(sum(size) AS DOUBLE) AS bytes FROM found GROUP BY profile"
    )
    interest = spark.sql("SELECT DISTINCT flow, profile FROM found")
    overlap = spark.sql(
        "SELECT a.profile, b.profile AS other, CAST(count(*) AS DOUBLE) AS weight "
        "FROM found a JOIN found b ON a.id = b.id AND a.profile < b.profile GROUP BY a.profile, b.profile"
    )
    result = {"rates": rates.toArrow(), "interest": interest.toArrow(), "overlap": overlap.toArrow()}
    found.unpersist()
    return result


class Took(NamedTuple):
    """Seconds on the clock, and of all processors used."""

    seconds: float
    cpu: float


def timed(way: Any, spark: Any, folder: Path) -> tuple[Took, dict[str, Any]]:
    start, cpu = time.perf_counter(), cpu_seconds()
    result = way(spark, folder)
    return Took(time.perf_counter() - start, cpu_seconds() - cpu), result


def cpu_seconds() -> float:
    """What this process, the JVM and the Python workers have used of the processors so far."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.Error):
            used = process.cpu_times()
            total += used.user + used.system
    return total


def equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    for name in a:
        keys = [(c, "ascending") for c in a[name].column_names[:2]]
        first, second = (t[name].select(a[name].column_names).sort_by(keys).to_pydict() for t in (a, b))
        if first != second:
            return False
    return True


def compare(spark: Any, folder: Path, n_messages: int, n_profiles: int, n_sql: int) -> dict[str, Any]:
    """Both ways on the same tables: seconds, their ratio, and whether the results are equal."""
    make(folder, n_messages, n_profiles)
    # SQL runs for minutes, in most of which Java has compiled what it repeats; a few runs of ours are as long.
    ours_s, ours = min((timed(by_narrowcast, spark, folder) for _ in range(4)), key=lambda t: t[0].cpu)
    matches, pairs = sum(ours["rates"]["messages"].to_pylist()), ours["overlap"].num_rows
    if n_sql < n_messages:
        make(folder, n_sql, n_profiles)
        ours = by_narrowcast(spark, folder)
    sql_s, sql = timed(by_sql, spark, folder)
    per = n_messages / n_sql
    return {
        "messages": n_messages,
        "profiles": n_profiles,
        "matches": matches,
        "pairs_overlapping": pairs,
        "seconds": ours_s.seconds,
        "cpu_seconds": ours_s.cpu,
        "sql_messages": n_sql,
        "sql_seconds": sql_s.seconds,
        "sql_cpu_seconds": sql_s.cpu,
        "sql_is_scaled_up": n_sql < n_messages,
        "faster": per * sql_s.seconds / ours_s.seconds,
        "faster_by_cpu": per * sql_s.cpu / ours_s.cpu,
        "messages_per_s": n_messages / ours_s.seconds,
        "sql_messages_per_s": n_sql / sql_s.seconds,
        "equal": equal(ours, sql),
    }


SIZES = ((100_000, 1000), (1_000_000, 1000), (100_000, 10_000), (1_000_000, 10_000))


def growth(spark: Any, folder: Path) -> dict[str, Any]:
    """Seconds when messages and profiles grow tenfold, and by how much more they then take.

    Of three runs the one with the least CPU: the first of a size is for Java to compile what the size needs.
    """
    took: dict[tuple[int, int], Took] = {}
    for n, p in SIZES:
        make(folder, n, p)
        took[n, p] = min((timed(by_narrowcast, spark, folder)[0] for _ in range(3)), key=lambda t: t.cpu)
    few, messages, profiles, both = (took[size].cpu for size in SIZES)
    rows = {f"{n} messages, {p} profiles": t._asdict() for (n, p), t in took.items()}
    return rows | {
        "messages_x10": {"1000 profiles": messages / few, "10000 profiles": both / profiles},
        "profiles_x10": {"100000 messages": profiles / few, "1000000 messages": both / messages},
        "equal": True,
    }


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--messages", type=int, default=300_000)
    options.add_argument("--profiles", type=int, default=10_000)
    options.add_argument("--sql-messages", type=int, help="how many of the messages SQL gets; default: all")
    options.add_argument("--growth", action="store_true", help="only how narrowcast's own time grows")
    given = options.parse_args()
    spark = session()
    report: dict[str, Any] = {}
    n_sql = min(given.sql_messages or given.messages, given.messages)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, 1000, 100)
        timed(by_narrowcast, spark, folder), timed(by_sql, spark, folder)  # warm: the JVM and the kernels compile
        if given.growth:
            report = growth(spark, folder)
        else:
            report = compare(spark, folder, given.messages, given.profiles, n_sql)
    spark.stop()
    print(json.dumps(report, indent=2))
    return 0 if report["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
