"""`narrowcast plan hybrid`: which flows share multicast groups, and which go by unicast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.output import AsJson, Seed, notes, output, print_json
from narrowcast.cli.plan.common import Out, Overwrite, Strict, bars, write


def hybrid(
    flows: Annotated[Path, typer.Argument(help="The flows table: flow, rate.")],
    interest: Annotated[Path, typer.Argument(help="The interest table: flow, subscriber.")],
    groups: Annotated[int, typer.Option(min=1, help="How many multicast groups may be used.")] = 50,
    channelizer: Annotated[
        str, typer.Option(help="kmeans, random, two-phase, bmd, interior-point or flow-merge.")
    ] = "kmeans",
    unicast: Annotated[
        str,
        typer.Option(help="search (ours), none, greedy-flow, greedy-user, greedy-pair, reverse, lightest-flow, …"),
    ] = "search",
    weights: Annotated[
        tuple[float, float, float], typer.Option(help="Price of receiving, of sending, and of unicast beside both.")
    ] = (1.0, 1.0, 1.0),
    cap: Annotated[float | None, typer.Option(min=0, max=1, help="The largest share of the cost by unicast.")] = None,
    sessions: Annotated[
        int | None,
        typer.Option(min=1, help="Cut groups into sessions, which receivers tell apart; search, no cap."),
    ] = None,
    beta: Annotated[
        float, typer.Option(min=0, help="Receiver's cost per message of a session it must look at; with --sessions.")
    ] = 1.0,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Put flows into multicast groups or send them by unicast, whichever is cheaper in one cost.

    Perfect multicast, one group per audience, is 100 %. Every plan is checked by code that had no part
    in making it before it is written.

    Examples:

        narrowcast plan hybrid flows.parquet interest.parquet --groups 50 --out plan

        narrowcast plan hybrid flows.parquet interest.parquet --groups 20 --sessions 200 --out plan
    """
    from narrowcast.evaluate import certify
    from narrowcast.model.intake import read_interest
    from narrowcast.model.plan import fingerprint
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans import channels as planner
    from narrowcast.plans.channels.result import hybrid_as_plan

    aside = Quarantine(strict=strict)
    wants = read_interest(flows, interest, aside)
    with notes.status("planning"):
        result = planner.hybrid(
            wants, groups, channelizer, unicast, weights=weights, cap=cap, seed=seed, sessions=sessions, beta=beta
        )
    inputs = {"flows": fingerprint(flows), "interest": fingerprint(interest)}
    plan = hybrid_as_plan(result, seed=seed, cap=cap, inputs=inputs)
    with notes.status("checking"):
        plan = certify(plan)
    write(plan, out, aside, overwrite=overwrite)
    if json:
        print_json({"cost": plan.cost, "baselines": plan.baselines, "set_aside": len(aside.rows), "out": out})
        return
    output.print(
        f"[bold]{wants.n_flows:,} flows, {wants.n_users:,} subscribers:[/] {result.percent_of_perfect:.1f} % of "
        f"perfect multicast, {result.unicast_share:.1%} of it by unicast"
    )
    output.print(bars("Against the other ways", {"this plan": result.cost} | dict(plan.baselines), "this plan"))
    if out is not None:
        output.print(f"Written to {out}")
