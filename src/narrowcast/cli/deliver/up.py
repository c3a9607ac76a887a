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
    listen: Annotated[
        str, typer.Option(help="The address at which others reach NATS. Other than loopback it needs --tls-cert.")
    ] = "127.0.0.1",
    tls_cert: Annotated[Path | None, typer.Option(help="The certificate of NATS for TLS, as PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of that certificate, as PEM.")] = None,
    tls_ca: Annotated[
        Path | None, typer.Option(help="The authority that it is from, as PEM, for the credentials of clients.")
    ] = None,
    console: Annotated[
        bool, typer.Option("--console", help="Serve a web page that shows the system, and print its link.")
    ] = False,
) -> None:
    """Start a whole system on this machine: durable log, coordinator, sources, multicast on loopback.

    NATS listens on loopback unless --listen says otherwise, with credentials made on first start and kept in the data
    folder; `narrowcast account` makes those of others. The UDP sockets of multicast are bound to 0.0.0.0 and tied to
    the device lo; with another --interface they are open to its network. Processes that die are started again; what was
    acknowledged is never lost.

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
        relays_of,
        start_detached,
    )
    from narrowcast.deliver.up import up_arguments

    refuse_second(system)
    parse_retention(retention)
    tls = _tls(listen, tls_cert, tls_key, tls_ca)
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
    if detach:
        beside_arguments = ["--console"] if console else []
        beside_arguments += ["--metrics", str(metrics)] if metrics is not None else []
        beside_arguments += ["--listen", listen, *(part for n, at in tls.items() for part in (f"--tls-{n}", str(at)))]
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
        relays=relays_of(found), seal=seal, retention=retention,
    )  # fmt: skip

    local = replace(local, metrics=replace(local.metrics, port=metrics))

    async def run() -> None:
        stop = stopping()
        notes.print(f"narrowcast runs in {system}; Ctrl-C ends it")
        page = asyncio.ensure_future(beside(system, stop)) if console else None
        try:
            await Supervisor(local, sync=sync, listen=listen, tls=tls).run(stop)
        finally:
            if page is not None:
                stop.set()
                await page

    asyncio.run(run())


def _tls(listen: str, cert: Path | None, key: Path | None, ca: Path | None) -> dict[str, Path]:
    """The files for TLS, which must be there."""
    from narrowcast.errors import InputError

    if (cert is None) != (key is None) or (ca is not None and cert is None):
        raise InputError("--tls-cert and --tls-key must be given together", name="tls-cert", got=str(cert))
    if listen in ("0.0.0.0", "::"):
        raise InputError("listen must be one address of this host, for clients to be told", name="listen", got=listen)
    if cert is None and not (listen.startswith("127.") or listen == "localhost"):
        hint = "give --tls-cert and --tls-key: credentials and messages would cross the network in the clear"
        raise InputError(f"listen must be loopback without TLS, got {listen}", name="listen", got=listen, hint=hint)
    found = {name: file.resolve() for name, file in (("cert", cert), ("key", key), ("ca", ca)) if file is not None}
    for name, file in found.items():
        if not file.is_file():
            raise InputError(f"{file}: no such file", name=f"tls-{name}", got=str(file))
    return found


def down(system: SystemFolder = Path(HERE)) -> None:
    """End the system that `narrowcast up` started. What is in its log stays for the next time."""
    from narrowcast.deliver.processes.supervise import stop_running
    from narrowcast.errors import InputError

    if not stop_running(system):
        raise InputError(f"nothing runs in {system}", name="system", got=str(system), hint="narrowcast up PLAN")
    output.print(f"stopped; the log is kept in {system}")
