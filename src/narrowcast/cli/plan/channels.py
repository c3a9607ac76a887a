"""`narrowcast plan channels`: which flow goes into which session and group."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, table, working
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
    written,
)
from narrowcast.errors import InputError
from narrowcast.reports.text import plural

if TYPE_CHECKING:
    from narrowcast.model import Interest
    from narrowcast.plans.channels.limits import Limits
    from narrowcast.plans.channels.result import ChannelsPlan


class ChannelMethod(StrEnum):
    search = "search"
    sf = "sf"
    gf = "gf"
    it = "it"
    rra = "rra"
    random = "random"


def channels(
    demand: DemandFolder,
    interest: InterestTable = None,
    key: Key = None,
    groups: Annotated[int, typer.Option(min=1, help="The most multicast groups.")] = 50,
    sessions: Annotated[int, typer.Option(min=1, help="The most sessions.")] = 500,
    method: Annotated[
        ChannelMethod, typer.Option(help="search gives the best plans; the others are from papers.")
    ] = ChannelMethod.search,
    alpha: Annotated[float, typer.Option(min=0, help="Cost to a subscriber per message of its groups.")] = 1.0,
    beta: Annotated[float, typer.Option(min=0, help="Cost to a subscriber per message of its sessions.")] = 1.0,
    prices: Annotated[
        Path | None, typer.Option(help="Take alpha and beta from this file of `calibrate --system`.")
    ] = None,
    time_limit: Annotated[float | None, typer.Option(min=0.1, help="Stop searching after this many seconds.")] = None,
    joins_per_subscriber: Annotated[
        int | None, typer.Option(min=1, help="The most groups that a subscriber may join; Linux allows 20 per socket.")
    ] = None,
    rate_per_group: Annotated[float | None, typer.Option(min=0, help="The highest rate of a group.")] = None,
    pin: Annotated[Path | None, typer.Option(help="A table (flow, group) of flows with a fixed group.")] = None,
    apart: Annotated[
        Path | None, typer.Option(help="A table (flow, other) of flows that must not share a group.")
    ] = None,
    previous: Annotated[Path | None, typer.Option(help="The folder of the plan in force, to change little.")] = None,
    moves: Annotated[int | None, typer.Option(min=0, help="The most flows to move from the previous plan.")] = None,
    new_joins: Annotated[
        int | None, typer.Option(min=0, help="The most joins that the previous plan does not have.")
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(help="Plan on Spark: local[*] or spark://host:port. Default: for very large tables only."),
    ] = None,
    picture: Picture = None,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Map flows to sessions and sessions to multicast groups, so that subscribers filter the least.

    Every plan is checked by code that had no part in making it before it is written: whoever wants a
    flow is in its group.

    Examples:

        narrowcast plan channels measured --groups 50 --sessions 300 --out plan

        narrowcast plan channels flows.parquet interest.parquet --key symbol --out plan

        narrowcast plan channels measured --previous plan --moves 200 --new-joins 500 --out next
    """
    from narrowcast.cli.plan.on_spark import channels_on_spark, tables_of, too_large
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.channels.plan import plan
    from narrowcast.plans.channels.result import ChannelsPlan
    from narrowcast.plans.verbs import load

    if prices is not None:
        alpha, beta = _measured_prices(prices, alpha, beta)
    bound = any(value is not None for value in (joins_per_subscriber, rate_per_group, pin, apart))
    flows_at, interest_at = tables_of(demand, interest)
    if master is not None or too_large(interest_at):
        channels_on_spark(
            flows_at, interest_at, key=key, master=master, limited=bound or bool(previous) or time_limit is not None,
            out=out, overwrite=overwrite, json=json, groups=groups, sessions=sessions, method=method.value,
            alpha=alpha, beta=beta, seed=seed, strict=strict,
        )  # fmt: skip
        return
    aside = Quarantine(strict=strict)
    wanted = read_flows(demand, interest, key, aside)
    if previous is None and (moves is not None or new_joins is not None):
        raise InputError("--moves and --new-joins need --previous, the folder of the plan in force", name="previous")
    before = None if previous is None else load(previous)
    if before is not None and not isinstance(before, ChannelsPlan):
        raise InputError(f"--previous must be a channels plan, got a {before.kind} plan", name="previous")
    limits = _limits(wanted.interest, joins_per_subscriber, rate_per_group, pin, apart, moves, new_joins)
    with working("planning", time_limit) as best:
        made = plan(
            wanted, groups, sessions, method.value, alpha=alpha, beta=beta, seed=seed, time_limit=time_limit,
            limits=limits if bound or before is not None else None, previous=before,
            progress=(lambda told: best(told.best)) if method is ChannelMethod.search else None,
        )  # fmt: skip
    made = written(made, out, aside, overwrite=overwrite)
    drawn(made, picture)
    if json:
        print_json(as_json(made, aside, out, picture=picture))
        return
    _show(made)
    if out is not None:
        output.print(f"Written to {out}")


