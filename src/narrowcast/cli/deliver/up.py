"""`narrowcast up` and `narrowcast down`: a whole system on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.deliver.running import HERE, SystemFolder
from narrowcast.cli.output import notes, output


def up(
    plan: Annotated[
        Path | None, typer.Argument(help="The plan's folder. Default: each subscription has its own channel.")
    ] = None,
    system: SystemFolder = Path(HERE),
    key: Annotated[
        str | None, typer.Option(help="The attributes that make a flow, as symbol,venue, if the plan has none.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Run in the background; narrowcast down stops it.")
    ] = False,
    interface: Annotated[str, typer.Option(help="The network interface for multicast. Default: loopback.")] = "lo",
    domain: Annotated[int, typer.Option(min=0, max=230, help="The DDS domain: one per system on a network.")] = 77,
    multicast: Annotated[bool, typer.Option(help="Use multicast, not only unicast and the log.")] = True,
    messages: Annotated[int, typer.Option(min=1, help="The most messages in one frame (h).")] = 64,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Shards of the log, each with a source.")] = 1,
    sync: Annotated[
        str, typer.Option(help="When the log is synced to disk: always, or an interval such as 2m (faster).")
    ] = "always",
) -> None:
    """Start a whole system on this machine: durable log, coordinator, sources, multicast on loopback.

    It listens on loopback only, with credentials made on first start and kept in the data folder. The UDP sockets
    of multicast are bound to 0.0.0.0 and tied to the device lo; with another --interface they are open to its network.
    Processes that die are started again; what was acknowledged is never lost.

    Examples:

        narrowcast up plan --detach

        narrowcast publish messages.parquet; narrowcast top; narrowcast down
    """
    import asyncio

    from narrowcast.cli.deliver.running import stopping
    from narrowcast.cli.spark import columns
    from narrowcast.deliver.processes.planner import FolderPlanner, groups_of
    from narrowcast.deliver.processes.preflight import check_engines, check_multicast, refuse
    from narrowcast.deliver.processes.supervise import (
        Supervisor,
        brokers_of,
        local_system,
        refuse_second,
        start_detached,
    )
    from narrowcast.deliver.transport.dds.config import DdsSettings
    from narrowcast.deliver.up import up_arguments

    refuse_second(system)
    known = columns(key) or ()
    found = FolderPlanner.read(plan, known).plan
    settings = DdsSettings(interface=interface, domain=domain, groups=groups_of(found)) if multicast else None
    problems = list(check_engines(embedded=True, multicast=multicast))
    problems += check_multicast(settings, found) if settings is not None else []
    refuse(problems)
    for problem in problems:
        notes.print(f"[yellow]note:[/] {problem}", soft_wrap=True)
    if detach:
        arguments = up_arguments(
            plan, system, known, interface=interface, domain=domain, multicast=multicast, shards=shards,
            messages=messages, sync=sync,
        )  # fmt: skip
        pid = start_detached(arguments, system)
        output.print(
            f"narrowcast runs in {system} (process {pid}); end it with: narrowcast down --system {system}",
            soft_wrap=True,
        )
        return
    local = local_system(
        system, plan, key=known, shards=shards, messages=messages, multicast=settings, brokers=brokers_of(found)
    )

    async def run() -> None:
        stop = stopping()
        notes.print(f"narrowcast runs in {system}; Ctrl-C ends it")
        await Supervisor(local, sync=sync).run(stop)

    asyncio.run(run())


def down(system: SystemFolder = Path(HERE)) -> None:
    """End the system that `narrowcast up` started. What is in its log stays for the next time."""
    from narrowcast.deliver.processes.supervise import stop_running
    from narrowcast.errors import InputError

    if not stop_running(system):
        raise InputError(f"nothing runs in {system}", name="system", got=str(system), hint="narrowcast up PLAN")
    output.print(f"stopped; the log is kept in {system}")
