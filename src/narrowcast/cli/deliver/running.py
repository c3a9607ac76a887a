"""What the commands for a running system share."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[Path, typer.Option(help="The folder where the system keeps its log, keys and state.")]
Url = Annotated[
    str, typer.Option(help="The URL of NATS (nats://user:password@host:port), or the data folder of `narrowcast up`.")
]
Interface = Annotated[str | None, typer.Option(help="Where multicast comes in, if not as the system says.")]


def stopping() -> asyncio.Event:
    """Set by Ctrl-C or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
