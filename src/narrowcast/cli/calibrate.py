"""`narrowcast calibrate`: what filtering costs a receiver, fitted to measurements."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from narrowcast.cli._output import AsJson, output, print_json, table
from narrowcast.errors import InputError


def calibrate(
    measurements: Annotated[Path, typer.Argument(help="A table with columns accepted, discarded, cpu and maybe h.")],
    h: Annotated[float, typer.Option(min=1, help="Messages per packet to give alpha and beta for.")] = 1.0,
    json: AsJson = False,
) -> None:
    """Fit alpha and beta, the prices of looking at a message of a group and of a session, to measured CPU.

    Each row: a receiver accepts sessions of rate `accepted` and discards others of rate `discarded` from the same
    group, with `h` messages per packet, and spends `cpu`. Rows must differ in their mix to tell alpha from beta.

    Examples:

        narrowcast calibrate measurements.csv --h 8
    """
    from narrowcast import channels
    from narrowcast.model.tables import read_table

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
    found = [("alpha", alpha), ("beta", beta), ("left unexplained", f"{fit.residual:.1%}")]
    output.print(table(f"Prices at h = {h:g}", ("", "value"), found, numbers=("value",)))
    output.print(f"Use them: narrowcast plan channels … --alpha {alpha:.4g} --beta {beta:.4g}")
