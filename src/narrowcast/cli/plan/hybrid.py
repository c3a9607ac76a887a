"""`narrowcast plan hybrid`: which flows share multicast groups, and which go by unicast."""

from __future__ import annotations

from typing import Annotated

import typer

from narrowcast.cli.arguments import numbers
from narrowcast.cli.output import AsJson, Seed, print_json, working
from narrowcast.cli.plan.common import (
    DemandFolder,
    InterestTable,
    Key,
    Out,
    Overwrite,
    Picture,
    Strict,
    as_json,
    drawn,
    read_flows,
    show,
    written,
)
from narrowcast.reports.text import plural


def hybrid(
    demand: DemandFolder,
    interest: InterestTable = None,
    key: Key = None,
    groups: Annotated[int, typer.Option(min=1, help="The most multicast groups.")] = 50,
    channelizer: Annotated[
        str, typer.Option(help="How flows are grouped: kmeans, random, two-phase, bmd, interior-point or flow-merge.")
    ] = "kmeans",
    unicast: Annotated[
        str, typer.Option(help="What goes by unicast: search, none, greedy-flow, greedy-user, greedy-pair, reverse, …")
    ] = "search",
    weights: Annotated[
        str, typer.Option(help="Prices of receiving, of sending, and of unicast on top, as 1,1,1.")
    ] = "1,1,1",
    cap: Annotated[float | None, typer.Option(min=0, max=1, help="Largest share of cost by unicast (0 to 1).")] = None,
    sessions: Annotated[
        int | None, typer.Option(min=1, help="The most sessions; only with --unicast search and without --cap.")
    ] = None,
    beta: Annotated[
        float, typer.Option(min=0, help="Cost to a subscriber per message of its sessions; with --sessions.")
    ] = 1.0,
    picture: Picture = None,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Put flows into multicast groups or send them by unicast, whichever is cheaper in one cost.

    The result is a channels plan that may use unicast.

    Perfect multicast, one group per audience, is 100 %. Every plan is checked by code that had no part
    in making it before it is written.

    Examples:

        narrowcast plan hybrid measured --groups 50 --out plan

        narrowcast plan hybrid measured --groups 20 --sessions 200 --out plan
    """
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.channels.hybrid import hybrid as plan

    receiving, sending, extra = numbers("--weights", weights, 3)
    aside = Quarantine(strict=strict)
    wanted = read_flows(demand, interest, key, aside)
    with working("planning"):
        made = plan(
            wanted, groups, channelizer, unicast, weights=(receiving, sending, extra), cap=cap, seed=seed,
            sessions=sessions, beta=beta,
        )  # fmt: skip
    made = written(made, out, aside, overwrite=overwrite)
    drawn(made, picture)
    if json:
        print_json(as_json(made, aside, out, picture=picture))
        return
    wants = made.interest
    headline = (
        f"[bold]{plural(wants.n_flows, 'flow')}, {plural(wants.n_users, 'subscriber')}:[/] "
        f"{made.percent_of_perfect:.1f}% of perfect multicast, {made.unicast_share:.1%} of it by unicast"
    )
    show(headline, made.cost, dict(made.baselines), out)
