"""Profiles parsed per second: by shape, as `Profile.parse` does, and through the grammar alone, in one run.

    python benchmarks/speed/parsing.py [--seconds 1]

Single core, processor time, every shape seen before. The market's subscriptions are those that
`narrowcast generate market` writes; ranges are boxes over two attributes with bounds of their own. Both
ways must give the same conditions, or the run ends with an error; so it does below 50,000 a second.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from narrowcast import workloads
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.parse import parse as by_grammar

TARGET = 50_000
N_RANGES = 5_000


def market() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        workloads.write("market", Path(folder) / "market", messages=100)
        found: list[str] = pq.read_table(Path(folder) / "market" / "subscriptions.parquet")["profile"].to_pylist()
    return found


def ranges(rng: Random) -> list[str]:
    def bounds() -> str:
        low = rng.uniform(-90, 90)
        return f"{low:.3f} AND {low + rng.uniform(0, 5):.3f}"

    return [f"lat BETWEEN {bounds()} AND lon BETWEEN {bounds()}" for _ in range(N_RANGES)]


def lists(rng: Random, n_values: int) -> list[str]:
    every = [f"'S{k}'" for k in range(20_000)]
    return [f"symbol IN ({', '.join(rng.sample(every, n_values))}) AND price > {k}" for k in range(20)]


def rate(parse: Callable[[str], object], texts: Sequence[str], seconds: float) -> float:
    """Texts per second of processor time."""
    n, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        for text in texts:
            parse(text)
        n += len(texts)
    return n / (time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of processor time, for each figure")
    seconds = parser.parse_args().seconds
    rng = Random(0)
    workload = {"market": market(), "ranges": ranges(rng), "lists of 69": lists(rng, 69)}
    workload["lists of 10,000"] = lists(rng, 10_000)
    missed = []
    print(f"{'':>16} {'profiles':>9} {'bytes':>8} {'by shape /s':>12} {'grammar /s':>11} {'ratio':>7}")
    for name, texts in workload.items():
        if any(Profile.parse(text).expression != by_grammar(text) for text in texts):
            sys.exit(f"{name}: by shape and by grammar differ")
        fast = rate(Profile.parse, texts, seconds)
        slow = rate(by_grammar, texts[:500], seconds)
        shown = f"{name:>16} {len(texts):>9,} {sum(map(len, texts)) / len(texts):>8,.0f}"
        print(f"{shown} {fast:>12,.0f} {slow:>11,.0f} {fast / slow:>6.1f}x", flush=True)
        if name in ("market", "ranges") and fast < TARGET:
            missed.append(f"{name}: {fast:,.0f} a second, target {TARGET:,}")
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
