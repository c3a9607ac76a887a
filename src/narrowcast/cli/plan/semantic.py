"""`narrowcast plan semantic`: channels on an overlay of brokers, with a map and a reason for each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, table, text, working
from narrowcast.cli.plan.common import Out, Overwrite, Picture, Strict, as_json, show, written
from narrowcast.errors import InputError
from narrowcast.reports.text import plural

if TYPE_CHECKING:
    from narrowcast.model import Topology
    from narrowcast.plans.semantic.intake import Clients
    from narrowcast.plans.semantic.reasons import ChannelReason
    from narrowcast.plans.semantic.result import SemanticPlan


class SemanticMethod(StrEnum):
    search = "search"
    semcast = "semcast"
    merge = "merge"
    noise_merge = "noise-merge"
    central = "central"
    semcast_broker = "semcast-broker"


class Rendezvous(StrEnum):
    best = "best"
    random = "random"


Nodes = Annotated[Path | None, typer.Option(help="The nodes table: node, role (source, gateway, interior), [x, y].")]
Source = Annotated[str | None, typer.Option(help="The broker of all publishers, if messages have no source column.")]
Cap = Annotated[int | None, typer.Option(min=1, help="The most channels.")]
HalfLife = Annotated[float | None, typer.Option(min=0, help="Half-life of a message's weight, in messages.")]
Latency = Annotated[
    float | None, typer.Option(min=0, help="The longest delay to a gateway, if a subscriber has no bound of its own.")
]


def semantic(
    topology: Annotated[Path, typer.Argument(help="The topology table: u, v, [cost], [delay].")],
    subscriptions: Annotated[
        Path, typer.Argument(help="The subscriptions table: subscriber, profile (SQL or XPath), node, [latency_bound].")
    ],
    messages: Annotated[
        Path,
        typer.Argument(
            help="The messages of the statistics window: attributes, [source], [xml]; or a folder that measure wrote."
        ),
    ],
    nodes: Nodes = None,
    source: Source = None,
    method: Annotated[
        SemanticMethod,
        typer.Option(
            help="search gives the best plans; semcast-broker is semcast on better trees; the others are as published."
        ),
    ] = SemanticMethod.search,
    max_channels: Cap = None,
    rendezvous: Annotated[
        Rendezvous, typer.Option(help="best: least total cost for these sources; random: as in the paper.")
    ] = Rendezvous.best,
    half_life: HalfLife = None,
    latency_bound: Latency = None,
    picture: Picture = None,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Give messages channels on an overlay of brokers: which content goes to which gateways, over which tree.

    Every plan is checked by code that had no part in making it before it is written: whoever matches a
    message is reached, by any message, seen or not.

    Examples:

        narrowcast plan semantic topology.parquet subscriptions.parquet messages.parquet --out plan --picture map.png

        narrowcast plan semantic topology.csv subscriptions.csv messages.csv --nodes nodes.csv --max-channels 50

        narrowcast plan semantic topology.csv subscriptions.csv measured --source b0
    """
    from dataclasses import replace

    import numpy as np

    from narrowcast.model.folder import fingerprint
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.semantic.demand import OverlayDemand
    from narrowcast.plans.semantic.intake import answerable, read_clients, read_messages, read_overlay
    from narrowcast.plans.semantic.plan import make
    from narrowcast.plans.semantic.reasons import channel_reasons
    from narrowcast.plans.semantic.statistics import is_measured
    from narrowcast.profiles.xpath.namespaces import missed_namespaces

    aside = Quarantine(strict=strict)
    overlay = read_overlay(topology, nodes, aside)
    given = read_clients(subscriptions, overlay, aside)
    at = None if source is None else _broker(source, overlay.names or ())
    wanted = OverlayDemand(overlay, given.profiles, given.clients, names=given.names)
    brokers: Any
    if is_measured(messages):
        wanted = replace(wanted, statistics=_statistics(messages, at, half_life))
        brokers = None if at is None else np.array([at])
    else:
        window, brokers = read_messages(messages, overlay, aside, given.profiles)
        given = answerable(given, window, subscriptions, aside)
        brokers = brokers if at is None else np.full(window.num_rows, at)
        if not window.num_rows:
            raise InputError(f"{messages}: no valid row: {aside.rows[-1][2] if aside.rows else 'the table is empty'}")
        wanted = OverlayDemand(overlay, given.profiles, given.clients, window, brokers, given.names)
        for line in missed_namespaces(given.profiles, window):
            notes.print(line, soft_wrap=True, markup=False, style="yellow")
    bounds = _bounds(given, latency_bound, overlay, brokers, strict=strict)
    with working("planning"):
        made = make(
            replace(wanted, bounds=bounds), method.value, max_channels, rendezvous.value, half_life or None,
            latency_bound, seed,
        )  # fmt: skip
    inputs = {"topology": topology, "subscriptions": subscriptions, "messages": messages}
    inputs |= {} if nodes is None else {"nodes": nodes}
    made = written(
        made.made_from({name: fingerprint(path) for name, path in inputs.items()}), out, aside, overwrite=overwrite
    )
    reasons = [] if made.demand.brokers(made.system) is None else channel_reasons(made, wanted.messages, brokers)
    if picture is not None:
        from narrowcast.plans.semantic.report import picture as overlay_picture
        from narrowcast.reports.picture import save_picture

        save_picture(overlay_picture(made, _places(nodes)), picture)
    if json:
        print_json(as_json(made, aside, out, **_told(made, reasons), picture=picture))
        return
    _show(made, reasons, out)


