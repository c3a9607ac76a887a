"""`narrowcast measure` from command to prompt, against the same tables as SQL in DuckDB, Polars and Spark, in one run.

    python benchmarks/speed/pipeline.py [--all] [--large] [--growth] [--no-spark-sql] [--only 5000x40] [--repeat 3]

Each way is a process of its own that starts with files and ends with Parquet files: profile rates, interest and
overlap, which must be equal, row by row, and are counted. Profiles are conjunctions over some of symbol, venue, price
and quantity, so in SQL each becomes a row whose absent bounds are null, and matching a join on "absent or fits"; SQL
is spared the parsing. narrowcast writes eight tables more, and checks its input.

Prints JSON: seconds on the clock, and of the processors used by all processes of the way together, which depend less
on who else uses the machine (`load` says how busy it was), and the most memory that they held at once, shared pages
counted once. Sizes are 5,000 messages x 40 profiles and 300,000 x 10,000; `--large` adds 10,000,000 x 10,000 for
narrowcast and DuckDB, `--growth` narrowcast alone with tenfold messages at 1,000 profiles and tenfold profiles at
100,000 messages (not the corner of both: 10^7 x 10^5), `--all` both. With `--repeat` the ways take turns and each
has the median of its runs, but for Spark SQL, which runs once. A way that is not done after `--limit-s` is ended and
said to be so. `asked` says which of the aims are met; on a machine that others use, seconds say little.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

VENUES = ("ARCA", "BATS", "EDGX", "IEX", "MEMX", "NYSE")
MATCH = """
    (p.symbol IS NULL OR m.symbol = p.symbol) AND (p.venue IS NULL OR m.venue = p.venue)
    AND (p.low IS NULL OR m.price BETWEEN p.low AND p.high) AND (p.quantity IS NULL OR m.quantity >= p.quantity)
