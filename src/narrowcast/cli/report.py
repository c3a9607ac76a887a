"""`narrowcast report`: a plan as one page that people can read, keep and send on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from narrowcast.cli.output import AsJson, notes, output, print_json
from narrowcast.errors import InputError


def report(
    plan: Annotated[Path, typer.Argument(help="The folder of a plan, of any kind.")],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    whatif: Annotated[Path | None, typer.Option(help="A whatif.json of `narrowcast whatif`, to show.")] = None,
    timeline: Annotated[
        Path | None, typer.Option(help="The folder where `narrowcast adapt` writes its timeline.")
    ] = None,
    sweep: Annotated[
        bool, typer.Option(help="Without --whatif: plan with other budgets, for a few seconds at most.")
    ] = True,
    message_bytes: Annotated[
        float | None, typer.Option(min=1, help="Bytes of a message, for rates in Mbit/s (channels). Default: 100.")
    ] = None,
    filter_us: Annotated[
        float | None, typer.Option(min=0.001, help="Microseconds of a core to filter a message (channels). Default: 4.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Write one HTML file that shows what a plan does, against what, for whom, and why it can be trusted.

    The file works offline, on a phone or a desk, light or dark, by keyboard too; it asks nothing of the network.

    Examples:

        narrowcast report plan --out report.html

        narrowcast report plan --whatif whatif.json

        narrowcast report plan --timeline .narrowcast/adapt
    """
    from narrowcast.plans.verbs import load, quick_whatif
    from narrowcast.plans.verbs import report as write_report
    from narrowcast.reports.whatif import read_whatif

    found = load(plan)
    asked = None
    if whatif is not None:
        asked = read_whatif(whatif)
    elif sweep:
        with notes.status("trying other budgets"):
            asked = quick_whatif(found)
    with notes.status("drawing"):
        units = {k: v for k, v in (("message_bytes", message_bytes), ("filter_us", filter_us)) if v is not None}
        size = write_report(found, out, whatif=asked, timeline=_timeline(timeline), **units).stat().st_size
    if json:
        print_json({"out": out, "bytes": size, "whatif": asked is not None})
        return
    much = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
    output.print(f"Written to {out} ({much})", markup=False)


def _timeline(folder: Path | None) -> list[dict[str, Any]]:
    from narrowcast.adapt.timeline import TIMELINE, read

    if folder is None:
        return []
    rows = read(folder)
    if not rows:
        raise InputError(f"{folder}: no timeline here (no {TIMELINE} with a row)", name="timeline", got=str(folder))
    return rows
