"""`narrowcast calibrate`: what filtering costs a receiver, fitted to measurements."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from narrowcast.cli.deliver.running import INTERFACE
from narrowcast.cli.output import AsJson, output, print_json, progress, table
from narrowcast.errors import InputError


def calibrate(
    measurements: Annotated[
        Path | None,
        typer.Argument(help="A table of measurements: accepted, discarded, cpu, [h]. Default: measure on this host."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.2, help="Seconds that each measurement on this host takes.")] = 2.0,
    interface: Annotated[str, typer.Option(envvar=INTERFACE, help="The network interface for multicast.")] = "lo",
    out: Annotated[Path | None, typer.Option(help="Write the measurements made on this host to this CSV file.")] = None,
    h: Annotated[float, typer.Option(min=1, help="Messages per packet (h) that alpha and beta are for.")] = 1.0,
    json: AsJson = False,
) -> None:
    """Fit alpha and beta, the prices of looking at a message of a group and of a session, to measured CPU.

    Each row: a receiver accepts sessions of rate `accepted` and discards others of rate `discarded` from the same
    group, with `h` messages per packet, and spends `cpu`. Rows must differ in their mix to tell alpha from beta.
    Without a table a receiver is started here and its CPU measured under several mixes of multicast.

    Examples:

        narrowcast calibrate measurements.csv --h 8

        narrowcast calibrate --h 8 --out this-machine.csv
    """
    from narrowcast.model.tables import read_table
    from narrowcast.plans.channels import api as channels

    if measurements is None:
        rows = _measured(seconds, interface, out)
    else:
        rows = read_table(measurements, name="measurements", columns=("accepted", "discarded", "cpu"))
    names = [name for name in ("accepted", "discarded", "cpu", "h") if name in rows.column_names]
    try:
        given = {name: np.array(rows[name].to_pylist(), dtype=np.float64) for name in names}
    except (TypeError, ValueError) as error:
        raise InputError(f"{measurements}: the measurements must be numbers: {error}", name="measurements") from None
    fit = channels.calibrate(**given)
    alpha, beta = fit.at(h)
    if json:
        print_json(asdict(fit) | {"h": h, "alpha": alpha, "beta": beta})
        return
    found: list[tuple[str, object]] = [("alpha", alpha), ("beta", beta), ("left unexplained", f"{fit.residual:.1%}")]
    output.print(table(f"Prices at h = {h:g}", ("", "value"), found, numbers=("value",)))
    output.print(f"Use them: narrowcast plan channels … --alpha {alpha:.4g} --beta {beta:.4g}")


def _measured(seconds: float, interface: str, out: Path | None) -> Any:
    """The CPU of a receiver on this machine, as the table that a user would bring."""
    import pyarrow as pa
    import pyarrow.csv

    from narrowcast.deliver.processes.calibration import measure
    from narrowcast.deliver.processes.preflight import check_engines, check_multicast, refuse
    from narrowcast.deliver.transport.dds.config import DdsSettings

    settings = DdsSettings(interface=interface)
    problems = list(check_engines(embedded=False, multicast=True))
    refuse(problems or list(check_multicast(settings, None)))
    with progress() as bar:
        task = bar.add_task("measuring a receiver", total=None)
        found = measure(
            settings,
            seconds=seconds,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    rows = pa.Table.from_pylist([asdict(sample) for sample in found])
    if out is not None:
        pyarrow.csv.write_csv(rows, out)
    return rows
