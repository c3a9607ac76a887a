"""What the commands for a running system share."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

HERE = ".narrowcast"
SystemFolder = Annotated[Path, typer.Option("--system", help="The data folder of the system: its log, keys and state.")]
SystemAt = Annotated[
    str,
    typer.Option("--system", help="The running system: the data folder of `narrowcast up`, or the URL of its NATS."),
]
Interface = Annotated[str | None, typer.Option(help="The interface for multicast. Default: the system's.")]


def stopping() -> asyncio.Event:
    """Set by Ctrl-C or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
