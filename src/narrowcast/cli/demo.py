"""`narrowcast demo`: the main job, on data that comes with the package."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from narrowcast.cli.demo_live import live
from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, text
from narrowcast.cli.plan.channels import ways_table

if TYPE_CHECKING:
    from narrowcast.plans.channels.result import ChannelsPlan

GROUPS, SESSIONS = 50, 300


def demo(
    subscribers: Annotated[int, typer.Option(min=10, help="How many trading desks.")] = 500,
    symbols: Annotated[int, typer.Option(min=100, help="How many symbols.")] = 20_000,
    messages: Annotated[int, typer.Option(min=100, help="How many messages.")] = 50_000,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Show what narrowcast does, on built-in data, in about a minute.

    A trading floor: desks subscribe to symbols with profiles, and messages are matched against them.
    Then three plans: symbols into multicast groups, filters on a multicast tree, and range queries
    merged. Every plan is checked by code that had no part in making it. Last, the first plan is put on
    the wire on this machine, and its source is killed while messages flow.
    """
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="narrowcast-demo-") as folder:
        result["market"] = _market(Path(folder), subscribers, symbols, messages, seed)
        result["matching"] = _matching(Path(folder))
        plan = _channels(Path(folder), seed)
        with _step("delivering for real, and killing the source in the middle"):
            result["live"] = live(Path(folder))
    tables = plan.to_tables()
    result["channels"] = {"cost": tables.cost, "baselines": tables.baselines, "lower_bound": tables.lower_bound}
    result["filters"] = _filters(seed)
    result["queries"] = _queries(seed)
    if json:
        print_json(result)
        return
    _show_matching(result["market"], result["matching"])
    _show_channels(plan)
    _show_filters(result["filters"])
    _show_queries(result["queries"])
    _show_live(result["live"])
    output.print("\nNext: [bold]narrowcast generate market --out market[/], then [bold]narrowcast plan --help[/]")
    if not result["live"].get("exact", True):
        raise typer.Exit(1)


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


def _channels(folder: Path, seed: int) -> ChannelsPlan:
    from narrowcast.model.intake import read_measured
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.channels.plan import plan

    demand = read_measured(folder / "market", Quarantine(strict=True))
    with _step("planning which symbol goes into which multicast group"):
        made = plan(demand, groups=GROUPS, sessions=SESSIONS, seed=seed, time_limit=10)
        return made.save(folder / "plan")


def _filters(seed: int) -> dict[str, Any]:
    from narrowcast import workloads
    from narrowcast.plans.filters import api as filters

    with _step("placing filters on a multicast tree"):
        demand = workloads.tree_demand(kind="uniform", p=0.1, seed=seed)
        best = filters.place(demand.tree, demand.flow, k=15)
    saved = {k: float(1 - best.curve[k] / best.curve[0]) for k in (1, 3, 7, 15)}
    return {"vertices": demand.tree.n, "filters": best.filters, "saved": saved, "gap": best.gap}


def _queries(seed: int) -> dict[str, Any]:
    from narrowcast import workloads
    from narrowcast.plans.queries import api as queries

    with _step("merging range queries"):
        boxes = workloads.rectangles(n=100, seed=seed)
        merged = queries.merge(boxes, method="directed", seed=seed)
        apart = queries.cost(boxes, [(i,) for i in range(len(boxes))])
    return {"queries": len(boxes), "merged": len(merged.sets), "cost": merged.cost, "apart": apart.total}


def _show_matching(market: dict[str, Any], matching: dict[str, Any]) -> None:
    output.print(
        f"[bold]A trading floor.[/] {text(market['desks'])} desks follow {text(market['flows'])} symbols "
        f"with {text(market['subscriptions'])} profiles such as"
    )
    output.print("    symbol IN ('NVDA', 'AAPL') AND price BETWEEN 60 AND 150", markup=False)
    output.print(
        f"{text(matching['messages'])} messages were matched against all of them in {matching['seconds']:.2f} s. "
        f"Sent to everybody, {matching['wasted_by_flooding']:.0%} of what a desk gets is waste; "
        f"sent by unicast, a message goes out {matching['copies_by_unicast']:.1f} times.\n"
    )


def _show_channels(plan: ChannelsPlan) -> None:
    output.print(
        f"[bold]{GROUPS} multicast groups, {SESSIONS} sessions.[/] Planned and checked: whoever wants a symbol is in "
        f"its group, each message goes out once, and {1 - plan.cost.relative:.0%} of flooding's waste is gone."
    )
    output.print(ways_table(plan.cost.relative, {name: found.terms for name, found in plan.baselines.items()}))


def _show_filters(found: dict[str, Any]) -> None:
    saved = ", ".join(f"{k} filter{'s' * (k > 1)} {share:.0%}" for k, share in found["saved"].items())
    output.print(
        f"\n[bold]Filters inside the network.[/] On a multicast tree of {found['vertices']} routers, the best places "
        f"save this much traffic: {saved}."
    )


def _show_queries(found: dict[str, Any]) -> None:
    output.print(
        f"\n[bold]Range queries.[/] {found['queries']} overlapping queries answered by {found['merged']} merged ones: "
        f"{1 - found['cost'] / found['apart']:.0%} cheaper, and each client extracts exactly its own answer."
    )


def _show_live(found: dict[str, Any]) -> None:
    if "skipped" in found:
        output.print(f"\n[bold]Delivery[/] was left out: {found['skipped']}", soft_wrap=True)
        return
    counts = ", ".join(text(n) for n in found["delivered"])
    right = "[green]exactly what each asked for, once and in order[/]"
    output.print(
        f"\n[bold]Delivered.[/] {text(found['messages'])} messages through a durable log and multicast on loopback, "
        f"the source killed half-way: {found['desks']} desks received {counts} messages in {found['seconds']:.1f} s, "
        f"{right if found['exact'] else '[red]which is NOT what they asked for[/]'}."
    )
