"""`narrowcast up` and `narrowcast down`: a whole system on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.deliver.running import Data
from narrowcast.cli.output import notes, output


def up(
    plan: Annotated[
        Path | None, typer.Argument(help="The plan's folder; without one, every subscription gets its own channel.")
    ] = None,
    data: Data = Path(".narrowcast"),
    key: Annotated[
        str, typer.Option(help="The attributes that make a flow, with commas, as when measuring.")
    ] = "symbol",
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return once it runs; narrowcast down ends it.")
    ] = False,
    interface: Annotated[str, typer.Option(help="Where multicast goes out: loopback unless told otherwise.")] = "lo",
    domain: Annotated[int, typer.Option(min=0, max=230, help="Keeps systems on one network apart.")] = 77,
    multicast: Annotated[bool, typer.Option(help="Without it, everything goes by unicast or from the log.")] = True,
    messages: Annotated[int, typer.Option(min=1, help="Most messages in one frame (aggregation h).")] = 64,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Logs side by side, each with its source.")] = 1,
    sync: Annotated[
        str, typer.Option(help="When the log goes to disk: always, or an interval such as 2m (faster).")
    ] = "always",
) -> None:
    """Start a whole system on this machine: durable log, coordinator, sources, multicast on loopback.

    It listens on loopback only, with credentials made on first start and kept in the data folder.
    Processes that die are started again; what was acknowledged is never lost.

    Examples:

        narrowcast up plan --detach

        narrowcast publish messages.parquet; narrowcast top; narrowcast down
    """
    import asyncio

    from narrowcast.cli.deliver.running import stopping
    from narrowcast.deliver.processes.preflight import check_engines, check_multicast, refuse
    from narrowcast.deliver.processes.supervise import Local, Supervisor, brokers_of, refuse_second, start_detached
    from narrowcast.deliver.transport.dds.config import DdsSettings

    refuse_second(data)
    found = None
    if plan is not None:
        from narrowcast.deliver.processes.planner import FolderPlanner

        found = FolderPlanner.read(plan, key.split(",")).plan
    used = found.tables["session_group"]["group"].to_pylist() if found and "session_group" in found.tables else []
    groups = max(256, 2 + max(used, default=0))
    settings = DdsSettings(interface=interface, domain=domain, groups=groups) if multicast else None
    problems = list(check_engines(embedded=True, multicast=multicast))
    problems += check_multicast(settings, found) if settings is not None else []
    refuse(problems)
    for problem in problems:
        notes.print(f"[yellow]note:[/] {problem}", soft_wrap=True)
    local = Local(data, plan, tuple(key.split(",")), shards, messages, settings, sync, brokers_of(plan))
    if detach:
        pid = start_detached(_arguments(local), data)
        output.print(
            f"narrowcast runs in {data} (process {pid}); end it with: narrowcast down --data {data}", soft_wrap=True
        )
        return

    async def run() -> None:
        stop = stopping()
        notes.print(f"narrowcast runs in {data}; Ctrl-C ends it")
        await Supervisor(local).run(stop)

    asyncio.run(run())


def _arguments(local: object) -> list[str]:
    """The same command, in the foreground."""
    from narrowcast.deliver.processes.supervise import Local

    assert isinstance(local, Local)
    given = [] if local.plan is None else [str(local.plan)]
    given += ["--data", str(local.data), "--key", ",".join(local.key), "--shards", str(local.shards)]
    given += ["--messages", str(local.messages), "--sync", local.sync]
    if local.multicast is None:
        return [*given, "--no-multicast"]
    return [*given, "--interface", local.multicast.interface, "--domain", str(local.multicast.domain)]


def down(data: Data = Path(".narrowcast")) -> None:
    """End the system that `narrowcast up` started. What is in its log stays for the next time."""
    from narrowcast.deliver.processes.supervise import stop_running
    from narrowcast.errors import InputError

    if not stop_running(data):
        raise InputError(f"nothing runs in {data}", name="data", got=str(data), hint="narrowcast up PLAN")
    output.print(f"stopped; the log is kept in {data}")