"""
FOUND = f"SELECT m.id, m.symbol AS flow, m.size, p.profile FROM m JOIN p ON {MATCH}"
TABLES = {
    "rates": "SELECT profile, count(*) AS messages, CAST(sum(size) AS DOUBLE) AS bytes FROM found GROUP BY profile",
    "interest": "SELECT DISTINCT flow, profile FROM found",
    "overlap": "SELECT a.profile AS profile, b.profile AS other, CAST(count(*) AS DOUBLE) AS weight FROM found a "
    "JOIN found b ON a.id = b.id WHERE a.profile < b.profile GROUP BY a.profile, b.profile",
}
COLUMNS = {
    "rates": ["profile", "messages", "bytes"],
    "interest": ["flow", "profile"],
    "overlap": ["profile", "other", "weight"],
}
PR_SET_CHILD_SUBREAPER = 36
SIZES = ((5000, 40), (300_000, 10_000))
LARGE = (10_000_000, 10_000)
GROWN = ("flow_profile", "overlap")
GROWTH = ((100_000, 1000), (1_000_000, 1000), (10_000_000, 1000), (100_000, 10_000), (100_000, 100_000))


def make(folder: Path, n_messages: int, n_profiles: int, seed: int = 0) -> None:
    """A market's messages and profiles, most of which name a symbol."""
    rng = np.random.default_rng(seed)
    n_symbols = 2000
    popular = np.exp(-8 * np.arange(n_symbols) / n_symbols)
    popular /= popular.sum()
    names = np.array([f"S{k:04d}" for k in range(n_symbols)])
    (folder / "inputs").mkdir(parents=True)
    with pq.ParquetWriter(folder / "inputs" / "messages.parquet", _messages(rng, 0, 0, names, popular).schema) as file:
        for first in range(0, n_messages, 1_000_000):
            n = min(1_000_000, n_messages - first)
            file.write_table(_messages(rng, first, n, names, popular), row_group_size=max(1000, n // 8))
    low = np.round(rng.uniform(1, 480, n_profiles), 2)
    with_symbol = rng.random(n_profiles) < 0.95
    profiles = pa.table(
        {
            "profile": np.arange(n_profiles),
            "symbol": pa.array(names[rng.choice(n_symbols, n_profiles, p=popular)], mask=~with_symbol),
            "venue": pa.array(np.array(VENUES)[rng.integers(6, size=n_profiles)], mask=rng.random(n_profiles) < 0.5),
            "low": pa.array(low, mask=with_symbol & (rng.random(n_profiles) < 0.5)),
            "high": np.round(low + rng.uniform(0.5, 20, n_profiles), 2),
            "quantity": pa.array(rng.integers(1, 9_000, n_profiles), mask=with_symbol & (rng.random(n_profiles) < 0.5)),
        }
    )
    texts = [_text(row) for row in profiles.to_pylist()]
    # narrowcast has equal profiles once, numbered by their texts: so has SQL, to be comparable.
    place = {text: k for k, text in reversed(list(enumerate(texts)))}
    kept = profiles.take([place[text] for text in sorted(place)])
    pq.write_table(kept.set_column(0, "profile", pa.array(np.arange(len(place)))), folder / "p.parquet")
    holders = {"subscriber": [f"u{k:06d}" for k in range(n_profiles)], "profile": texts}
    pq.write_table(pa.table(holders), folder / "inputs" / "subscriptions.parquet")


def _messages(rng: np.random.Generator, first: int, n: int, names: Any, popular: Any) -> pa.Table:
    return pa.table(
        {
            "id": np.arange(first, first + n),
            "symbol": names[rng.choice(names.size, n, p=popular)],
            "venue": np.array(VENUES)[rng.integers(6, size=n)],
            "price": np.round(rng.uniform(1, 500, n), 2),
            "quantity": rng.integers(1, 10_000, n),
            "size": rng.integers(60, 400, n),
        }
    )


def _text(row: dict[str, Any]) -> str:
    """A profile as the profile language has it."""
    parts = [f"{name} = '{row[name]}'" for name in ("symbol", "venue") if row[name] is not None]
    if row["low"] is not None:
        parts.append(f"price BETWEEN {row['low']} AND {row['high']}")
    if row["quantity"] is not None:
        parts.append(f"quantity >= {row['quantity']}")
    return " AND ".join(parts) or "TRUE"


def duckdb(folder: Path) -> None:
    import duckdb

    db = duckdb.connect()
    db.execute("SET memory_limit = '4GB'")
    db.execute(f"SET temp_directory = '{folder}'")
    db.execute(f"CREATE VIEW m AS FROM '{folder}/inputs/messages.parquet'")
    db.execute(f"CREATE TABLE p AS FROM '{folder}/p.parquet'")
    db.execute(f"CREATE TABLE found AS {FOUND}")
    for name, query in TABLES.items():
        db.execute(f"COPY ({query}) TO '{folder}/duckdb/{name}.parquet'")


def polars(folder: Path) -> None:
    """Polars knows no join on OR: symbols are joined by equality, profiles without one with every message."""
    import polars as pl

    m, p = pl.scan_parquet(folder / "inputs" / "messages.parquet"), pl.scan_parquet(folder / "p.parquet")
    fits = """(p.venue IS NULL OR m.venue = p.venue) AND (p.low IS NULL OR (m.price >= p.low AND m.price <= p.high))
        AND (p.quantity IS NULL OR m.quantity >= p.quantity)"""
    columns = "SELECT m.id, m.symbol AS flow, m.size, p.profile FROM m"
    db = pl.SQLContext(m=m, p=p)
    named = db.execute(f"{columns} JOIN p ON m.symbol = p.symbol WHERE {fits}").collect(engine="streaming")
    others = db.execute(f"{columns} CROSS JOIN p WHERE p.symbol IS NULL AND {fits}").collect(engine="streaming")
    db.register("found", pl.concat([named, others]))
    for name, query in TABLES.items():
        db.execute(query).collect(engine="streaming").write_parquet(folder / "polars" / f"{name}.parquet")


def spark_sql(folder: Path) -> None:
    from narrowcast.data.spark.session import session

    spark = session(memory="2g")
    spark.read.parquet(str(folder / "inputs" / "messages.parquet")).createOrReplaceTempView("m")
    spark.read.parquet(str(folder / "p.parquet")).createOrReplaceTempView("p")
    spark.sql(FOUND).persist().createOrReplaceTempView("found")
    for name, query in TABLES.items():
        pq.write_table(spark.sql(query).toArrow(), folder / "spark_sql" / f"{name}.parquet")
    spark.stop()


WAYS = {"duckdb": duckdb, "polars": polars, "spark_sql": spark_sql}


def run(way: str, folder: Path, limit_s: float) -> dict[str, Any]:
    """One way from command to prompt, by a process that also waits for what the command leaves running."""
    command = [sys.executable, __file__, "--limit-s", str(limit_s), "--time", way, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def timed(way: str, folder: Path, limit_s: float) -> dict[str, Any]:
    """Seconds until the command ends, and CPU seconds of all processes it started."""
    shutil.rmtree(folder / way, ignore_errors=True)
    # Java outlives its command for a moment: it becomes our child then and is counted.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if way == "narrowcast":
        program = Path(sys.executable).with_name("narrowcast")
        command = [str(program), "measure", str(folder / "inputs"), "--out", str(folder / way), "--key", "symbol"]
    else:
        (folder / way).mkdir()
        command = [sys.executable, __file__, "--way", way, str(folder)]
    start, ended_all, most = time.perf_counter(), threading.Event(), [0]
    watcher = threading.Thread(target=_watch_memory, args=(ended_all, most))
    watcher.start()
    with (folder / f"{way}.txt").open("w") as said:
        ended = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
        try:
            ended.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(ended.pid, signal.SIGKILL)
            said.write(f"not done after {limit_s:g} s\n")
            ended.wait()
    seconds = time.perf_counter() - start
    ended_all.set()
    watcher.join()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    result: dict[str, Any] = {"seconds": round(seconds, 2), "cpu_seconds": round(used.ru_utime + used.ru_stime, 2)}
    result["memory_gb"] = round(most[0] / 1e9, 2)
    if ended.returncode:
        last = (folder / f"{way}.txt").read_text().strip().splitlines()[-1:]
        return result | {"failed": last[0][:200] if last else str(ended.returncode)}
    return result


def _watch_memory(ended: threading.Event, most: list[int]) -> None:
    """The most memory of all our children at once, twice a second: proportional sizes, so shared pages count once."""
    while not ended.wait(0.5):
        held = 0
        for child in psutil.Process().children(recursive=True):
            try:
                held += child.memory_full_info().pss
            except psutil.Error:  # it has ended
                continue
        most[0] = max(most[0], held)


def results(way: str, folder: Path) -> dict[str, pa.Table]:
    """The three tables, in order."""
    files = {"rates": "profile_rates", "interest": "flow_profile"} if way == "narrowcast" else {}
    tables = {name: pq.read_table(folder / way / f"{files.get(name, name)}.parquet") for name in TABLES}
    tables["rates"] = tables["rates"].filter(pc.field("messages") > 0)
    return {
        name: table.select(COLUMNS[name]).sort_by([(c, "ascending") for c in COLUMNS[name][:2]])
        for name, table in tables.items()
    }


def same(a: dict[str, pa.Table], b: dict[str, pa.Table]) -> bool:
    return all(
        a[name].num_rows == b[name].num_rows
        and all(a[name][c].cast(b[name][c].type).equals(b[name][c]) for c in COLUMNS[name])
        for name in TABLES
    )


def medians(ways: Sequence[str], folder: Path, repeat: int, limit_s: float) -> dict[str, Any]:
    """Each way's median run by its seconds, the ways taking turns; one that failed is not run again."""
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for turn in range(repeat):
        for way, before in runs.items():
            if turn == 0 or (way != "spark_sql" and "failed" not in before[-1]):
                before.append(run(way, folder, limit_s))
                print(f"{folder.name}, {way}: {before[-1]}", file=sys.stderr, flush=True)
    found = {}
    for way, all_runs in runs.items():
        failed = [one for one in all_runs if "failed" in one]
        in_order = failed or sorted(all_runs, key=lambda one: one["seconds"])
        found[way] = in_order[len(in_order) // 2] | {"runs": len(all_runs)}
    return found


def compare(
    folder: Path, n_messages: int, n_profiles: int, ways: Sequence[str], repeat: int, limit_s: float
) -> dict[str, Any]:
    """All ways on the same files: seconds, ratios, and whether the results are equal."""
    make(folder, n_messages, n_profiles)
    report: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
    report |= medians(("narrowcast", *ways), folder, repeat, limit_s)
    if "failed" in report["narrowcast"]:
        return report
    ours = results("narrowcast", folder)
    report["rows"] = {name: table.num_rows for name, table in ours.items()}
    report["matches"] = pc.sum(ours["rates"]["messages"]).as_py()
    for way in ways:
        if "failed" not in report[way]:
            report[way]["equal"] = same(ours, results(way, folder))
            for unit in ("seconds", "cpu_seconds"):
                ratio = report["narrowcast"][unit] / report[way][unit]
                report[way][f"narrowcast_takes_of_its_{unit}"] = round(ratio, 2)
    return report


def growth(folder: Path, limit_s: float) -> dict[str, Any]:
    """narrowcast alone, from command to prompt, with tenfold messages and tenfold profiles."""
    report: dict[str, Any] = {}
    for n, p in GROWTH:
        place = folder / f"{n}x{p}"
        make(place, n, p)
        found = report[f"{n} x {p}"] = run("narrowcast", place, limit_s) | {"load": round(os.getloadavg()[0], 1)}
        if "failed" not in found:
            made = {name: pq.read_metadata(place / "narrowcast" / f"{name}.parquet").num_rows for name in GROWN}
            found["rows"] = made
        print(n, p, found, file=sys.stderr, flush=True)
        shutil.rmtree(place)
    return report


def asked(report: dict[str, Any]) -> dict[str, Any]:
    """What the pipeline must show, as far as this run has it: true, false, or why it cannot be said."""
    found: dict[str, Any] = {}
    small, middle, large = (report.get("{} x {}".format(*size)) for size in (*SIZES, LARGE))
    if small:
        found["5,000 x 40 within 10 s"] = small["narrowcast"]["seconds"] <= 10
    if middle:
        found["300,000 x 10,000 within twice DuckDB's time"] = _of_duckdb(middle, 2)
    if large:
        found["10,000,000 x 10,000 below DuckDB's time"] = _of_duckdb(large, 1)
        found["10,000,000 x 10,000 within 4 GB"] = large["narrowcast"]["memory_gb"] <= 4
    return found


def _of_duckdb(size: dict[str, Any], most: float) -> bool | str:
    ours, theirs = size["narrowcast"], size["duckdb"]
    if "failed" in ours:
        return False
    return f"DuckDB: {theirs['failed']}" if "failed" in theirs else bool(ours["seconds"] <= most * theirs["seconds"])


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--large", action="store_true", help="also 10,000,000 messages x 10,000 profiles")
    options.add_argument("--growth", action="store_true", help="also how narrowcast's own time grows")
    options.add_argument("--all", action="store_true", help="everything: --large and --growth")
    options.add_argument("--no-spark-sql", action="store_true", help="leave out Spark SQL, which takes minutes")
    options.add_argument("--only", help="one size, as 5000x40, or none, for --growth or --large alone")
    options.add_argument("--repeat", type=int, default=1, help="how often each way is run, for the median")
    options.add_argument("--limit-s", type=float, default=1800, help="how long a run may take")
    options.add_argument("--time", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    options.add_argument("--way", nargs=2, metavar=("WAY", "FOLDER"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.way:
        WAYS[given.way[0]](Path(given.way[1]))
        return 0
    if given.time:
        print(json.dumps(timed(given.time[0], Path(given.time[1]), given.limit_s)))
        return 0
    ways = [way for way in WAYS if way != "spark_sql" or not given.no_spark_sql]
    sizes = list(SIZES)
    if given.only:
        sizes = [] if given.only == "none" else [tuple(int(n) for n in given.only.split("x"))]
    sizes += [LARGE] if given.large or given.all else []
    with tempfile.TemporaryDirectory() as name:
        report = {}
        for n, p in sizes:
            few = ["duckdb"] if (n, p) == LARGE else ways
            place = Path(name) / f"{n}x{p}"
            report[f"{n} x {p}"] = compare(place, n, p, few, given.repeat, given.limit_s)
            shutil.rmtree(place)
        more = {"growth": growth(Path(name) / "growth", given.limit_s)} if given.growth or given.all else {}
    print(json.dumps(report | more | {"asked": asked(report)}, indent=2))
    peers = [of[way] for of in report.values() for way in WAYS if way in of]
    return 0 if all(peer.get("equal", "failed" in peer) for peer in peers) else 1


if __name__ == "__main__":
    sys.exit(main())
