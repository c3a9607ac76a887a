"""What can be done with a plan of any kind: the same words as methods of a plan and as commands."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from narrowcast.errors import InputError, NarrowcastError, UnsupportedError
from narrowcast.evaluate.explanation import Explanation
from narrowcast.evaluate.migration import Migration, migrate
from narrowcast.evaluate.verdict import Verdict, certified, verdict
from narrowcast.model.demand import Demand
from narrowcast.model.folder import read_tables, write_tables
from narrowcast.model.plan import Plan, Tables
from narrowcast.plans.kinds import KINDS, kind_of

if TYPE_CHECKING:
    from narrowcast.evaluate.whatif import Sweep
    from narrowcast.model.interest import Interest
    from narrowcast.reports.parts import Report
    from narrowcast.reports.whatif import Whatif

P = TypeVar("P", bound=Plan)


def plan(demand: Demand | Interest | str | Path | Any, kind: str = "channels", **options: Any) -> Plan:
    """Plan for a demand: which way each message goes.

    Parameters
    ----------
    demand : what `measure` gave, a folder that it wrote, an Interest, or the demand of another kind
    kind : channels, hybrid (channels that may use unicast), filters, queries, semantic or network; with
        `network=FOLDER` it is network
    options : as the planner of the kind takes them; `groups=`, `sessions=`, `method=`, `time_limit=`, `seed=` …

    Returns
    -------
    Plan : of the kind's own class; `save`, `check`, `explain`, `diff`, `whatif`, `report`, `export`, `deliver`

    Raises
    ------
    InputError : an unknown kind, or an option that the planner does not have
    InfeasibleError : no plan keeps the budgets

    >>> import narrowcast as nc
    >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0])
    >>> nc.plan(interest, groups=2, sessions=2).cost.excess
    0.0
    """
    kind = "network" if kind == "channels" and options.get("network") is not None else kind
    planner = kind_of(kind).plan
    read = getattr(planner, "demand_in", demand_in)  # a kind may read more, or other, tables of the folder
    given = read(demand) if isinstance(demand, str | Path) else demand
    make = _hybrid() if kind == "hybrid" else planner.make
    allowed = list(inspect.signature(make).parameters)[1:]
    for name in options:
        if name not in allowed:
            known = ", ".join(allowed)
            raise InputError(f"{kind} plans have no option {name!r}; they have {known}", name=name, got=name)
    return make(given, **options)


def _hybrid() -> Callable[..., Plan]:
    """Channels that may use unicast have a planner of their own."""
    from narrowcast.plans.channels.hybrid import hybrid

    return hybrid


def demand_in(folder: str | Path) -> Demand:
    """The demand in a folder that `measure` or `generate` wrote: its tables flows and interest."""
    from narrowcast.model.intake import read_measured
    from narrowcast.model.quarantine import Quarantine

    return read_measured(folder, Quarantine())


def load(folder: str | Path) -> Plan:
    """Read a plan from its folder, as the class of its kind.

    Parameters
    ----------
    folder : what `save`, or `narrowcast plan … --out`, wrote

    Returns
    -------
    Plan : as it was saved; `check` judges it again

    Raises
    ------
    InputError : the folder is damaged, incomplete, or from a newer narrowcast

    >>> import narrowcast as nc
    >>> nc.load("no such folder")
    Traceback (most recent call last):
    narrowcast.errors.InputError: no such folder: no plan here (no plan.json in it)
    """
    return decoded(read_tables(folder), str(folder))


def decoded(tables: Tables, name: str = "this plan") -> Plan:
    """The typed plan of some tables; whatever is wrong with them is one InputError."""
    import numpy as np

    kind = kind_of(tables.kind)
    tables.require(kind.judge.COLUMNS, optional=kind.judge.OPTIONAL)
    try:
        with np.errstate(all="ignore"):  # numbers that cannot be: the judge names them
            return kind.result.from_tables(tables)
    except NarrowcastError as error:
        raise InputError(f"{name}: the plan cannot be used: {error}", name="plan", got=name) from None
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{name}: the plan cannot be read: {reason}", name="plan", got=name, hint="narrowcast check says more"
        ) from None


def save(plan: P, folder: str | Path, *, overwrite: bool = False) -> P:
    """Judge a plan and write it, whole or not at all; the plan as it was written.

    Parameters
    ----------
    plan : of any kind
    folder : the folder to write
    overwrite : replace a plan that is there

    Returns
    -------
    Plan : the same, with what was checked

    Raises
    ------
    PlanError : the plan is unsound, and nothing was written
    InputError : the folder is already there, or cannot be written

    >>> import narrowcast as nc, tempfile
    >>> plan = nc.plan(nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0]), groups=2, sessions=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nc.save(plan, f"{folder}/plan").cost == nc.load(f"{folder}/plan").cost
    True
    """
    plan = judged(plan)
    write_tables(plan.to_tables(), folder, overwrite=overwrite)
    return plan


def judged(plan: P) -> P:
    """The plan with the verdict on it in `checks`; PlanError for an unsound one."""
    tables = certify(plan.to_tables())
    return replace(plan, checks=tables.checks, written=tables)


def judge(plan: Plan | Tables) -> Verdict:
    """Whether a plan is sound, and what it costs, from its tables and parameters alone.

    Nobody is left out, nothing is sent without need, budgets and limits are kept, every cost term and
    baseline is what the definitions make it, the bound is a bound, and what was sealed is unchanged.
    Never raises for a damaged plan: what cannot be read is a fault too. O(cells · log cells).

    >>> import narrowcast as nc
    >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0])
    >>> found = judge(nc.channels.plan(interest, groups=2, sessions=2, method="gf"))
    >>> found.sound, found.cost["useful"]
    (True, 12.0)
    """
    tables = plan.to_tables() if isinstance(plan, Plan) else plan
    try:
        kind = kind_of(tables.kind)
    except InputError as error:
        return Verdict((str(error),), {}, ())
    import numpy as np

    with np.errstate(all="ignore"):
        return verdict(tables, kind.judge)


@contextmanager
def sound_or_refused(*plans: Plan | Tables) -> Iterator[None]:
    """What goes wrong in the block because a plan is damaged becomes one InputError that names the fault.

    Verbs take a sound plan for granted, and most that are not are seen when they are read. With a sound plan every
    error stays what it is.
    """
    try:
        yield
    except NarrowcastError:
        raise
    except Exception as error:
        for plan in plans:
            if faults := judge(plan).faults:
                raise InputError(
                    f"the plan is damaged: {faults[0]}", name="plan", hint="narrowcast check lists all faults"
                ) from error
        raise


def certify(plan: Tables) -> Tables:
    """The tables with the verdict and its seal in `checks`; PlanError for unsound ones, which are not to be written."""
    return certified(plan, judge(plan))


def check(plan: Plan | str | Path, messages: Any = None, subscriptions: Any = None) -> Verdict:
    """Whether a plan is sound and costs what it says, judged by code that had no part in making it.

    Parameters
    ----------
    plan : a plan, or its folder
    messages : an Arrow table or a path; each is sent through the plan, and nobody who wants it may miss it
    subscriptions : who wants what: an Arrow table or a path with the columns subscriber and profile; of filters and
        semantic plans also node

    Returns
    -------
    Verdict : `sound`, `faults`, `cost` recomputed, and what was `checked`

    Raises
    ------
    InputError : the folder is damaged, or only one of `messages` and `subscriptions` is given

    >>> import narrowcast as nc
    >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0])
    >>> nc.check(nc.plan(interest, groups=2, sessions=2)).sound
    True
    """
    return check_tables(plan.to_tables() if isinstance(plan, Plan) else read_tables(plan), messages, subscriptions)


def check_tables(tables: Tables, messages: Any = None, subscriptions: Any = None, *, sample: int = 100_000) -> Verdict:
    """The same for a plan as its folder holds it; of more messages than `sample` some are drawn."""
    found = judge(tables)
    if messages is None and subscriptions is None:
        return found
    if messages is None or subscriptions is None:
        raise InputError("messages and subscriptions must be given together", name="messages")
    from narrowcast.model.tables import as_table

    stage = kind_of(tables.kind).judge
    sent: Any = getattr(stage, "message_faults", None)
    if sent is None:
        raise UnsupportedError(f"check with messages does not support {tables.kind} plans yet", works=("channels",))
    at_nodes = "nodes" in inspect.signature(sent).parameters
    columns = ("subscriber", "profile", "node") if at_nodes else ("subscriber", "profile")
    wishes = as_table(subscriptions, name="subscriptions", columns=columns)
    pairs = list(zip(map(str, wishes["subscriber"].to_pylist()), wishes["profile"].to_pylist(), strict=True))
    where = {"nodes": [str(node) for node in wishes["node"].to_pylist()]} if at_nodes else {}
    missed, looked_at = sent(tables, as_table(messages, name="messages", columns=()), pairs, sample=sample, **where)
    told = f"{looked_at:,} wanted messages reach their subscribers"
    return Verdict((*found.faults, *missed), found.cost, (*found.checked, told))


def explain(plan: Plan | Tables, **what: str | int) -> Explanation:
    """Where something goes, who receives it unwanted, what the next best choice was and what it would cost.

    Every choice is the cost of the whole plan recomputed from its definition with that one thing changed.

    Parameters
    ----------
    plan : a plan, or the tables of its folder
    what : one thing by name: flow, subscriber, session, group, channel, node, query or site, as the kind has them

    Returns
    -------
    Explanation : `headline`, `facts`, who gets it `unwanted`, and the other `choices`, the `next_best` among them

    Raises
    ------
    InputError : more than one thing is named, or none, or the plan does not have it
    UnsupportedError : this kind of plan has no such thing

    >>> import narrowcast as nc
    >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0], flow_names=["IBM", "MSFT"])
    >>> found = nc.channels.plan(interest, groups=1, sessions=2, method="gf").explain(flow="MSFT")
    >>> found.headline
    'MSFT goes in session 1 of group 0: 1 subscriber of the 2 in the group want it'
    >>> found.next_best.what, found.next_best.change
    ('in session 0 of group 0', 2.0)
    """
    tables = plan.to_tables() if isinstance(plan, Plan) else plan
    kind = kind_of(tables.kind)
    with sound_or_refused(tables):
        known = kind.explain.explained(tables)
    if len(what) != 1:
        raise InputError(f"explain takes one of {', '.join(known)}, got {', '.join(what) or 'none'}", name="explain")
    ((name, value),) = what.items()
    if name not in known:
        raise UnsupportedError(f"a {kind.name} plan has no {name} to explain", works=tuple(known))
    with sound_or_refused(tables):
        return known[name](tables, value)


def diff(
    old: Plan | Tables,
    new: Plan | Tables,
    *,
    join_rate: float | None = None,
    subscriber_join_rate: float | None = None,
    drain_s: float = 1.0,
    renumber: bool = True,
) -> Migration:
    """What changes between two plans of one kind, and the steps from one to the other that leave nobody out.

    Parameters
    ----------
    old, new : the plan in force, and the one to move to
    join_rate : the most joins and leaves a second of all subscribers together, which is what switches bear
    subscriber_join_rate : the most of each subscriber
    drain_s : how long anything sent the old way may still be under way, in seconds
    renumber : make the new plan's numbers of groups, sessions and sets agree with the old one's first

    Returns
    -------
    Migration : the `steps` (add, move, drain, remove), what `moves`, and the `cost` of both

    Raises
    ------
    UnsupportedError : the plans are of two kinds
    PlanError : one of them is unsound

    Whoever wants something under both plans has it at every step; who wants it only under the new one has it
    from the move on. O(wishes · log) and an assignment of the groups.

    >>> import narrowcast as nc
    >>> interest = nc.Interest.from_pairs([0, 0, 1, 2], [0, 1, 1, 2], [5.0, 2.0, 1.0])
    >>> one, two = (nc.channels.plan(interest, groups=g, sessions=3, method="gf") for g in (1, 3))
    >>> [(step.kind, len(step.do), len(step.moves), len(step.undo)) for step in one.diff(two, join_rate=2).steps]
    [('add', 2, 0, 0), ('move', 0, 2, 0), ('drain', 0, 0, 0), ('remove', 0, 0, 1)]
    """
    before, after = (plan.to_tables() if isinstance(plan, Plan) else plan for plan in (old, new))
    kinds = [kind_of(plan.kind) for plan in (before, after)]
    if kinds[0] is not kinds[1]:
        raise UnsupportedError(
            f"diff needs two plans of the same kind, got {before.kind} and {after.kind}", works=(before.kind,)
        )
    stage = kinds[0].migrate
    with sound_or_refused(before, after):
        after = stage.renumbered(after, before) if renumber else after
        return migrate(
            before, after, stage.ways, join_rate=join_rate, subscriber_join_rate=subscriber_join_rate, drain_s=drain_s
        )


def whatif(
    plan: Plan,
    *,
    time_limit: float | None = 10.0,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
    **settings: Sequence[float],
) -> Sweep:
    """Plan again over a grid of one or two budgets or prices; the plan's own values are put among them.

    Parameters
    ----------
    settings : names and values, such as `groups=[10, 20, 50]`; which there are depends on the kind of plan
    time_limit : seconds for each point; a search returns its best by then, other planning is given up
    workers : processes; with one, everything runs in this process

    Returns
    -------
    Sweep : a point for each setting, and the knee, where more of a budget stops paying

    Raises
    ------
    InputError : a setting that this kind of plan does not have, or none, or more than two

    >>> import narrowcast as nc
    >>> interest = nc.workloads.market(symbols=200, users=20, seed=1)
    >>> found = nc.channels.plan(interest, groups=4, sessions=20, method="gf").whatif(groups=[1, 2, 8, 16], workers=1)
    >>> [int(point.settings["groups"]) for point in found.points], found.present["groups"]
    ([1, 2, 4, 8, 16], 4.0)
    """
    from narrowcast.evaluate.whatif import sweep

    return sweep(plan, _family, settings, time_limit=time_limit, workers=workers, progress=progress)


def _family(plan: Plan) -> Any:
    with sound_or_refused(plan):
        return kind_of(plan.kind).whatif.family(plan)


def report_page(
    plan: Plan, whatif: Whatif | None = None, timeline: Sequence[Mapping[str, Any]] = (), **units: float
) -> str:
    """The whole page of a plan; with the what-if figure if there is something to ask, and how adapting went."""
    from narrowcast.reports.page import page

    return page(full_report(plan, whatif, timeline, **units))


def full_report(
    plan: Plan,
    whatif: Whatif | None = None,
    timeline: Sequence[Mapping[str, Any]] = (),
    *,
    message_bytes: float | None = None,
    filter_us: float | None = None,
) -> Report:
    """All that a page shows of a plan: what its kind has to show, the verdict on it, and how adapting went."""
    from narrowcast.reports.amounts import FILTER_US, MESSAGE_BYTES, amounts_section
    from narrowcast.reports.made import with_verdict
    from narrowcast.reports.timeline import timeline_section

    stage = kind_of(plan.kind).report
    with sound_or_refused(plan):
        found = with_verdict(stage.report(plan, whatif), plan.to_tables(), judge(plan).faults)
        rates = stage.amounts(plan) if hasattr(stage, "amounts") else None
    if rates is not None:
        paid = amounts_section(rates, message_bytes or MESSAGE_BYTES, filter_us or FILTER_US)
        found = replace(found, sections=(found.sections[0], paid, *found.sections[1:]))
    elif message_bytes is not None or filter_us is not None:
        raise UnsupportedError(
            f"message_bytes and filter_us do not apply to {plan.kind} plans: they hold no rates", works=("channels",)
        )
    if timeline:
        first, *others = found.sections
        found = replace(found, sections=(first, timeline_section(timeline), *others))
    return found


def quick_whatif(plan: Plan) -> Whatif | None:
    """What other sizes of the plan's main budget would cost, by fast planners, for a report that was given none."""
    kind = kind_of(plan.kind)
    with sound_or_refused(plan):
        return kind.whatif.quick(plan) if kind.has("whatif") else None


