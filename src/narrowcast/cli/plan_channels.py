"""`narrowcast plan channels`: which flow goes into which session and group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli._output import AsJson, Seed, notes, print_json, text
from narrowcast.cli._planning import Out, Overwrite, Strict, refuse_unsound, show, write


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
    from narrowcast.evaluate.channels import channels_cost, channels_faults
    from narrowcast.model.intake import read_interest
    from narrowcast.model.plan import fingerprint
    from narrowcast.model.quarantine import Quarantine

    aside = Quarantine(strict=strict)
    wants = read_interest(flows, interest, aside)
    with notes.status("planning"):
        result = planner.plan(
            wants, groups, sessions, method.value, alpha=alpha, beta=beta, seed=seed, time_limit=time_limit
        )
    plan = as_plan(result, inputs={"flows": fingerprint(flows), "interest": fingerprint(interest)})
    with notes.status("checking"):
        recomputed = channels_cost(plan, wants)
        refuse_unsound(channels_faults(plan, wants) + _differs(plan.cost, recomputed))
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
    headline = (
        f"[bold]{wants.n_flows:,} flows, {wants.n_users:,} subscribers, {wants.n_pairs:,} wishes[/] "
        f"in {text(int(result.group_of_session.max(initial=-1)) + 1)} groups and "
        f"{text(result.group_of_session.size)} sessions: {plan.cost['relative']:.1%} of flooding's waste"
    )
    show(plan, headline, {"narrowcast": plan.cost["excess"]} | dict(plan.baselines), "narrowcast", out)


def _differs(said: Mapping[str, float], found: Mapping[str, float]) -> list[str]:
    return [
        f"its {name} is {found[name]}, the planner says {said[name]}"
        for name in found
        if name in said and abs(found[name] - said[name]) > 1e-9 * max(1.0, abs(found[name]))
    ]
