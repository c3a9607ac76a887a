"""`narrowcast export`: a plan as the configuration of the engine that carries it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.output import AsJson, notes, output, print_json, table


class Target(StrEnum):
    cyclonedds = "cyclonedds"
    rti = "rti"
    ultramessaging = "ultramessaging"
    aeron = "aeron"
    nats = "nats"
    csv = "csv"


class GuardField(StrEnum):
    flow = "flow"
    session = "session"


def export(
    plan: Annotated[Path, typer.Argument(help="The plan's folder.")],
    to: Annotated[Target, typer.Option(help="The engine to write the configuration for.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    base_address: Annotated[str, typer.Option(help="The address range of the multicast groups.")] = ("239.77.0.0/16"),
    port: Annotated[int | None, typer.Option(help="The first UDP port. Default: that of the engine.")] = None,
    ttl: Annotated[int, typer.Option(help="The most routers that a packet may pass (TTL).")] = 32,
    interface: Annotated[
        str | None, typer.Option(help="The network interface: name, address or network (aeron, ultramessaging).")
    ] = None,
    memberships: Annotated[
        int, typer.Option(help="The most groups that a socket may join on the hosts: net.ipv4.igmp_max_memberships.")
    ] = 20,
    key: Annotated[
        str | None, typer.Option(help="The field that filter expressions test (rti). Default: the plan's flow key.")
    ] = None,
    guard: Annotated[
        GuardField, typer.Option(help="Whether that field holds the flow or the session (rti).")
    ] = GuardField.flow,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an export that is already there.")] = False,
    json: AsJson = False,
) -> None:
    """Write the configuration that puts a plan on an engine, and the tables that say who uses what.

    The engine's own limits are checked first, with one line that says what to change: addresses in the range,
    joins per socket, ports, lengths of names. Semantic channels and merged queries go to cyclonedds, nats and csv,
    filter plans to nats (a leaf node server per filter) and csv, network plans to csv.

    Examples:

        narrowcast export plan --to cyclonedds --out dds --base-address 239.77.0.0/16 --interface eth0

        narrowcast export plan --to aeron --out aeron --interface 192.168.1.0/24 --ttl 4
    """
    from narrowcast.exports import Options
    from narrowcast.exports import export as write_export
    from narrowcast.plans.verbs import load

    options = Options(base_address, port, ttl, interface, memberships, key, guard.value)
    files = write_export(load(plan), to.value, out, options, overwrite=overwrite)
    if json:
        print_json({"target": to.value, "out": out, "files": sorted(files.texts), "notes": files.notes})
        return
    rows = [(name, len(text.encode())) for name, text in files.texts.items()]
    output.print(table(f"Written to {out} for {to.value}", ("file", "bytes"), rows, numbers=("bytes",)))
    for note in files.notes:
        notes.print(f"note: {note}", soft_wrap=True, markup=False, highlight=False)