def _limits(
    interest: Interest,
    joins: int | None,
    rate: float | None,
    pin: Path | None,
    apart: Path | None,
    moves: int | None,
    new_joins: int | None,
) -> Limits:
    from narrowcast.plans.channels.limits import Limits

    pairs = () if apart is None else two_columns(apart, "apart", ("flow", "other"))
    pins = () if pin is None else two_columns(pin, "pin", ("flow", "group"))
    return Limits(
        joins,
        rate,
        {flow_number(interest, flow, pin): group_number(group, pin) for flow, group in pins},
        [(flow_number(interest, one, apart), flow_number(interest, two, apart)) for one, two in pairs],
        moves,
        new_joins,
    )


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
        raise InputError(f"{path}: group must be a whole number, got {text!r}", name="group", got=text)
    return int(text)


def _show(plan: ChannelsPlan) -> None:
    wants, used = plan.interest, sorted({l for l in plan.session_of_flow.tolist() if l >= 0})
    n_groups = len({int(plan.group_of_session[l]) for l in used})
    output.print(
        f"[bold]{plural(wants.n_flows, 'flow')}, {plural(wants.n_users, 'subscriber')}, "
        f"{plural(wants.n_pairs, 'wish', 'wishes')}[/] in {plural(n_groups, 'group')} and "
        f"{plural(len(used), 'session')}: {plan.cost.relative:.1%} of flooding's waste; no plan has less than "
        f"{(plan.lower_bound or 0) / (plan.cost.flooding or 1.0):.1%}"
    )
    if not plan.key:
        notes.print("note: nothing says which attributes make a flow; say so with --key to deliver this plan")
    output.print(ways_table(plan.cost.relative, {name: found.terms for name, found in plan.baselines.items()}))


def ways_table(waste: float, baselines: Any) -> Any:
    """The plan beside the other ways: what subscribers throw away (flooding is 100 %), and what the sender sends."""
    once = baselines["perfect multicast"]["sent"] or 1.0
    ways = {"[bold green]this plan[/]": (waste, once)}
    ways |= {name: (found["relative"], found["sent"]) for name, found in baselines.items()}
    rows = [
        (name, f"{share:.1%}", f"{sent / once:.1f}×", "█" * round(20 * share) or "▏")
        for name, (share, sent) in sorted(ways.items(), key=lambda way: way[1])
    ]
    columns = ("way", "waste", "sent", "")
    return table("Against the other ways", columns, rows, numbers=columns[1:3])


def _measured_prices(path: Path, alpha: float, beta: float) -> tuple[float, float]:
    from narrowcast.plans.channels.aggregation import read_prices

    if (alpha, beta) != (1.0, 1.0):
        raise InputError("give --prices or --alpha and --beta, not both", name="prices")
    return read_prices(path)
