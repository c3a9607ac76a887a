"""`narrowcast calibrate`: what filtering costs a subscriber, fitted to measurements."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from narrowcast.cli.deliver.running import INTERFACE, SYSTEM
from narrowcast.cli.output import AsJson, output, print_json, progress, table, working
from narrowcast.errors import InputError

LOOKS = 40  # at each subscriber of a running system


def calibrate(
    measurements: Annotated[
        Path | None,
        typer.Argument(help="A table of measurements: accepted, discarded, cpu, [h]. Default: measure on this host."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.2, help="Seconds that each measurement on this host takes.")] = 2.0,
    interface: Annotated[str, typer.Option(envvar=INTERFACE, help="The network interface for multicast.")] = "lo",
    system: Annotated[
        Path | None,
        typer.Option(
            envvar=SYSTEM,
            help="Watch the subscribers of the running system in this folder, 40 measurements. A table goes first.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the measurements that were made to this CSV file.")] = None,
    h: Annotated[float, typer.Option(min=1, help="Messages per packet (h) that alpha and beta are for.")] = 1.0,
    json: AsJson = False,
) -> None:
    """Fit alpha and beta, the prices of looking at a message of a group and of a session, to measured CPU.

    Each row: a subscriber accepts sessions of rate `accepted` and discards others of rate `discarded` from the same
    group, with `h` messages per packet, and spends `cpu`. Rows must differ in their mix to tell alpha from beta.
    Without a table a subscriber is started here and its CPU measured under several mixes of multicast.

    With --system the edges of a running system are watched: what they take of their groups, what they pass by, and
    their CPU. Prices that fit go to prices.json in its folder, where `adapt` finds them for its next plan; a fit that
    leaves half of the CPU unexplained, or cannot tell alpha from beta, is refused.

    Examples:

        narrowcast calibrate measurements.csv --h 8

        narrowcast calibrate --h 8 --out this-machine.csv

        narrowcast calibrate --system .narrowcast --seconds 3
    """
    if system is not None and measurements is None:
        _of_running(system, seconds, out, json)
        return
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


def _of_running(system: Path, seconds: float, out: Path | None, json: bool) -> None:
    """The prices of the system that runs there, kept in its folder."""
    from narrowcast.plans.channels.aggregation import PRICES, calibrate_running, write_prices

    samples = _watched(system, seconds)
    if out is not None:
        _write(samples, out)
    names = ("accepted", "discarded", "accepted_packets", "discarded_packets", "cpu", "process")
    fit = calibrate_running(*([getattr(each, name) for each in samples] for name in names))
    write_prices(fit, system / PRICES)
    if json:
        print_json(asdict(fit))
        return
    prices = zip(("alpha, µs", "beta, µs"), (fit.alpha, fit.beta), fit.errors, strict=True)
    found = [
        (name, f"{price * 1e6:.2f}", f"{max(0, price - 2 * error) * 1e6:.2f} to {(price + 2 * error) * 1e6:.2f}")
        for name, price, error in prices
    ]
    found.append(("left unexplained", f"{fit.unexplained:.1%}", f"{fit.n_samples} samples"))
    output.print(
        table(f"Prices per message at h = {fit.h:.1f}", ("", "value", "likely"), found, numbers=("value", "likely"))
    )
    output.print(f"adapt uses them from now on; by hand: narrowcast plan channels … --prices {system / PRICES}")


def _watched(system: Path, seconds: float) -> Any:
    import asyncio

    from narrowcast.deliver.processes.backbone import backbone, url_of
    from narrowcast.deliver.processes.calibration import watch

    async def run() -> Any:
        base = await backbone(url_of(system), name="calibrate")
        try:
            return await watch(base, (LOOKS + 1) * seconds, seconds)
        finally:
            await base.close()

    with working("watching the subscribers"):
        return asyncio.run(run())


def _write(rows: Any, out: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv

    pyarrow.csv.write_csv(pa.Table.from_pylist([asdict(row) for row in rows]), out)


def _measured(seconds: float, interface: str, out: Path | None) -> Any:
    """The CPU of a subscriber on this machine, as the table that a user would bring."""
    import pyarrow as pa

    from narrowcast.deliver.processes.calibration import measure
    from narrowcast.deliver.processes.preflight import check_engines, check_multicast, refuse
    from narrowcast.deliver.transport.dds.config import DdsSettings

    settings = DdsSettings(interface=interface)
    problems = list(check_engines(embedded=False, multicast=True))
    refuse(problems or list(check_multicast(settings, None)))
    with progress() as bar:
        task = bar.add_task("measuring a subscriber", total=None)
        found = measure(
            settings, seconds=seconds, progress=lambda done, total: bar.update(task, completed=done, total=total)
        )
    rows = pa.Table.from_pylist([asdict(sample) for sample in found])
    if out is not None:
        _write(found, out)
    return rows
