"""The query service at size: 10,000 range queries over 10 million rows on 50 channels, 1 % of the queries new a period.

    python benchmarks/speed/query_service.py [--queries 10000] [--rows 10000000] [--periods 3] > found.jsonl
    python benchmarks/speed/query_service.py --table found.jsonl      # the same as Markdown, for the docs

Each period is one scan of the table. Every client's answers are put together from the messages of its channels and
compared with what each query gets alone: as many rows, and the same ones by a sum of digests. Beside the time of a
period stands what the plan costs, and what planning anew would cost and take.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import narrowcast as nc
from narrowcast.data.answer.answer import histogram
from narrowcast.data.answer.serve import serve_periods
from narrowcast.data.spark.session import session
from narrowcast.plans.queries.api import AnswerReceiver, QueryService
from narrowcast.plans.queries.plan import make
from narrowcast.plans.queries.result import QueryDemand

SPACE = 1000.0
PRICES = {"km": 60.0, "kt": 1.0, "ku": 0.02}


def write_table(folder: Path, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    part = 2_000_000
    for at in range(0, rows, part):
        n = min(part, rows - at)
        table = pa.table({"x": rng.uniform(0, SPACE, n), "y": rng.uniform(0, SPACE, n), "id": np.arange(at, at + n)})
        pq.write_table(table, folder / f"part-{at // part:03d}.parquet")


def some_queries(
    rng: np.random.Generator, names: list[str], clients: list[str], home: np.ndarray
) -> list[dict[str, str]]:
    """Queries of clients around their places."""
    found = []
    for name, client in zip(names, clients, strict=True):
        centre = np.clip(home[int(client[1:])] + rng.normal(0, 15, 2), 5, SPACE - 5)
        half = rng.uniform(1.0, 3.0, 2)
        (x, y), (w, h) = centre, half
        text = f"x BETWEEN {x - w:.4f} AND {x + w:.4f} AND y BETWEEN {y - h:.4f} AND {y + h:.4f}"
        found.append({"query": name, "client": client, "profile": text})
    return found


def box(row: dict[str, str]) -> list[tuple[float, float]]:
    words = row["profile"].split()
    return [(float(words[2]), float(words[4])), (float(words[8]), float(words[10]))]


def planned(asked: list[dict[str, str]], grid: Any, channels: int) -> Any:
    names, clients = (tuple(row[name] for row in asked) for name in ("query", "client"))
    return make(
        QueryDemand([box(row) for row in asked], ("x", "y"), names, clients), size=grid, channels=channels, **PRICES
    )


def digests(table: pa.Table) -> tuple[int, int]:
    """How many rows, and a sum that other rows would not have."""
    ids = table["id"].to_numpy().astype(np.uint64)
    mixed = (ids + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    return table.num_rows, int((mixed ^ (mixed >> np.uint64(29))).sum(dtype=np.uint64))


def directly(spark: Any, folder: Path, asked: list[dict[str, str]]) -> dict[tuple[str, str], tuple[int, int]]:
    """What each query gets alone, file by file."""
    matcher = nc.Matcher([row["profile"] for row in asked])
    totals = [(0, 0)] * len(asked)
    for part in sorted(folder.glob("*.parquet")):
        table = pq.read_table(part)
        rows, at = matcher.match(table)
        order = np.argsort(at, kind="stable")
        bounds = np.searchsorted(at[order], np.arange(len(asked) + 1))
        for q in range(len(asked)):
            n, total = digests(table.take(rows[order[bounds[q] : bounds[q + 1]]]))
            totals[q] = totals[q][0] + n, (totals[q][1] + total) % 2**64
    return {(row["client"], row["query"]): total for row, total in zip(asked, totals, strict=True)}


class Everybody:
    """All clients at once: each message goes to the receivers that listen to its channel."""

    def __init__(self) -> None:
        self.receivers: dict[str, AnswerReceiver] = {}
        self.on: dict[int, set[str]] = {}
        self.got: dict[tuple[str, str], tuple[int, int]] = {}
        self.bytes, self.heard = 0, Counter[str]()
        self.seconds = 0.0

    def publish(self, messages: list[dict[str, Any]]) -> None:
        begun = time.perf_counter()
        for message in messages:
            if message["answer_channel"] == -1:
                client = message["answer_client"]
                receiver = self.receivers.setdefault(client, AnswerReceiver(client))
                for channel in receiver.channels or ():
                    self.on[channel].discard(client)
                receiver.take(message)
                for channel in receiver.channels or ():
                    self.on.setdefault(channel, set()).add(client)
                continue
            self.bytes += len(message.get("rows", b""))
            for client in self.on.get(message["answer_channel"], ()):
                for found in self.receivers[client].take(message):
                    self.got |= {(client, q): digests(table) for q, table in found.answers.items()}
        self.seconds += time.perf_counter() - begun


def main() -> dict[str, Any]:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--queries", type=int, default=10_000)
    given.add_argument("--clients", type=int, default=500)
    given.add_argument("--rows", type=int, default=10_000_000)
    given.add_argument("--periods", type=int, default=3)
    given.add_argument("--channels", type=int, default=50)
    given.add_argument("--memory", default="2g")
    given.add_argument("--table", type=Path, help="print the periods in this file as Markdown, and run nothing")
    options = given.parse_args()
    if options.table is not None:
        print(markdown([json.loads(line) for line in options.table.read_text().splitlines()]))
        return {}
    with tempfile.TemporaryDirectory() as place:
        return run(Path(place), options)


def markdown(periods: list[dict[str, Any]]) -> str:
    """What a reader of the documentation wants of each period."""
    heads = ("period", "queries, new", "merged", "rows sent", "takes", "of it scan", "of it plan", "clients told of "
             "other channels", "plan cost, of planned anew", "planning anew")  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for each in periods:
        cells = (each["period"], f"{each['queries']:,}, {each['new']:,}", f"{each['sets']:,}", f"{each['rows']:,}",
                 *(f"{each[name]:.1f} s" for name in ("period_s", "scan_s", "follow_s")), each["retuned"],
                 f"{each['cost_to_anew']:.4f}", f"{each['anew_s']:.1f} s")  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def run(folder: Path, options: Any) -> dict[str, Any]:
    """Every period's figures; an AssertionError where an answer is not what the query gets alone."""
    rng = np.random.default_rng(0)
    table = folder / "places"
    table.mkdir()
    write_table(table, options.rows, 1)
    home = rng.uniform(0, SPACE, (options.clients, 2))
    names = [f"q{i}" for i in range(options.queries)]
    clients = [f"c{i % options.clients}" for i in range(options.queries)]
    asked = some_queries(rng, names, clients, home)
    pq.write_table(pa.Table.from_pylist(asked), folder / "queries.parquet")
    spark = session("local[*]", memory=options.memory)
    try:
        grid = histogram(spark.read.parquet(str(table)), ("x", "y"))
        begun = time.perf_counter()
        plan = planned(asked, grid, options.channels)
        first_s = time.perf_counter() - begun
        service, everybody = QueryService(plan), Everybody()
        served = serve_periods(spark, folder / "queries.parquet", table, service, everybody.publish, first=0)
        found = []
        for index, report in enumerate(islice(served, options.periods)):
            expected = directly(spark, table, asked)
            assert everybody.got == expected, f"period {index}: answers differ"
            begun = time.perf_counter()
            anew = planned(asked, grid, options.channels)
            anew_s = time.perf_counter() - begun
            now = service.plan()
            found.append({
                "period": index, "queries": report.queries, "new": report.new, "sets": report.sets,
                "rows": report.rows, "direct_rows": sum(n for n, _ in expected.values()),
                "megabytes": everybody.bytes / 1e6, "messages": report.messages, "retuned": report.retuned,
                "scan_s": report.scan_s, "follow_s": report.plan_s, "clients_s": everybody.seconds,
                "period_s": report.seconds - everybody.seconds, "cost": now.cost.total, "anew_cost": anew.cost.total,
                "cost_to_anew": now.cost.total / anew.cost.total, "merging_to_anew":
                (now.cost.total - now.cost.overheard) / (anew.cost.total - anew.cost.overheard), "anew_s": anew_s,
                "apart_cost": now.baseline,
            })  # fmt: skip
            print(json.dumps(found[-1]), flush=True)
            everybody.bytes, everybody.seconds, everybody.got = 0, 0.0, {}
            change = max(1, options.queries // 100)
            fresh = [f"p{index}-{i}" for i in range(change)]
            asked = asked[change:] + some_queries(rng, fresh, [row["client"] for row in asked[:change]], home)
            pq.write_table(pa.Table.from_pylist(asked), folder / "queries.parquet")
        return {"first_plan_s": first_s, "periods": found}
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
