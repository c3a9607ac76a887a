"""What every `narrowcast plan …` does after planning: check, write, and show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from narrowcast.cli.output import notes, output, table
from narrowcast.errors import PlanError
from narrowcast.model.plan import Plan, save
from narrowcast.model.quarantine import Quarantine

Out = Annotated[Path | None, typer.Option(help="Write the plan to this folder.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a plan that is already there.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad row instead of setting it aside.")]


def refuse_unsound(faults: list[str]) -> None:
    """An unsound plan is never written."""
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise PlanError(f"the plan is unsound and was not written: {faults[0]}{more}")


def write(plan: Plan, out: Path | None, aside: Quarantine, *, overwrite: bool) -> None:
    """Save the plan, with its quarantine beside it, and say what was set aside."""
    for file, row, reason in sorted(aside.rows)[:5]:
        notes.print(f"set aside: {file}, row {row}: {reason}", soft_wrap=True, markup=False, style="yellow")
    if len(aside.rows) > 5:
        notes.print(f"set aside: {len(aside.rows) - 5} more rows", style="yellow")
    if out is None:
        return
    save(plan, out, overwrite=overwrite)
    if aside.rows:
        aside.write(out / "quarantine.parquet")


def bars(title: str, costs: Mapping[str, float], ours: str) -> Any:
    """Costs as bars, least first; ours stands out."""
    longest = max(costs.values(), default=1.0) or 1.0
    rows = [
        (f"[bold green]{name}[/]" if name == ours else name, cost, "█" * max(1, round(30 * cost / longest)))
        for name, cost in sorted(costs.items(), key=lambda item: item[1])
    ]
    return table(title, ("way", "cost", ""), rows, numbers=("cost",))


def show(plan: Plan, headline: str, costs: Mapping[str, float], ours: str, out: Path | None) -> None:
    """The headline, the bars, and where the plan went."""
    output.print(headline)
    output.print(bars("Against the other ways", costs, ours))
    if out is not None:
        output.print(f"Written to {out}")
