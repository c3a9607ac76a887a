"""What takes seconds or a planner: done in a process of its own, from folders and plain values to pieces of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.adapt.statistics import demand_of
from narrowcast.deliver.processes.planner import base_of, checked, with_key
from narrowcast.deliver.wire import Malformed, decode_payloads
from narrowcast.errors import InputError, NarrowcastError, UnsupportedError
from narrowcast.evaluate.migration import Migration
from narrowcast.model import Interest
from narrowcast.model import snapshot as snapshots
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Plan
from narrowcast.plans.kinds import kind_of
from narrowcast.plans.verbs import certify, diff, explain, full_report, whatif
from narrowcast.profiles.flow_key import flow_name
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.possible import candidates, possible
from narrowcast.profiles.predicate import predicate
from narrowcast.reports.page import section_markup, tile_markup
from narrowcast.reports.parts import Section, facts, folded, table
from narrowcast.reports.text import e, number, percent, plural, term_words
from narrowcast.reports.whatif import parse_whatif, whatif_section, words_of

TIME_LIMIT_S = 1.5  # for each setting that is tried
ROWS, MOST_MATCHED = 12, 2000
MOVED = {"channels": ("flow",), "network": ("flow",), "queries": ("query", "queries"), "": ("part", "parts")}


@dataclass(frozen=True)
class Lately:
    """What flows now: payloads of the newest messages over so many seconds, and who wants what from where.

    `snapshots` is where `narrowcast adapt` leaves its statistics, which know more, if it does.
    """

    payloads: Sequence[bytes]
    seconds: float
    profiles: Mapping[str, str]
    nodes: Mapping[str, str]
    key: tuple[str, ...]
    snapshots: str | None = None


@lru_cache(maxsize=4)
def _read(folder: str, fingerprint: str, key: tuple[str, ...]) -> Plan:
    return with_key(checked(folder), key)


def plan_in(folder: str, key: tuple[str, ...] = ()) -> Plan:
    """The plan of a folder, judged, and read only once."""
    return _read(folder, base_of(folder), key)


def demand_lately(plan: Plan, lately: Lately) -> tuple[Demand | None, str]:
    """The demand of now and where it is from; None where nothing flows or flows have no key."""
    if lately.snapshots and (found := snapshots.latest(lately.snapshots)) is not None:
        told = f"the statistics of {found.messages:,} messages"
        return demand_of(found, profiles=lately.profiles, nodes=lately.nodes), told
    rows = [row for row in decode_payloads(list(lately.payloads)) if not isinstance(row, Malformed)]
    if not rows or not lately.profiles:
        return None, "the plan's own statistics: nothing was published lately"
    key = plan.key or lately.key
    users = sorted(lately.profiles)
    names, rates, pairs = _by_flow(plan, rows, key, lately, users) if key else _by_audience(rows, lately, users)
    at = np.array(pairs, np.int64).reshape(-1, 2)
    interest = Interest.from_pairs(
        at[:, 0], at[:, 1], np.array(rates) / lately.seconds, flow_names=names, user_names=users
    )
    told = f"the last {plural(len(rows), 'message')} in the log"
    return Demand(interest, key, profiles=lately.profiles, nodes=lately.nodes), told


Counted = tuple[list[str], list[float], list[tuple[int, int]]]  # flows, messages of each, and who may want it


def _by_flow(plan: Plan, rows: list[Any], key: tuple[str, ...], lately: Lately, users: list[str]) -> Counted:
    """What did not flow lately and is in the plan keeps its place, at no rate."""
    counted = Counter(flow_name(row, key) for row in rows)
    planned = getattr(getattr(plan, "interest", None), "flow_names", None) or ()
    names, pairs = sorted({*counted, *planned}), list[tuple[int, int]]()
    for user, who in enumerate(users):
        wish = parsed(lately.profiles[who]).expression
        named = candidates(wish, key)
        wanted = [k for k, name in enumerate(names) if named is None or name in named]
        pairs += [(k, user) for k in wanted if possible(wish, names[k], key)]
    return names, [float(counted[name]) for name in names], pairs


def _by_audience(rows: list[Any], lately: Lately, users: list[str]) -> Counted:
    """A flow for each set of subscribers that wants the same messages; of many messages the newest are taken."""
    tests = [predicate(parsed(lately.profiles[who])) for who in users]
    some = rows[-MOST_MATCHED:]
    counted = Counter(tuple(user for user, wants in enumerate(tests) if wants(row)) for row in some)
    counted.pop((), None)
    sets, scale = sorted(counted), len(rows) / len(some)
    pairs = [(k, user) for k, users_of in enumerate(sets) for user in users_of]
    return [f"audience {k}" for k in range(len(sets))], [counted[each] * scale for each in sets], pairs


def under_present(plan: Plan, lately: Lately) -> tuple[Any, str]:
    """The plan's decisions under the demand of now, and what that demand is."""
    demand, told = demand_lately(plan, lately)
    stage = kind_of(plan.kind).replan
    if demand is None:
        demand = plan.demand if isinstance(plan.demand, Demand) else None
    if demand is None:
        raise InputError("no message was published lately, and the plan holds no demand to plan from", name="demand")
    return stage.continued(plan, demand), told


