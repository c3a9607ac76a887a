"""`narrowcast up` and `narrowcast down`: a whole system on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.deliver.running import HERE, INTERFACE, SystemFolder
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
    interface: Annotated[
        str, typer.Option(envvar=INTERFACE, help="The network interface for multicast. Default: loopback.")
    ] = "lo",
    domain: Annotated[
        int | None,
        typer.Option(min=0, max=230, help="The DDS domain. Default: from 77 on, the first that nobody here uses."),
    ] = None,
    multicast: Annotated[bool, typer.Option(help="Use multicast, not only unicast and the log.")] = True,
    seal: Annotated[
        bool, typer.Option(help="Encrypt and authenticate frames, so that others on the network can do neither.")
    ] = True,
    messages: Annotated[int, typer.Option(min=1, help="The most messages in one frame (h).")] = 64,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Shards of the log, each with a source.")] = 1,
    sync: Annotated[
        str, typer.Option(help="When the log is synced to disk: always, or an interval such as 2m (faster).")
    ] = "always",
    retention: Annotated[
        str,
        typer.Option(
            help="How much the log keeps: a size such as 50GB, an age such as 7d, both as 50GB,7d, or none. The oldest "
            "goes first. Default: half of what was free on the disk at the first start."
        ),
    ] = "auto",
    metrics: Annotated[
        int | None,
        typer.Option(
            min=1, max=65000, help="Serve OpenMetrics on loopback: this port and those after it, one a process."
        ),
    ] = None,
    console: Annotated[
        bool, typer.Option("--console", help="Serve a web page that shows the system, and print its link.")
    ] = False,
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
    from dataclasses import replace

    from narrowcast.cli.arguments import columns
    from narrowcast.cli.deliver.console import beside, link_of, require_console
    from narrowcast.cli.deliver.running import stopping
    from narrowcast.deliver.processes.planner import FolderPlanner, groups_of
    from narrowcast.deliver.processes.preflight import check_engines, check_multicast, refuse
    from narrowcast.deliver.processes.retention import parse_retention
    from narrowcast.deliver.processes.supervise import (
        Supervisor,
        brokers_of,
        local_multicast,
        local_system,
        refuse_second,
        start_detached,
    )
    from narrowcast.deliver.up import up_arguments

    refuse_second(system)
    parse_retention(retention)
    if console:
        require_console()
    known = columns(key) or ()
    found = FolderPlanner.read(plan, known).plan
    groups = groups_of(found)
    settings = local_multicast(system, interface=interface, groups=groups, domain=domain) if multicast else None
    problems = list(check_engines(embedded=True, multicast=multicast))
    problems += check_multicast(settings, found) if settings is not None else []
    refuse(problems)
    for problem in problems:
        notes.print(f"[yellow]note:[/] {problem}", soft_wrap=True)
    if found is not None and found.kind == "network":
        told = "all sites run on this machine and sources send to each site's groups; gateways do not relay yet"
        notes.print(f"[yellow]note:[/] {told}", soft_wrap=True)
    if detach:
        beside_arguments = ["--console"] if console else []
        beside_arguments += ["--metrics", str(metrics)] if metrics is not None else []
        arguments = up_arguments(
            plan, system, known, interface=interface, domain=domain, multicast=multicast, shards=shards,
            messages=messages, sync=sync, seal=seal, retention=retention,
        )  # fmt: skip
        pid = start_detached([*arguments, *beside_arguments], system)
        output.print(
            f"narrowcast runs in {system} (process {pid}); end it with: narrowcast down --system {system}",
            soft_wrap=True,
        )
        if console:
            output.print(f"console: {link_of(system)}", soft_wrap=True, markup=False)
        return
    local = local_system(
        system, plan, key=known, shards=shards, messages=messages, multicast=settings, brokers=brokers_of(found),
        seal=seal, retention=retention,
    )  # fmt: skip

    local = replace(local, metrics=replace(local.metrics, port=metrics))

    async def run() -> None:
        stop = stopping()
        notes.print(f"narrowcast runs in {system}; Ctrl-C ends it")
        page = asyncio.ensure_future(beside(system, stop)) if console else None
        try:
            await Supervisor(local, sync=sync).run(stop)
        finally:
            if page is not None:
                stop.set()
                await page

    asyncio.run(run())


def down(system: SystemFolder = Path(HERE)) -> None:
    """End the system that `narrowcast up` started. What is in its log stays for the next time."""
    from narrowcast.deliver.processes.supervise import stop_running
    from narrowcast.errors import InputError

    if not stop_running(system):
        raise InputError(f"nothing runs in {system}", name="system", got=str(system), hint="narrowcast up PLAN")
    output.print(f"stopped; the log is kept in {system}")
