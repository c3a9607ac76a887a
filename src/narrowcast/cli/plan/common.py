"""What every `narrowcast plan …` does after planning: check, write, and show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from narrowcast.cli.output import notes, output, table
from narrowcast.model.plan import Plan
from narrowcast.model.quarantine import Quarantine

if TYPE_CHECKING:
    from narrowcast.model.demand import Demand

Out = Annotated[Path | None, typer.Option(help="Write the plan to this folder.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a plan that is already there.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad row instead of setting it aside.")]


Key = Annotated[
    str | None,
    typer.Option(help="The attributes that make a flow, as symbol or symbol,venue. Default: as the demand says."),
]
Picture = Annotated[Path | None, typer.Option(help="Draw the plan to this .png or .svg file.")]


def _demand_here(given: Path) -> Path:
    """A folder that measure wrote to a store, as a copy on this machine."""
    from narrowcast.model.stores import is_url, whole_here

    return whole_here(given, "demand") if is_url(given) else given


DemandFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DEMAND",
        help="A folder written by measure or generate, also by its URL (s3://…), or the flows table.",
        callback=_demand_here,
    ),
]
InterestTable = Annotated[
    Path | None, typer.Argument(metavar="[INTEREST]", help="The interest table, if DEMAND is the flows table.")
]


def read_flows(demand: Path, interest: Path | None, key: str | None, aside: Quarantine) -> Demand:
    """Who wants which flow, from a folder or from two tables."""
    from dataclasses import replace

    from narrowcast.cli.arguments import columns
    from narrowcast.model.intake import read_demand_tables, read_measured

    if interest is not None:
        return read_demand_tables(demand, interest, aside, key=columns(key))
    found = read_measured(demand, aside)
    return found if key is None else replace(found, key=columns(key) or ())


P = TypeVar("P", bound=Plan)


def written(plan: P, out: Path | None, aside: Quarantine, *, overwrite: bool) -> P:
    """Judge the plan, save it with its quarantine beside it if it has a place, and say what was set aside."""
    from narrowcast.plans.verbs import judged, save

    told_aside(aside)
    with notes.status("checking"):
        plan = judged(plan) if out is None else save(plan, out, overwrite=overwrite)
    if out is not None and aside.rows:
        aside.write(out / "quarantine.parquet")
    return plan


def drawn(plan: Plan, picture: Path | None) -> None:
    """Draw the plan, if it is to be drawn."""
    if picture is not None:
        plan.picture(picture)


def told_aside(aside: Quarantine) -> None:
    """Say which rows were set aside, and why."""
    for file, row, reason in sorted(aside.rows)[:5]:
        notes.print(f"set aside: {file}, row {row}: {reason}", soft_wrap=True, markup=False, style="yellow")
    if len(aside.rows) > 5:
        notes.print(f"set aside: {len(aside.rows) - 5} more rows", style="yellow")


def as_json(plan: Plan, aside: Quarantine, out: Path | None, **more: Any) -> dict[str, Any]:
    """What every planner prints for programs."""
    tables = plan.to_tables()
    told = {name: getattr(tables, name) for name in ("kind", "key", "cost", "baselines", "lower_bound", "gap")}
    return {**told, **more, "set_aside": len(aside.rows), "out": out}


def bars(title: str, costs: Mapping[str, float], ours: str) -> Any:
    """Costs as bars, least first; ours stands out."""
    longest = max(costs.values(), default=1.0) or 1.0
    rows = [
        (f"[bold green]{name}[/]" if name == ours else name, cost, "█" * max(1, round(30 * cost / longest)))
        for name, cost in sorted(costs.items(), key=lambda item: item[1])
    ]
    return table(title, ("way", "cost", ""), rows, numbers=("cost",))


def show(headline: str, ours: float, others: Mapping[str, float], out: Path | None) -> None:
    """The headline, the bars, and where the plan went."""
    output.print(headline)
    output.print(bars("Against the other ways", {"this plan": ours, **others}, "this plan"))
    if out is not None:
        output.print(f"Written to {out}")
