"""`narrowcast whatif`: plan again over other budgets or prices, and see where more stops paying."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.arguments import numbers
from narrowcast.cli.output import AsJson, notes, output, print_json, progress, table, text
from narrowcast.errors import InputError, PlanError

if TYPE_CHECKING:
    from narrowcast.evaluate.whatif import Sweep

HEAD, PICTURE = "whatif.json", "whatif.svg"


def _list(what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(help=f"{what}, as 10,20,50.")
    return option


def whatif(
    plan: Annotated[Path, typer.Argument(help="The plan's folder.")],
    groups: Annotated[str | None, _list("Numbers of groups (channels)")] = None,
    sessions: Annotated[str | None, _list("Numbers of sessions (channels)")] = None,
    joins_per_subscriber: Annotated[str | None, _list("Groups that a subscriber may join (channels)")] = None,
    rate_per_group: Annotated[str | None, _list("Highest rates of a group (channels)")] = None,
    cap: Annotated[str | None, _list("Caps on the unicast share (channels with unicast)")] = None,
    k: Annotated[str | None, _list("Numbers of filters")] = None,
    alpha: Annotated[str | None, _list("Prices of a message of a group (channels)")] = None,
    beta: Annotated[str | None, _list("Prices of a message of a session (channels)")] = None,
    w1: Annotated[str | None, _list("Prices of receiving (channels with unicast)")] = None,
    w2: Annotated[str | None, _list("Prices of sending (channels with unicast)")] = None,
    w3: Annotated[str | None, _list("Prices of unicast on top of both (channels with unicast)")] = None,
    km: Annotated[str | None, _list("Prices of a merged query (queries)")] = None,
    kt: Annotated[str | None, _list("Prices of sending a row (queries)")] = None,
    ku: Annotated[str | None, _list("Prices of a row to a client that did not ask for it (queries)")] = None,
    filter_delay: Annotated[str | None, _list("Delays of a filter (filters for delay)")] = None,
    link_delay: Annotated[str | None, _list("Delays of a link (filters for delay)")] = None,
    max_channels: Annotated[str | None, _list("Numbers of channels (semantic)")] = None,
    latency_bound: Annotated[str | None, _list("Delays allowed to every subscriber (semantic)")] = None,
    channels: Annotated[str | None, _list("Numbers of channels on the backbone (network)")] = None,
    filters: Annotated[str | None, _list("Numbers of brokers that filter (network)")] = None,
    joins_per_host: Annotated[str | None, _list("Groups that a host may join (network)")] = None,
    price_cpu: Annotated[str | None, _list("Prices of a CPU hour (network)")] = None,
    price_send: Annotated[str | None, _list("Prices of a million copies (network)")] = None,
    price_filter: Annotated[str | None, _list("Prices of a filter for an hour (network)")] = None,
    price_group: Annotated[str | None, _list("Prices of a group for an hour (network)")] = None,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds to plan each point.")] = 10.0,
    workers: Annotated[int, typer.Option(min=1, help="The number of processes to plan in.")] = 2,
    out: Annotated[
        Path | None, typer.Option(help="Write whatif.json (for the report), .parquet, .csv and .svg to this folder.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a what-if that is already there.")] = False,
    json: AsJson = False,
) -> None:
    """Plan again with other budgets or prices, one or two at a time: a curve, or a map.

    The knee is where more of a budget stops paying: the point farthest below the straight line from the
    least to the largest budget. A plan within a smaller budget is within a larger one too, so costs never rise.

    Examples:

        narrowcast whatif plan --groups 10,20,50,100 --out sweep

        narrowcast whatif plan --groups 10,20,50 --sessions 100,200,500

        narrowcast whatif plan --k 0,5,10,20,40
    """
    from narrowcast.plans.verbs import load
    from narrowcast.plans.verbs import whatif as sweep

    given = {
        "groups": groups, "sessions": sessions, "joins_per_subscriber": joins_per_subscriber,
        "rate_per_group": rate_per_group, "cap": cap, "k": k, "alpha": alpha, "beta": beta, "w1": w1, "w2": w2,
        "w3": w3, "km": km, "kt": kt, "ku": ku, "filter_delay": filter_delay, "link_delay": link_delay,
        "max_channels": max_channels, "latency_bound": latency_bound, "channels": channels, "filters": filters,
        "joins_per_host": joins_per_host, "price_cpu": price_cpu, "price_send": price_send,
        "price_filter": price_filter, "price_group": price_group,
    }  # fmt: skip
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = {name: numbers(f"--{name.replace('_', '-')}", value) for name, value in chosen.items()}
    if not 1 <= len(settings) <= 2:
        raise InputError("whatif takes one or two settings, as --groups 10,20,50", name="whatif", got=list(settings))
    with progress() as bar:
        task = bar.add_task("planning", total=None)
        found = sweep(
            load(plan),
            **settings,
            time_limit=time_limit,
            workers=workers,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if not found.done:
        raise PlanError(f"no plan was found: {found.points[0].failed}")
    if out is not None:
        _write(found, out, overwrite)
    if json:
        print_json(found.as_dict() | {"out": out})
        return
    _show(found)
    if out is not None:
        output.print(f"Written to {out}")


def _write(found: Sweep, out: Path, overwrite: bool) -> None:
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    from narrowcast.model.whole_folder import whole_folder
    from narrowcast.reports.picture import save_picture
    from narrowcast.reports.whatif import parse_whatif, whatif_picture

    rows = pa.Table.from_pylist(found.rows())
    with whole_folder(out, marker=HEAD, overwrite=overwrite) as half:
        (half / HEAD).write_text(json_module.dumps(found.as_dict(), indent=2) + "\n", encoding="utf-8")
        pq.write_table(rows, half / "whatif.parquet")
        csv.write_csv(rows, half / "whatif.csv")
        title = f"{found.measure} as a share of {found.yardstick}"
        save_picture(whatif_picture(parse_whatif(found.as_dict()), title, found.present["relative"]), half / PICTURE)


def _show(found: Sweep) -> None:
    rows: list[tuple[object, ...]] = []
    for point in found.points:
        told = {"knee": point is found.knee, "this setting": _is_present(found, point.settings)}
        marks = [word for word, is_so in told.items() if is_so]
        result = (point.cost, f"{point.relative:.1%}") if not point.failed else ("", "")
        note = point.failed or ("[bold green]" + ", ".join(marks) + "[/]" if marks else "")
        rows.append((*(_number(point.settings[name]) for name in found.names), *result, note))
    heads = (*(name.replace("_", " ") for name in found.names), found.measure, "share", "")
    title = f"What if: {found.measure}, and as a share of {found.yardstick}"
    output.print(table(title, heads, rows, numbers=heads[:-1]))
    now = found.present["relative"]
    if found.knee is not None:
        at = ", ".join(f"{_number(found.knee.settings[name])} {name.replace('_', ' ')}" for name in found.names)
        output.print(f"The knee is at {at}: {found.knee.relative:.1%}; this plan has {now:.1%}.")
    else:
        output.print(f"There is no knee. This plan has {now:.1%}.")
    failed = sum(bool(point.failed) for point in found.points)
    if failed:
        notes.print(f"{failed} of {len(found.points)} points have no plan", style="yellow")


def _is_present(found: Sweep, settings: object) -> bool:
    return settings == {name: value for name, value in found.present.items() if name in found.names}


def _number(value: float) -> str:
    return text(int(value)) if value == int(value) else text(value)