def _statistics(folder: Path, source: int | None, half_life: float | None) -> Any:
    """What was measured of one source's messages; of what is measured no message is known, so none can fade."""
    from narrowcast.plans.semantic.statistics import Statistics

    if half_life:
        raise InputError(
            "--half-life needs messages, got a folder of measured statistics",
            name="half_life",
            hint="give it to narrowcast measure",
        )
    return Statistics.from_folder(folder, source)


def _broker(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise InputError(f"--source {name}: no such broker in the topology", name="source", got=name)
    return names.index(name)


def _bounds(given: Clients, for_all: float | None, overlay: Topology, brokers: Any, *, strict: bool) -> Any:
    """Each client's own bound, else the one for all. A client that asks for the impossible is told."""
    import numpy as np

    from narrowcast.plans.semantic.methods.bounds import within_reach

    asked = np.full(len(given.names), np.inf) if given.bounds is None else given.bounds
    asked = np.where(np.isinf(asked) & (for_all is not None), for_all or np.inf, asked)
    if np.isinf(asked).all():
        return None
    if brokers is None or strict:
        return asked
    kept = within_reach(overlay, given.clients, brokers, asked)
    late = np.flatnonzero(kept > asked)
    for i in late[:3].tolist():
        notes.print(
            f"{given.names[i]}: asks for {asked[i]:g}; the quickest way takes {kept[i]:g}, so that is its bound",
            soft_wrap=True, markup=False, style="yellow",
        )  # fmt: skip
    if late.size > 3:
        notes.print(f"{late.size - 3:,} more clients ask for less than the quickest way takes", style="yellow")
    return kept


def _places(nodes: Path | None) -> dict[str, tuple[float, float]] | None:
    """Where brokers stand, if the nodes table says so in columns x and y, or lon and lat."""
    from math import isfinite

    from narrowcast.model.tables import read_table

    if nodes is None:
        return None
    found = read_table(nodes, name="nodes")
    columns = next((pair for pair in (("x", "y"), ("lon", "lat")) if set(pair) <= set(found.column_names)), None)
    if columns is None:
        return None
    rows = zip(*(found[name].to_pylist() for name in ("node", *columns)), strict=True)
    given = {str(node): at for node, *at in rows}
    return {
        node: (float(x), float(y))
        for node, (x, y) in given.items()
        if all(isinstance(v, int | float) and isfinite(v) for v in (x, y))
    }


def _told(made: SemanticPlan, reasons: list[ChannelReason]) -> dict[str, Any]:
    import numpy as np

    from narrowcast.plans.semantic.tables.words import told as in_words

    rows = zip(made.channels, in_words(made, np.array(made.broker_names, object)), strict=True)
    channels = [
        {"channel": c, "expression": said, "rendezvous": made.broker_names[channel.rendezvous], "rate": channel.rate,
         "kind": channel.kind, "gateways": len(channel.gateways)}
        for c, (channel, said) in enumerate(rows)
    ]  # fmt: skip
    for reason in reasons:
        told: dict[str, Any] = {"cost": reason.cost, "spt": reason.spt, "alone": reason.alone, "in_vain": reason.extra}
        told |= {"profiles": [str(made.system.profiles[p]) for p, _ in reason.profiles], "why": str(reason)}
        channels[reason.channel] |= told
    system = made.system
    return {
        "channels": channels, "method": made.method, "brokers": system.topology.n_brokers,
        "clients": len(system.clients), "profiles": len(system.profiles),
    }  # fmt: skip


def _show(made: SemanticPlan, reasons: list[ChannelReason], out: Path | None) -> None:
    system = made.system
    busy = sum(channel.rate > 0 for channel in made.channels)
    total, spt = made.window_cost, made.cost.baselines.get("spt")
    against = f", {abs(1 - total / spt):.1%} {'below' if total <= spt else 'above'} shortest path trees" if spt else ""
    headline = (
        f"[bold]{plural(len(system.clients), 'client')} of {plural(len(system.profiles), 'profile')} at "
        f"{plural(system.gateways.size, 'gateway')}[/] on {plural(made.n_channels, 'channel')}, {busy:,} "
        f"of them in use: cost {text(total)}{against}"
    )
    said = {"spt": "shortest path trees", "unicast": "unicast"}
    others = {said[name]: cost for name, cost in made.cost.baselines.items()}
    show(headline, total, others, out)
    rows = [
        (r.channel, r.kind, r.n_messages, len(made.channels[r.channel].gateways), r.cost, _percent(r.cost, r.spt),
         _percent(r.cost, r.alone))
        for r in reasons[:10] if r.n_messages
    ]  # fmt: skip
    if not rows:
        return
    columns = ("channel", "kind", "messages", "gateways", "cost", "of SPT", "of apart")
    output.print(table("Costliest channels", columns, rows, numbers=columns[2:] + columns[:1]))
    output.print("of SPT: against shortest path trees; of apart: against a channel for each profile", style="dim")
    for reason in reasons[:3]:
        output.print(f"{reason}. Mostly {_profiles(made, reason)}", soft_wrap=True, markup=False)


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def _profiles(made: SemanticPlan, reason: ChannelReason) -> str:
    """The profiles that a channel's messages match most."""
    return "; ".join(f"{made.system.profiles[p]} ({n:,})" for p, n in reason.profiles)