def asked_more(folder: str, more: int, lately: Lately) -> dict[str, Any]:
    """The what-if section for up to `more` of the plan's main budget, groups for example, under the demand of now."""
    plan = plan_in(folder, lately.key)
    try:
        going_on, told = under_present(plan, lately)
        plan = going_on.plan()
    except (UnsupportedError, InputError):
        told = "the plan's own statistics"
    family = kind_of(plan.kind).whatif.family(plan)
    if not family.budgets:
        prices = ", ".join(family.prices)
        raise UnsupportedError(
            f"this {plan.kind} plan has no budget to raise; narrowcast whatif can change its {prices}"
        )
    name = family.budgets[0]
    here = int(family.setting(name) or 1)
    values = sorted({max(1, here - more), here, here + max(1, more // 2), here + more, here + 2 * more})
    found = whatif(plan, time_limit=TIME_LIMIT_S, workers=1, **{name: values})  # type: ignore[arg-type]
    if not found.done:
        raise InputError(f"no {name} among {values} has a plan: {found.points[0].failed}", name=name)
    outcome = family.present()
    asked = parse_whatif(found.as_dict(), how=f"Planned again for each, from {told}.")
    section, data = whatif_section(
        asked, cost=outcome.cost, measure=family.yardstick, unit=family.measure, relative_cost=outcome.relative
    )
    at = next((p for p in found.done if p.settings[name] == here + more), found.done[-1])
    word = words_of(name)
    less = 1 - at.cost / outcome.cost if outcome.cost else 0.0
    says = f"With {more:,} more {word} ({here:,} → {here + more:,}): {family.measure} {number(at.cost)}, " + (
        f"{percent(less)} less than now." if less > 5e-4 else "no less than now."
    )
    return {"says": says, "html": section.body, "lead": section.lead, "data": data, "budget": name}


def proposed(folder: str, budget: int | None, lately: Lately, out: str) -> dict[str, Any]:
    """A plan for the demand of now, from nothing, with the plan's own budget or another; written to `out`, judged."""
    plan = plan_in(folder, lately.key)
    now, told = under_present(plan, lately)
    if budget is not None:
        name = (*kind_of(plan.kind).whatif.family(plan).budgets, "groups")[0]
        if not hasattr(getattr(now, "settings", None), name):
            raise UnsupportedError(f"proposing another number of {name} does not support {plan.kind} plans yet")
        now = replace(now, settings=replace(now.settings, **{name: budget}))
    found = now.anew()
    return _told_of(folder, found.plan(), out, f"Made anew from {told}", lately.key, (now.cost, found.cost))


def offered(folder: str, other: str, out: str, key: tuple[str, ...]) -> dict[str, Any]:
    """A plan somebody made, as a proposal: copied to `out`, judged."""
    return _told_of(folder, plan_in(other, key), out, f"The plan in {other}", key, None)


def _told_of(
    folder: str, plan: Plan, out: str, how: str, key: tuple[str, ...], costs: tuple[float, float] | None
) -> dict[str, Any]:
    from narrowcast.model.folder import write_tables

    tables = certify(plan.to_tables())  # an unsound plan is never proposed
    migration = diff(plan_in(folder, key), tables)
    write_tables(certify(migration.new), Path(out), overwrite=True)
    change = ""
    if migration.steps and costs is not None and costs[0]:
        change = f", at {percent(costs[1] / costs[0])} of its cost under this demand"
    return {"how": how, "says": f"{_changes(migration)}{change}.", "html": _review(migration), "folder": out,
            "moves": bool(migration.steps)}  # fmt: skip


def _changes(found: Migration) -> str:
    joins, leaves = found.counts()
    if not found.steps:
        return "Nothing would change"
    if found.before.filters or found.after.filters:
        old, new = (", ".join(sorted(ways.filters)) or "nowhere" for ways in (found.before, found.after))
        return f"Filters would go from {old} to {new}"
    moved = plural(len(found.moves), *MOVED.get(found.new.kind, MOVED[""]))
    return (
        f"{moved} would go another way, with {plural(sum(joins.values()), 'join')} and "
        f"{plural(sum(leaves.values()), 'leave')} at {plural(len(joins | leaves), 'subscriber')}"
    )


def _review(found: Migration) -> str:
    """What a person looks at before installing: costs, what moves, who joins and leaves."""
    joins, leaves = found.counts()
    costs = [(term_words(name), *("–" if v is None else number(v) for v in pair)) for name, pair in found.cost.items()]
    parts = [
        "<p>Costs, each plan under its own demand:</p>",
        table(("term", "now", "then"), costs, numbers=("now", "then"), stack=True),
    ]
    if found.moves:
        moves = [(m.content.split(" [")[0], number(m.weight), m.before or "nowhere", m.after or "nowhere")
                 for m in found.moves[:ROWS]]  # fmt: skip
        title = f"What moves ({len(moves):,} of {len(found.moves):,})"
        parts.append(
            f"<h3>{e(title)}</h3>" + table(("what", "rate", "from", "to"), moves, numbers=("rate",), stack=True)
        )
    if who := sorted(joins | leaves, key=lambda who: (-joins[who] - leaves[who], who)):
        rows = [(name, joins[name], leaves[name]) for name in who[:ROWS]]
        parts.append(folded(f"Who joins and leaves ({len(rows):,} of {len(who):,})",
                            table(("subscriber", "joins", "leaves"), rows, numbers=("joins", "leaves"))))  # fmt: skip
    return "".join(parts)


def explanation_markup(folder: str, what: str, name: str, key: tuple[str, ...], behind: str | None = None) -> str:
    """Why the plan does this with something, as a piece of a page; what it does not know is one sentence.

    Of a subscriber that the plan does not know by name, its query, or what is done at the broker that it is `behind`.
    """
    plan = plan_in(folder, key)
    try:
        found = explain(plan, **{what: int(name) if what in ("group", "session", "channel") else name})
    except (NarrowcastError, ValueError) as error:
        if what == "subscriber" and plan.kind == "queries":
            return explanation_markup(folder, "query", name, key)
        if behind is not None:
            at = explanation_markup(folder, "node", behind, key)
            told = f"The plan does not name this subscriber. Of {behind}, the broker it is behind, it says:"
            return f"<p>{e(told)}</p>{at}"
        said = str(error)
        return f"<p>{e(said[:1].upper() + said[1:])}.</p>"
    known = [
        (k.replace("n_", "number of ").replace("_", " "), _plain(v)) for k, v in found.facts.items() if v is not None
    ]
    parts = [f"<p><strong>{e(found.headline)}</strong></p>", facts(known)]
    if found.unwanted:
        rows = [(u.who, number(u.rate), u.of) for u in found.unwanted[:ROWS]]
        title = f"Received unasked ({len(rows):,} of {len(found.unwanted):,})"
        parts.append(f"<h3>{e(title)}</h3>" + table(("who", "rate", "of what"), rows, numbers=("rate",)))
    if found.cost is not None and found.choices:
        others = [(c.what, number(c.cost), f"{'+' if c.change >= 0 else '−'}{number(abs(c.change))}", c.barred or "")
                  for c in found.choices[:5]]  # fmt: skip
        heads = ("other choice", found.measure, "change", "not allowed by")
        parts.append(
            f"<h3>What else it could do (now {e(number(found.cost))})</h3>" + table(heads, others, numbers=heads[1:3])
        )
    return "".join(parts)


def reported(folder: str, key: tuple[str, ...], live: Section) -> dict[str, Any]:
    """The plan's report, the same that `narrowcast report` writes, as pieces; `live` stands first."""
    found = full_report(plan_in(folder, key))
    return {
        "headline": found.headline,
        "summary": found.summary,
        "tiles": "".join(tile_markup(tile) for tile in found.tiles),
        "sections": "".join(section_markup(section, under="plan") for section in (live, *found.sections)),
        "data": found.data,
    }


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value[:ROWS])) + (" …" if len(value) > ROWS else "") or "none"
    return number(value) if isinstance(value, float) else str(value)
