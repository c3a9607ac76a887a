"""What the commands for a running system share."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

HERE = ".narrowcast"
SYSTEM, INTERFACE, CONFIG = "NARROWCAST_SYSTEM", "NARROWCAST_INTERFACE", "NARROWCAST_CONFIG"
SystemFolder = Annotated[
    Path, typer.Option("--system", envvar=SYSTEM, help="The data folder of the system: its log, keys and state.")
]
SystemAt = Annotated[
    str,
    typer.Option(
        "--system",
        envvar=SYSTEM,
        help="The running system: the data folder of `narrowcast up`, or the URL of its NATS.",
    ),
]
Interface = Annotated[
    str | None, typer.Option(envvar=INTERFACE, help="The interface for multicast. Default: the system's.")
]
Metrics = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Serve OpenMetrics on this port of loopback. Default: as [metrics] says."),
]
Config = Annotated[Path, typer.Option(envvar=CONFIG, help="The TOML configuration file of this process.")]


def stopping() -> asyncio.Event:
    """Set by Ctrl-C or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
