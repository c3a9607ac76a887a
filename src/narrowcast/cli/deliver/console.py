"""`narrowcast console`: a web page of a running system."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.deliver.running import HERE, SystemAt
from narrowcast.cli.output import notes, output
from narrowcast.errors import InputError, TransportError

if TYPE_CHECKING:
    from narrowcast.deliver.processes.system import System

PORT, TOKEN = 8770, "console.token"


def console(
    system: SystemAt = HERE,
    host: Annotated[str, typer.Option(help="The address to listen on. Default: this machine alone.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = PORT,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let the page propose and install plans. Default: it only shows.")
    ] = False,
    plan: Annotated[
        Path | None, typer.Option(help="The plan the system was started with, where --system is a URL.")
    ] = None,
    propose: Annotated[
        list[Path] | None, typer.Option(help="The folder of a plan to offer for review on the page; may be repeated.")
    ] = None,
) -> None:
    """Serve a web page that shows a running system: rates, who gets what unasked, lag, plans over time.

    It prints a link with a token, which is made on first start and kept in the data folder. On the page: a map with
    live rates, predicted beside measured, "what if I had more groups?", an explanation of anything that is clicked,
    and with --allow-changes plans to review and install. It works offline and listens on loopback only.

    Examples:

        narrowcast console

        narrowcast console --allow-changes --propose plan-tuesday
    """
    require_console()
    if host in ("0.0.0.0", "::", "[::]", ""):
        raise InputError(f"host must be one address of this machine, got {host!r}", name="host", got=host,
                         hint="the page answers to one host name only; or ssh -L to loopback")  # fmt: skip
    asyncio.run(_run(system, host, port, allow_changes, plan, propose or []))


async def _run(system: str, host: str, port: int, changes: bool, plan: Path | None, propose: list[Path]) -> None:
    from narrowcast.cli.deliver.running import stopping
    from narrowcast.console.desk import Desk
    from narrowcast.console.guard import LOOPBACK, token_in
    from narrowcast.console.server import Console, listening, serve_console
    from narrowcast.console.watch import SystemWatch
    from narrowcast.deliver.processes.backbone import DATA, backbone, url_of

    stop = stopping()
    known = described(system)
    folder = DATA if known is None else known.folder
    started_with = plan or (None if known is None else known.plan)
    snapshots = None if known is None else known.path(known.adapt.folder) / "statistics" / "snapshots"
    base = await backbone(url_of(system) if known is None else known.url, name="console")
    try:
        watch = SystemWatch()
        desk = Desk(base, watch, started_with, folder / "console", snapshots=snapshots, others=propose)
        at = listening(host, port)
        token = token_in(folder / TOKEN)
        output.print(link_of(folder, host, at.getsockname()[1]), soft_wrap=True, markup=False)
        if host not in LOOPBACK:
            notes.print("[yellow]note:[/] the page is not encrypted; over a network use ssh -L and loopback")
        notes.print(f"the console {'may change plans' if changes else 'only shows'}; Ctrl-C ends it")
        await serve_console(Console(base, watch, desk, changes=changes), host, at, token, stop)
    finally:
        await base.close()


def described(system: str) -> System | None:
    """The description of a system in a data folder or a TOML file; None for a URL, or where nothing was started."""
    from narrowcast.deliver.processes.supervise import CONFIGURATION
    from narrowcast.deliver.processes.system import System

    path = Path(system)
    path = path / CONFIGURATION if path.is_dir() else path
    return None if "://" in system or not path.is_file() or path.suffix != ".toml" else System.read(path)


def link_of(system: Path, host: str = "127.0.0.1", port: int = PORT) -> str:
    """The address of the console of a data folder, with its token."""
    from narrowcast.console.guard import token_in

    return f"http://{host}:{port}/#token={token_in(system / TOKEN)}"


async def beside(system: Path, stop: asyncio.Event) -> None:
    """A console as a process of its own, from when the system is ready until it is stopped."""
    from narrowcast.deliver.processes.supervise import state_of
    from narrowcast.deliver.transport.nats.server import die_with_parent

    while not stop.is_set() and not (state_of(system) or {}).get("ready"):
        await asyncio.sleep(0.1)
    if stop.is_set():
        return
    command = [sys.executable, "-m", "narrowcast.cli", "console", "--system", str(system)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
    try:
        await stop.wait()
    finally:
        process.terminate()
        process.wait(10)


def require_console() -> None:
    """TransportError that says what to install, where the page's server is not."""
    from importlib.util import find_spec

    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise TransportError(f"{name} is not installed: pip install 'narrowcast[console]'", endpoint=name)
