"""`python -m studies`: the papers' experiments, run again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli import run as run_app
from narrowcast.cli.output import AsJson, notes, output, print_json, progress, table
from narrowcast.cli.spark import Master, Memory
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from studies import Claim, Experiment, Ran


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[EXPERIMENT]…", help="Names, the start of names (filters), or all. None: list them."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and few seeds, in seconds.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where results go and an interrupted run goes on. [default: reproduced[-quick]]")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Write results.md with the figures into this folder afterwards.")
    ] = None,
    master: Master = "local[*]",
    memory: Memory = "1g",
    here: Annotated[bool, typer.Option("--here", help="Run in this process, one by one, without Spark.")] = False,
    json: AsJson = False,
) -> None:
    """Run the experiments of the five papers and hold every published claim against what comes out.

    Each writes its rows (Parquet and CSV), a figure (PNG and an interactive page) and its claims. The points
    of an experiment run in parallel on Spark, and those that are done are kept: run the same again to go on.

    Examples:

        python -m studies

        python -m studies filters.fig3 --quick

        python -m studies all --out results --docs docs
    """
    from studies import EXPERIMENTS
    from studies.results import write_results

    if not names:
        rows = [(name, found.title, found.paper, len(found.points(False))) for name, found in EXPERIMENTS.items()]
        output.print(table("Experiments", ("name", "what", "from", "points"), rows, numbers=("points",)))
        return
    chosen = _chosen(names, EXPERIMENTS)
    folder = out or Path("reproduced-quick" if quick else "reproduced")
    ran = _run(chosen, EXPERIMENTS, folder, quick, None if here else (master, memory), show=not json)
    if docs is not None:
        notes.print(f"Written: {write_results(folder, docs, EXPERIMENTS)}")
    if json:
        print_json({found.name: [_told(claim) for claim in found.claims] for found in ran})
        return
    claims = [claim for found in ran for claim in found.claims]
    agreed = sum(claim.agrees for claim in claims)
    some = sum(bool(claim.agrees and claim.reading) for claim in claims)
    output.print(f"{len(claims)} claims: [green]{agreed - some} agree[/], {some} agree in a reading, "
                 f"{len(claims) - agreed} differ. Results in {folder}")  # fmt: skip
    if not here:
        output.print(_saved(ran, EXPERIMENTS, master))


def _saved(ran: list[Ran], known: dict[str, Experiment], master: str) -> str:
    """What spreading saved, in measured figures: CPU seconds of the points against the time that passed."""
    spread = [found for found in ran if found.fresh and not known[found.name].alone]
    cpu, wall = sum(found.cpu_s for found in spread), sum(found.wall_s for found in spread)
    if not spread:
        return "Every point was there already: nothing was spread"
    told = f"Spark on {master}: {cpu:.0f} s of CPU (measured in the tasks, added up) in {wall:.0f} s"
    if cpu <= wall:
        return f"{told}; one idle core would have done as well: short points, or a busy machine"
    return (
        f"{told}; one core would have taken {cpu:.0f} s at least, so {cpu - wall:.0f} s were saved ({cpu / wall:.2f}×)"
    )


def _chosen(names: list[str], known: dict[str, Experiment]) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        fits = [k for k in known if name in ("all", k) or k.startswith(f"{name}.")]
        for each in [k for k in fits if k != name and known[k].missing()]:  # named itself, it stops with that line
            notes.print(f"Left out: {each} {known[each].missing()}")
            fits.remove(each)
        if not fits:
            raise InputError(
                f"no experiment {name!r}; known: {', '.join(known)}", name="experiment", allowed=tuple(known), got=name
            )
        found |= dict.fromkeys(fits)
    return list(found)


def _run(
    chosen: list[str],
    known: dict[str, Experiment],
    folder: Path,
    quick: bool,
    where: tuple[str, str] | None,
    *,
    show: bool,
) -> list[Ran]:
    from studies import run

    spark, ran = None, []
    with progress() as bar:
        task = bar.add_task("starting", total=None)
        if where is not None:
            from narrowcast.data.spark.session import session

            spark = session(where[0], memory=where[1])
        try:
            for name in chosen:
                bar.reset(task, description=name, total=None)
                begin = time.perf_counter()
                found = run(name, known[name], folder / name, quick=quick, spark=spark,
                            progress=lambda done, total: bar.update(task, completed=done, total=total))  # fmt: skip
                ran.append(found)
                if show:
                    _show(found, time.perf_counter() - begin)
        finally:
            if spark is not None:
                spark.stop()
    return ran


def _show(found: Ran, seconds: float) -> None:
    rows = [(claim.says, claim.published, claim.ours, _verdict(claim))
            for claim in found.claims]  # fmt: skip
    output.print(
        table(f"{found.name} ({found.points:,} points, {seconds:.0f} s)", ("claim", "published", "ours", ""), rows)
    )
    for claim in found.claims:
        if not claim.agrees:
            output.print(f"  differs ({claim.says}): {claim.why or 'why is not known'}", style="dim", markup=False)


def _told(claim: Claim) -> dict[str, str | bool]:
    return {"claim": claim.says, "published": claim.published, "ours": claim.ours, "agrees": claim.agrees,
            "reading": claim.reading, "why": claim.why}  # fmt: skip


def _verdict(claim: Claim) -> str:
    if not claim.agrees:
        return "[yellow]differs[/]"
    return "[green]agrees in a reading[/]" if claim.reading else "[green]agrees[/]"


if __name__ == "__main__":
    sys.exit(run_app(sys.argv[1:], app, "python -m studies"))
