"""`narrowcast plan channels`: which flow goes into which session and group."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, table
from narrowcast.cli.plan.common import Out, Overwrite, Strict, write
from narrowcast.errors import InputError

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
    pin: Annotated[Path | None, typer.Option(help="A table (flow, group): flows whose group is fixed.")] = None,
    apart: Annotated[
        Path | None, typer.Option(help="A table (flow, other): flows that must not share a group, as for entitlements.")
    ] = None,
    previous: Annotated[Path | None, typer.Option(help="The folder of the plan that runs now: change little.")] = None,
    moves: Annotated[int | None, typer.Option(min=0, help="Flows that may move from the previous plan.")] = None,
    joins: Annotated[int | None, typer.Option(min=0, help="Joins there may be that the previous plan lacks.")] = None,
    master: Annotated[
        str | None,
        typer.Option(help="Plan on Spark, there: local[*] or spark://host:port. Very large tables go by themselves."),
    ] = None,
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

        narrowcast plan channels flows.parquet interest.parquet --previous plan --moves 200 --joins 500 --out next
    """
    from narrowcast.cli.plan.on_spark import channels_on_spark, too_large
    from narrowcast.evaluate import certify
    from narrowcast.model.intake import read_interest
    from narrowcast.model.plan import fingerprint, load
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans import channels as planner
    from narrowcast.plans.channels.result import as_plan, previous_of

    bound = any(value is not None for value in (joins_per_user, rate_per_group, pin, apart))
    if master is not None or too_large(interest):
        channels_on_spark(
            flows,
            interest,
            master=master,
            limited=bound or previous is not None or time_limit is not None,
            out=out,
            overwrite=overwrite,
            json=json,
            groups=groups,
            sessions=sessions,
            method=method.value,
            alpha=alpha,
            beta=beta,
            seed=seed,
            strict=strict,
        )
        return
    aside = Quarantine(strict=strict)
    wants = read_interest(flows, interest, aside)
    if previous is None and (moves is not None or joins is not None):
        raise InputError("--moves and --joins count from a plan that runs: name it with --previous", name="previous")
    pairs = () if apart is None else two_columns(apart, "apart", ("flow", "other"))
    pins = () if pin is None else two_columns(pin, "pin", ("flow", "group"))
    limits = planner.Limits(
        joins_per_user,
        rate_per_group,
        {flow_number(wants, flow, pin): group_number(group, pin) for flow, group in pins},
        [(flow_number(wants, one, apart), flow_number(wants, two, apart)) for one, two in pairs],
        moves,
        joins,
    )
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
            limits=limits if bound or previous is not None else None,
            previous=None if previous is None else previous_of(load(previous), wants),
        )
    plan = as_plan(result, limits=limits, inputs={"flows": fingerprint(flows), "interest": fingerprint(interest)})
    with notes.status("checking"):
        plan = certify(plan)
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


def two_columns(path: Path, name: str, columns: tuple[str, str]) -> list[tuple[str, str]]:
    """The rows of a table of two columns, as text."""
    from narrowcast.model.tables import read_table

    read = read_table(path, name=name, columns=columns)
    one, two = (["" if value is None else str(value) for value in read[column].to_pylist()] for column in columns)
    return list(zip(one, two, strict=True))


def flow_number(wants: Interest, flow: str, path: Path | None) -> int:
    names = wants.flow_names or ()
    if flow not in names:
        raise InputError(f"{path}: flow {flow!r} is not in the flows table", name="flow", got=flow)
    return names.index(flow)


def group_number(text: str, path: Path | None) -> int:
    if not text.isdecimal():
        raise InputError(f"{path}: group {text!r} is no whole number", name="group", got=text)
    return int(text)


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
