"""`narrowcast demo`: the main job, on data that comes with the package."""

from __future__ import annotations

import json as json_text
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from narrowcast.cli.deliver.console import require_console
from narrowcast.cli.demo_live import live, stay_up, watched
from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, text, working
from narrowcast.cli.plan.channels import ways_table
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.plans.channels.result import ChannelsPlan

GROUPS, SESSIONS = 50, 300
MARKER = "demo.json"


def demo(
    out: Annotated[Path, typer.Option(help="The folder for tables, plan and report; a demo that is there goes.")] = (
        Path("demo")
    ),
    subscribers: Annotated[int, typer.Option(min=10, help="The number of trading desks.")] = 500,
    symbols: Annotated[int, typer.Option(min=100, help="The number of symbols.")] = 20_000,
    messages: Annotated[int, typer.Option(min=100, help="The number of messages.")] = 50_000,
    console: Annotated[
        bool,
        typer.Option("--console", help="At the end leave the system up, with traffic and its web page, until Ctrl-C."),
    ] = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Show what narrowcast does, on built-in data, in a minute or two.

    A trading floor: desks subscribe to symbols with profiles, and messages are matched against them.
    The log is measured on Spark, and symbols are planned into multicast groups from what was measured; then filters
    on a multicast tree, and range queries merged. Every plan is checked by code that had no part in making it. Last,
    the first plan is put on the wire on this machine, and its source is killed while messages flow.

    Examples:

        narrowcast demo

        narrowcast demo --console
    """
    if console:
        require_console()
    folder = _fresh(out)
    result: dict[str, Any] = {"market": _market(folder, subscribers, symbols, messages, seed)}
    result["matching"] = _matching(folder)
    _tell(json, _show_matching, result["market"], result["matching"])
    result["measured"] = _measured(folder)
    _tell(json, _show_measured, result["measured"])
    plan = _channels(folder, seed)
    tables = plan.to_tables()
    result["channels"] = {"cost": tables.cost, "baselines": tables.baselines, "lower_bound": tables.lower_bound}
    _tell(json, _show_channels, plan, result["matching"])
    result["filters"] = _filters(seed)
    _tell(json, _show_filters, result["filters"])
    result["queries"] = _queries(seed)
    _tell(json, _show_queries, result["queries"])
    with _step("delivering for real, and killing the source in the middle"):
        result["live"] = live(folder)
    _tell(json, _show_live, result["live"])
    result["report"] = str(_report(plan, folder))
    (folder / MARKER).write_text(json_text.dumps({"seed": seed}) + "\n")
    if json:
        print_json(result)
    else:
        here = sys.argv[0].endswith("/narrowcast") and not shutil.which("narrowcast")
        program = os.path.relpath(sys.argv[0]) if here else "narrowcast"
        output.print(f"\nOpen [bold]{result['report']}[/]: the plan against every other way, by group and subscriber.")
        output.print(f"Tables, measurements and plan are in {folder}. Next, ask why, or start a system with its page:")
        output.print(f"    [bold]{program} explain {folder}/plan --group 3[/]", soft_wrap=True)
        output.print(f"    [bold]{program} up {folder}/plan --console[/]", soft_wrap=True)
    if not result["live"].get("exact", True):
        raise typer.Exit(1)
    if console:
        if "skipped" in result["live"]:
            raise InputError(f"--console needs a system that can run: {result['live']['skipped']}", name="console")
        with _step("starting the system again, with traffic for its console"):
            started = stay_up(folder)
        watched(folder, started)


def _fresh(out: Path) -> Path:
    """An empty folder; only an older demo is removed for it."""
    if out.exists() and not (out / MARKER).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(
            f"{out} must be free for the demo, got a folder of something else", name="out", hint="--out DIR"
        )
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    (out / MARKER).write_text("{}\n")  # a demo that is stopped half-way can be run again
    return out


def _tell(json: bool, show: Callable[..., None], *what: Any) -> None:
    """Each step as it ends, for people."""
    if not json:
        show(*what)


@contextmanager
def _step(what: str) -> Iterator[None]:
    """What is being done, on standard error: while it lasts on a terminal, as a line elsewhere."""
    if not notes.is_terminal:
        notes.print(f"{what} …")
    with working(what):
        yield


def _measured(folder: Path) -> dict[str, Any]:
    """The log measured on Spark, in a process of its own; where there is no Spark, the workload's own tables serve."""
    start = time.perf_counter()
    with _step("measuring rates and interest on Spark"):
        command = [sys.executable, "-m", "narrowcast.cli", "measure", "market", "--out", "measured", "--no-overlap"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.copytree(folder / "market", folder / "measured", dirs_exist_ok=True)
        return {"skipped": (done.stderr.strip().splitlines() or ["Spark did not start"])[-1]}
    return {"seconds": time.perf_counter() - start}


def _report(plan: ChannelsPlan, folder: Path) -> Path:
    from narrowcast.plans.verbs import quick_whatif, report

    with _step("drawing the report"):
        return report(plan, folder / "report.html", whatif=quick_whatif(plan))


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

    demand = read_measured(folder / "measured", Quarantine(strict=True))
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


def _show_measured(found: dict[str, Any]) -> None:
    if "skipped" in found:
        output.print(f"[bold]Measuring[/] was left out: {escape(found['skipped'])}\n", soft_wrap=True)
        return
    output.print(
        f"[bold]Measured.[/] How fast each symbol is and who wants it, on Spark, in {found['seconds']:.0f} s: the same "
        "command runs on a cluster.\n"
    )


def _show_channels(plan: ChannelsPlan, matching: dict[str, Any]) -> None:
    output.print(
        f"[bold]{GROUPS} multicast groups, {SESSIONS} sessions.[/] Planned and checked: whoever wants a symbol is in "
        f"its group, each message goes out once, and {1 - plan.cost.relative:.0%} of flooding's waste is gone."
    )
    output.print(ways_table(plan.cost.relative, {name: found.terms for name, found in plan.baselines.items()}))
    copies = plan.baselines["unicast"].sent / (plan.baselines["perfect multicast"].sent or 1.0)
    output.print(
        "Waste is what desks receive and throw away, flooding's being 100%; sent is how often the sender sends a "
        f"message. Unicast sends {copies:.1f} copies here and {matching['copies_by_unicast']:.1f} above, and both are "
        "right: above, each profile was held against each message, its price included. Groups carry whole symbols, "
        "so here whoever may want some of a symbol counts for all of it, and the edge drops the rest.",
        style="dim",
    )


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
        output.print(f"\n[bold]Delivery[/] was left out: {escape(found['skipped'])}", soft_wrap=True)
        return
    counts = ", ".join(text(n) for n in found["delivered"])
    right = "[green]exactly what each asked for, once and in order[/]"
    output.print(
        f"\n[bold]Delivered.[/] {text(found['messages'])} messages through a durable log and multicast on loopback, "
        f"the source killed half-way: {found['desks']} desks received {counts} messages in {found['seconds']:.1f} s, "
        f"{right if found['exact'] else '[red]which is NOT what they asked for[/]'}."
    )
