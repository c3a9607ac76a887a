"""`narrowcast demo`: the main job, on data that comes with the package."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from narrowcast.cli._output import AsJson, Seed, notes, output, print_json, table, text


def demo(
    users: Annotated[int, typer.Option(min=10, help="How many trading desks.")] = 500,
    symbols: Annotated[int, typer.Option(min=100, help="How many symbols.")] = 20_000,
    messages: Annotated[int, typer.Option(min=100, help="How many messages.")] = 50_000,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Show what narrowcast does, on built-in data, in about a minute.

    A trading floor: desks subscribe to symbols with profiles; a day's messages are matched against
    them, and the waste of today's ways to deliver is counted.
    """
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="narrowcast-demo-") as folder:
        result["market"] = _market(Path(folder), users, symbols, messages, seed)
        result["matching"] = _matching(Path(folder))
    if json:
        print_json(result)
        return
    _show(result)


@contextmanager
def _step(what: str) -> Iterator[None]:
    with notes.status(what):
        yield


def _market(folder: Path, users: int, symbols: int, messages: int, seed: int) -> dict[str, Any]:
    from narrowcast import workloads

    with _step("writing a market's tables"):
        made = workloads.write("market", folder / "market", users=users, messages=messages, seed=seed, symbols=symbols)
    return {name: table.rows for name, table in made.items()} | {"desks": users}


def _matching(folder: Path) -> dict[str, Any]:
    from narrowcast.model.tables import read_table
    from narrowcast.profiles import Matcher

    with _step("matching every message against every profile"):
        log = read_table(folder / "market" / "messages.parquet", name="messages")
        subscriptions = read_table(folder / "market" / "subscriptions.parquet", name="subscriptions")
        desks = subscriptions["subscriber"].dictionary_encode().combine_chunks().indices.to_numpy()
        matcher = Matcher(subscriptions["profile"].to_pylist())
        matcher.match(log.slice(0, 100))  # compiles the kernels, once per machine
        start = time.perf_counter()
        rows, cols = matcher.match(log)
        seconds = time.perf_counter() - start
    n_desks = int(desks.max()) + 1
    deliveries = len(np.unique(rows * n_desks + desks[cols]))
    wanted = len(np.unique(rows))
    return {
        "profiles": len(subscriptions),
        "messages": log.num_rows,
        "pairs": len(rows),
        "seconds": seconds,
        "messages_s": log.num_rows / seconds,
        "copies_by_unicast": deliveries / max(wanted, 1),
        "wasted_by_flooding": 1 - deliveries / (wanted * n_desks),
    }


def _show(result: dict[str, Any]) -> None:
    market, matching = result["market"], result["matching"]
    output.print(
        f"[bold]A trading floor.[/] {text(market['desks'])} desks follow {text(market['flows'])} symbols "
        f"with {text(market['subscriptions'])} profiles such as:"
    )
    output.print("    symbol IN ('NVDA', 'AAPL') AND price BETWEEN 60 AND 150\n", markup=False)
    output.print(
        f"[bold]Matched.[/] {text(matching['messages'])} messages against {text(matching['profiles'])} profiles "
        f"in {matching['seconds']:.2f} s: {text(float(matching['messages_s']))} messages a second.\n"
    )
    rows = [
        (
            "flooding",
            "every desk gets everything",
            f"{matching['wasted_by_flooding']:.1%} of what a desk receives is waste",
        ),
        ("unicast", "a copy for every desk", f"each message is sent {matching['copies_by_unicast']:.1f} times"),
    ]
    output.print(table("Today's two ways to deliver it", ("way", "means", "costs"), rows))
