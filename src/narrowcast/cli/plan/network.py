"""`narrowcast plan network`: sites, backbone, filters and unicast of a whole network in one cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, table
from narrowcast.cli.plan.common import Out, Overwrite, Picture, Strict, as_json, drawn, show, written
from narrowcast.model.quantity import quantity
from narrowcast.reports.text import plural

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="The tables sites, hosts, topology, subscriptions (with host), sources, [nodes], [queries], and flows and "
        "interest.",
    ),
]


def network(
    folder: Folder,
    demand: Annotated[
        Path | None, typer.Option(help="A folder that measure wrote, if flows and interest are not in FOLDER.")
    ] = None,
    channels: Annotated[int, typer.Option(min=0, help="The most channels on the backbone.")] = 32,
    filters: Annotated[int, typer.Option(min=0, help="The most brokers that filter.")] = 4,
    price_cpu: Annotated[float, typer.Option(min=0, help="Price of a CPU hour at subscribers.")] = 0.05,
    price_send: Annotated[float, typer.Option(min=0, help="Price of a million copies sent.")] = 0.0002,
    price_filter: Annotated[float, typer.Option(min=0, help="Price of a filter for an hour.")] = 0.02,
    price_group: Annotated[float, typer.Option(min=0, help="Price of a multicast group for an hour.")] = 0.0001,
    filter_delay: Annotated[float, typer.Option(min=0, help="How long a filter holds a message, in ms.")] = 0.0,
    method: Annotated[
        str, typer.Option(help="joint, or stitched: each piece by its own planner, put together.")
    ] = "joint",
    time_limit: Annotated[float | None, typer.Option(min=0.1, help="Seconds to plan; the best so far is kept.")] = None,
    previous: Annotated[Path | None, typer.Option(help="The plan that runs: start from it.")] = None,
    moves: Annotated[
        int | None, typer.Option(min=0, help="With --previous: the most flows that may change their way.")
    ] = None,
    period: Annotated[
        float | None, typer.Option(min=0, help="With queries: seconds between their answers. Default: 60.")
    ] = None,
    row_bytes: Annotated[
        float | None, typer.Option(min=0, help="With queries: bytes of a row of their table. Default: 100.")
    ] = None,
    picture: Picture = None,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Plan a whole network in one cost per hour: which channels and trees on the backbone, which brokers filter, and in
    each site which flows go in which multicast group or by unicast. Of a table queries it decides which are answered
    together; their answers are flows.

    Links cost what the topology's cost column says, per GB. Every plan is checked by code that had no part in
    making it.

    Examples:

        narrowcast plan network bank --out plan

        narrowcast plan network bank --channels 16 --filters 2 --time-limit 30 --out plan
    """
    from narrowcast.errors import InputError
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.network.intake import read_network
    from narrowcast.plans.network.plan import NetworkProgress, make
    from narrowcast.plans.network.prices import NetworkPrices
    from narrowcast.plans.network.result import NetworkPlan
    from narrowcast.plans.verbs import load

    aside = Quarantine(strict=strict)
    wanted = read_network(folder, demand, aside)
    old = None if previous is None else load(previous)
    if old is not None and not isinstance(old, NetworkPlan):
        raise InputError(f"--previous must be a network plan, got a {old.kind} plan", name="previous", got=old.kind)
    with notes.status("planning") as status:

        def told(now: NetworkProgress) -> None:
            status.update(f"planning: {now.piece}, {quantity(now.cost)} an hour after {now.elapsed_s:.0f} s")

        made = make(
            wanted, channels, filters, price_cpu, price_send, price_filter, price_group, filter_delay, method,
            seed=seed, time_limit=time_limit, progress=told, previous=old, moves=moves, period_s=period,
            row_bytes=row_bytes,
        )  # fmt: skip
    made = written(made, out, aside, overwrite=overwrite)
    drawn(made, picture)
    prices = NetworkPrices(price_cpu, price_send, price_filter, price_group)
    if json:
        print_json(as_json(made, aside, out, prices=prices.told(), lower_bounds=dict(made.lower_bounds)))
        return
    wants, asked = wanted.interest, made.demand.queries
    headline = (
        f"[bold]{plural(wanted.n_sites, 'site')}, {plural(wants.n_flows, 'flow')}, "
        f"{plural(wants.n_users, 'subscriber')}:[/] {quantity(made.cost.total)} an hour; "
        f"no plan costs more than {made.cost.gap or 0.0:.1%} less"
    )
    show(headline, made.cost, made.cost.baselines, out)
    rows = [(name.replace("_", " "), made.cost.terms[name], f"{value / (made.cost.total or 1):.1%}")
            for name, value in made.cost.terms.items()]  # fmt: skip
    output.print(table("Cost per hour by term", ("term", "cost", "share"), rows, numbers=("cost", "share")))
    if asked is not None:
        told_of = plural(len(asked.asked.boxes), "query", "queries")
        output.print(f"{told_of} in {plural(len(asked.sets), 'set')}, each answered together as a flow")
    output.print(f"Prices: links as the topology says per GB, {prices.told()}", soft_wrap=True)