def report(
    plan: Plan,
    out: str | Path,
    *,
    whatif: Whatif | None = None,
    timeline: Sequence[Mapping[str, Any]] = (),
    **units: float,
) -> Path:
    """Write a plan as one HTML page that works offline: what it does, against what, for whom, and why to trust it.

    Parameters
    ----------
    out : the file to write, whole or not at all
    whatif : what to show of other budgets (`quick_whatif(plan)` for a fast estimate)
    timeline : the rows of an adapting process
    units : `message_bytes=` and `filter_us=`, for rates in Mbit/s and cores (channels)

    Returns
    -------
    Path : the file

    Raises
    ------
    InputError : the file cannot be written, or the plan's tables are damaged

    >>> import narrowcast as nc, tempfile
    >>> plan = nc.plan(nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0]), groups=2, sessions=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "Checked" in nc.report(plan, f"{folder}/report.html").read_text()
    True
    """
    text, place = report_page(plan, whatif, timeline, **units), Path(out)
    half = place.with_name(f".{place.name}.half-{os.getpid()}")
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(place)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise InputError(f"{place}: cannot be written: {error.strerror}", name="out", got=str(place)) from None
    return place


def picture(plan: Plan, out: str | Path) -> Path:
    """Draw a plan to a .png or .svg file: the picture that its report shows.

    Parameters
    ----------
    out : the file to write; PNG needs the extra `plots`

    Returns
    -------
    Path : the file

    Raises
    ------
    InputError : the name ends otherwise, or the file cannot be written
    UnsupportedError : the kind has no picture, or PNG without the extra

    >>> import narrowcast as nc, tempfile
    >>> plan = nc.plan(nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0]), groups=2, sessions=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nc.picture(plan, f"{folder}/plan.svg").suffix
    '.svg'
    """
    from narrowcast.reports.picture import save_picture

    stage = kind_of(plan.kind).report
    if not hasattr(stage, "picture"):
        raise UnsupportedError(f"picture does not support {plan.kind} plans yet", works=("report",))
    with sound_or_refused(plan):
        drawn = stage.picture(plan)
    return save_picture(drawn, out)


__all__ = [
    "KINDS", "certify", "check", "check_tables", "decoded", "demand_in", "diff", "explain", "full_report", "judge",
    "judged", "load", "picture", "plan", "quick_whatif", "report", "report_page", "save", "sound_or_refused", "whatif",
]  # fmt: skip
