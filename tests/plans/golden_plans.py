"""Plans of every kind and method on small inputs, each told by digests of its tables.

`python tests/plans/golden_plans.py` writes the digests anew; the test beside it compares. A digest changes when
a planner decides otherwise for the same input and seed, which is then a change to be told in the changelog.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from narrowcast.cli import run

GOLDENS = Path(__file__).with_name("golden_plans.json")

INPUTS = {
    "market": ["market", "--users", "40", "--messages", "400", "--set", "symbols=200", "--set", "share=0.2"],
    "tree": ["tree_demand", "--messages", "10"],
    "boxes": ["rectangles", "--messages", "50", "--users", "14"],
    "few": ["rectangles", "--messages", "50", "--users", "1"],
    "overlay": ["overlay", "--messages", "300", "--users", "40"],
}
CHANNELIZERS = ("kmeans", "random", "two-phase", "bmd", "interior-point", "flow-merge")
ORDERS = tuple(f"{weight}-{by}" for weight in ("lightest", "heaviest") for by in ("flow", "user"))
GREEDY = ("greedy-flow", "greedy-user", "greedy-pair")
UNICAST = ("none", *ORDERS, *(f"{order}-iterative" for order in ORDERS), *GREEDY, "reverse", "search")


def cases(place: Path) -> Iterator[tuple[str, list[str]]]:
    """A name and the arguments of `narrowcast plan` for each plan."""
    market = [str(place / "market" / f"{name}.parquet") for name in ("flows", "interest")]
    budget = ["--groups", "6", "--sessions", "20"]
    for method in ("search", "sf", "gf", "it", "rra", "random"):
        yield f"channels {method}", ["channels", *market, *budget, "--method", method]
    yield "channels prices", ["channels", *market, *budget, "--alpha", "0.5", "--beta", "2"]
    yield "channels limits", ["channels", *market, *budget, "--joins-per-subscriber", "5", "--rate-per-group", "4000"]
    for channelizer in CHANNELIZERS:
        some = "3" if channelizer == "interior-point" else "6"
        chosen = ["--channelizer", channelizer, "--unicast", "none"]
        yield f"hybrid {channelizer}", ["hybrid", *market, "--groups", some, *chosen]
    for unicast in UNICAST:
        yield f"hybrid {unicast}", ["hybrid", *market, "--groups", "6", "--unicast", unicast]
    yield "hybrid cap", ["hybrid", *market, "--groups", "6", "--unicast", "greedy-flow", "--cap", "0.1"]
    yield "hybrid sessions", ["hybrid", *market, *budget]
    tree = [str(place / "tree" / f"{name}.parquet") for name in ("tree", "demand")]
    yield "filters traffic", ["filters", *tree, "--k", "15"]
    yield "filters delay", ["filters", *tree, "--objective", "delay", "--filter-delay", "400", "--link-delay", "100"]
    both = ["--objective", "both", "--filter-delay", "40", "--link-delay", "1", "--price", "3"]
    yield "filters both", ["filters", *tree, *both]
    boxes = str(place / "boxes" / "queries.parquet")
    for method in ("pair", "directed", "cluster", "partition"):
        yield f"queries {method}", ["queries", boxes, "--method", method]
    yield "queries exhaustive", ["queries", str(place / "few" / "queries.parquet"), "--method", "exhaustive"]
    for procedure in ("polygon", "exact"):
        yield f"queries {procedure}", ["queries", boxes, "--procedure", procedure]
    overlay = [str(place / "overlay" / f"{name}.parquet") for name in ("topology", "subscriptions", "messages")]
    for variant in ("search", "semcast", "merge", "noise-merge", "central", "semcast-broker"):
        yield f"semantic {variant}", ["semantic", *overlay, "--variant", variant]
        yield f"semantic {variant} capped", ["semantic", *overlay, "--variant", variant, "--max-channels", "8"]
    yield "semantic random roots", ["semantic", *overlay, "--variant", "semcast", "--rendezvous", "random"]


def digests(folder: Path) -> dict[str, str]:
    """A digest of each table in a plan's folder, by its content."""
    import pyarrow.parquet as pq

    return {path.stem: _digest(pq.read_table(path)) for path in sorted(folder.glob("*.parquet"))}


def _digest(table: Any) -> str:
    columns = [(name, str(table[name].type), table[name].to_pylist()) for name in table.column_names]
    return hashlib.sha256(repr(columns).encode()).hexdigest()[:16]


def make(place: Path) -> dict[str, dict[str, str]]:
    """All plans, made in this folder, each told by its digests."""
    for name, arguments in INPUTS.items():
        _run(["generate", *arguments, "--out", str(place / name), "--seed", "3"])
    found = {}
    for number, (name, arguments) in enumerate(cases(place)):
        out = place / f"plan-{number}"
        _run(["plan", *arguments, "--out", str(out), "--json"])
        found[name] = digests(out)
    return found


def _run(arguments: list[str]) -> None:
    code = run(arguments)
    if code:
        raise SystemExit(f"narrowcast {' '.join(arguments)} ended with {code}")


if __name__ == "__main__":
    with TemporaryDirectory() as here:
        stdout, sys.stdout = sys.stdout, sys.stderr
        GOLDENS.write_text(json.dumps(make(Path(here)), indent=1) + "\n")
