"""`narrowcast plan channels`: which flow goes into which session and group."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli._output import AsJson, Seed, notes, output, print_json, table
from narrowcast.cli._planning import Out, Overwrite, Strict, refuse_unsound, write

if TYPE_CHECKING:
    from narrowcast.model import Interest
    from narrowcast.model.plan import Plan


class Method(StrEnum):
    search = "search"
    sf = "sf"
    gf = "gf"
    it = "it"
    rra = "rra"
    random = "random"


def channels(
    flows: Annotated[Path, typer.Argument(help="The flows table: flow, rate.")],
    interest: Annotated[Path, typer.Argument(help="The interest table: flow, subscriber.")],
    groups: Annotated[int, typer.Option(min=1, help="How many multicast groups may be used.")] = 50,
    sessions: Annotated[int, typer.Option(min=1, help="How many sessions may be used.")] = 500,
    method: Annotated[Method, typer.Option(help="search is ours and the best; the rest are the published ones.")] = (
        Method.search
    ),
    alpha: Annotated[float, typer.Option(min=0, help="Receiver's cost per message of a group it must look at.")] = 1.0,
    beta: Annotated[float, typer.Option(min=0, help="Receiver's cost per message of a session it must look at.")] = 1.0,
    time_limit: Annotated[float | None, typer.Option(min=0.1, help="Stop searching after so many seconds.")] = None,
    joins_per_user: Annotated[
        int | None, typer.Option(min=1, help="Groups a receiver may join; Linux allows 20 per socket.")
    ] = None,
    rate_per_group: Annotated[float | None, typer.Option(min=0, help="The most a group may carry.")] = None,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Map flows to sessions and sessions to multicast groups, so that receivers filter the least.

    Every plan is checked by code that had no part in making it before it is written: whoever wants a
    flow is in its group.

    Examples:

        narrowcast plan channels flows.parquet interest.parquet --groups 50 --sessions 300 --out plan
    """
    from narrowcast import channels as planner
    from narrowcast.channels.folder import as_plan
    from narrowcast.evaluate.channels import channels_cost, channels_faults, differences
    from narrowcast.model.intake import read_interest
    from narrowcast.model.plan import fingerprint
    from narrowcast.model.quarantine import Quarantine

    aside = Quarantine(strict=strict)
    wants = read_interest(flows, interest, aside)
    bound = joins_per_user is not None or rate_per_group is not None
    limits = planner.Limits(joins_per_user=joins_per_user, rate_per_group=rate_per_group) if bound else None
    with notes.status("planning"):
        result = planner.plan(
            wants,
            groups,
            sessions,
            method.value,
            alpha=alpha,
            beta=beta,
            seed=seed,
            time_limit=time_limit,
            limits=limits,
        )
    plan = as_plan(result, inputs={"flows": fingerprint(flows), "interest": fingerprint(interest)})
    with notes.status("checking"):
        recomputed = channels_cost(plan, wants)
        refuse_unsound(channels_faults(plan, wants) + differences(plan.cost, recomputed))
    plan = replace(plan, checks={"sound": True, "cost": recomputed})
    write(plan, out, aside, overwrite=overwrite)
    if json:
        print_json(
            {
                "cost": plan.cost,
                "baselines": plan.baselines,
                "lower_bound": plan.lower_bound,
                "gap": plan.gap,
                "set_aside": len(aside.rows),
                "out": out,
            }
        )
        return
    _show(plan, wants)
    if out is not None:
        output.print(f"Written to {out}")


def _show(plan: Plan, wants: Interest) -> None:
    n_groups, n_sessions = (
        len(set(plan.tables["session_group"]["group"].to_pylist())),
        len(plan.tables["session_group"]),
    )
    output.print(
        f"[bold]{wants.n_flows:,} flows, {wants.n_users:,} subscribers, {wants.n_pairs:,} wishes[/] in {n_groups} "
        f"groups and {n_sessions} sessions: {plan.cost['relative']:.1%} of flooding's waste; no plan has less than "
        f"{(plan.lower_bound or 0) / plan.cost['flooding']:.1%}"
    )
    output.print(ways_table(plan))


def ways_table(plan: Plan) -> Any:
    """The plan beside the other ways: what receivers throw away (flooding is 100 %), and what the sender sends."""
    once = plan.baselines["perfect multicast"]["sent"] or 1.0
    ways = {"[bold green]this plan[/]": (plan.cost["relative"], once)}
    ways |= {name: (found["relative"], found["sent"]) for name, found in plan.baselines.items()}
    rows = [
        (name, f"{waste:.1%}", f"{sent / once:.1f}×", "█" * round(20 * waste) or "▏")
        for name, (waste, sent) in sorted(ways.items(), key=lambda way: way[1])
    ]
    columns = ("way", "waste", "sent", "")
    return table("Against the other ways", columns, rows, numbers=columns[1:3])
