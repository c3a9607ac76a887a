"""Numbers of a new plan made to agree with those of the plan it follows, so that as little as possible moves.

The numbers of groups, sessions and sets are names that mean nothing. Two planners, or one planner twice, give
the same group different ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from narrowcast.model.plan import Plan

# Above so many numbers the best assignment is not sought; the largest overlaps go first.
LARGE = 2_000


def renumbered(new: Plan, old: Plan) -> Plan:
    """The new plan with the old one's numbers wherever they fit: the same plan to everybody.

    Groups agree by the members they keep, sessions by the flows that stay in their group, sets by the
    queries they keep; the sum kept is the largest there is (an assignment). Groups that flows are pinned
    to keep their own. The verdict in `checks` goes, since it was on the other numbers.
    """
    if new.kind in ("channels", "hybrid") and old.kind in ("channels", "hybrid"):
        return _channels(new, old)
    if new.kind == old.kind == "queries":
        return _queries(new, old)
    if new.kind == old.kind == "semantic":
        return _semantic(new, old)
    return new


def _channels(new: Plan, old: Plan) -> Plan:
    pinned = dict(new.parameters.get("limits", {})).get("pinned", {})
    group_of = [_group_of_flow(plan) for plan in (new, old)]
    fixed = {group_of[0][flow] for flow in pinned if flow in group_of[0]}
    members = [_by(plan, "subscriber_group", "group", "subscriber") for plan in (new, old)]
    sent = [_turned(homes) for homes in group_of]
    kept, same = _overlaps(*members), _overlaps(*sent)
    # A kept join is worth more than any flow; of groups with the same members the flows decide.
    worth = Counter({pair: kept[pair] * (len(group_of[0]) + 1) + same[pair] for pair in kept.keys() | same.keys()})
    groups = _assigned(worth, sent[0], sent[1], new.parameters.get("groups"), fixed)
    flows = [_by(plan, "flow_session", "session", "flow") for plan in (new, old)]
    shared: Counter[tuple[int, int]] = Counter()
    home = {flow: session for session, held in flows[1].items() for flow in held}
    for session, held in flows[0].items():
        for flow in held & home.keys():
            # A flow that changes its group moves anyway; of those, better together than not.
            stays = groups[group_of[0][flow]] == group_of[1][flow]
            shared[session, home[flow]] += 1000 if stays else 1
    sessions = _assigned(shared, flows[0], flows[1], new.parameters.get("sessions"), set())
    return _with(
        new,
        {"flow_session": {"session": sessions}, "session_group": {"session": sessions, "group": groups},
         "subscriber_group": {"group": groups}},
    )  # fmt: skip


def _queries(new: Plan, old: Plan) -> Plan:
    key = "client" if all("client" in plan.tables["merges"].column_names for plan in (new, old)) else "query"
    held = [_by(plan, "merges", "set", "query", key) for plan in (new, old)]
    sets = _assigned(_overlaps(*held), held[0], held[1], None, set())
    return _with(new, {"merges": {"set": sets}, "channels": {"set": sets}})


def _semantic(new: Plan, old: Plan) -> Plan:
    """A channel keeps a number only where its whole tree stays: brokers know channels by number alone, and
    two trees under one number would send messages twice.
    """
    shapes = [_shapes(plan) for plan in (new, old)]
    free: dict[Any, list[int]] = {}
    for number, shape in sorted(shapes[1].items(), reverse=True):
        free.setdefault(shape, []).append(number)
    found = {n: free[shape].pop() for n, shape in sorted(shapes[0].items()) if free.get(shape)}
    fresh = iter(range(max(shapes[1], default=-1) + 1, max(shapes[1], default=-1) + 2 + len(shapes[0])))
    numbers = {n: found[n] if n in found else next(fresh) for n in sorted(shapes[0])}
    single = {"channel": numbers}
    plan = _with(new, {"channels": single, "channel_members": single, "trees": single})
    return _with(plan, {"window": {"channels": numbers}, "sample": {"_channels": numbers}})


def _shapes(plan: Plan) -> dict[int, Any]:
    edges = _by(plan, "trees", "channel", "u", "v")
    members = _by(plan, "channel_members", "channel", "gateway")
    roots = zip(*(plan.tables["channels"][c].to_pylist() for c in ("channel", "rendezvous")), strict=True)
    return {c: (root, frozenset(edges.get(c, ())), frozenset(members.get(c, ()))) for c, root in roots}


def _group_of_flow(plan: Plan) -> dict[str, int]:
    group = dict(zip(*(plan.tables["session_group"][c].to_pylist() for c in ("session", "group")), strict=True))
    rows = zip(*(plan.tables["flow_session"][c].to_pylist() for c in ("flow", "session")), strict=True)
    return {flow: group[session] for flow, session in rows}


def _turned(homes: Mapping[str, int]) -> dict[int, set[Any]]:
    found: dict[int, set[Any]] = {}
    for flow, number in homes.items():
        found.setdefault(number, set()).add(flow)
    return found


def _by(plan: Plan, table: str, number: str, *columns: str) -> dict[int, set[Any]]:
    """What stands beside each number of a column."""
    found: dict[int, set[Any]] = {}
    given = plan.tables[table]
    beside = zip(*(given[column].to_pylist() for column in columns), strict=True)
    for n, names in zip(given[number].to_pylist(), beside, strict=True):
        found.setdefault(n, set()).add(names[0] if len(names) == 1 else names)
    return found


def _overlaps(new: Mapping[int, set[Any]], old: Mapping[int, set[Any]]) -> Counter[tuple[int, int]]:
    """How much each new number has in common with each old one."""
    holders: dict[Any, list[int]] = {}
    for n, held in old.items():
        for one in held:
            holders.setdefault(one, []).append(n)
    return Counter((m, n) for m, held in new.items() for one in held for n in holders.get(one, ()))


def _assigned(
    shared: Mapping[tuple[int, int], int], new: Iterable[int], old: Iterable[int], budget: int | None, fixed: set[int]
) -> dict[int, int]:
    """A number for each new one, all different and below the budget, so that most is shared."""
    rows = sorted(set(new) - fixed)
    free = [n for n in sorted(set(old) - fixed) if budget is None or n < budget]
    pairs = [(m, n, count) for (m, n), count in sorted(shared.items()) if m in set(rows) and n in set(free)]
    found = {m: m for m in fixed} | (_greedy(pairs) if len(rows) > LARGE else _best(pairs, rows, free))
    used, known = set(found.values()), set(old)
    # A number that the old plan did not use disturbs nobody: those come first.
    top = len(used) + len(rows) + len(known) if budget is None else budget
    spare = sorted((n for n in range(top) if n not in used), key=lambda n: (n in known, n))
    return found | dict(zip((m for m in rows if m not in found), spare, strict=False))


def _best(pairs: list[tuple[int, int, int]], rows: list[int], free: list[int]) -> dict[int, int]:
    from scipy.optimize import linear_sum_assignment

    if not pairs:
        return {}
    row, column = {m: i for i, m in enumerate(rows)}, {n: j for j, n in enumerate(free)}
    kept = np.zeros((len(rows), len(free)))
    for m, n, count in pairs:
        kept[row[m], column[n]] = count
    chosen = zip(*linear_sum_assignment(kept, maximize=True), strict=True)
    return {rows[i]: free[j] for i, j in chosen if kept[i, j] > 0}


def _greedy(pairs: list[tuple[int, int, int]]) -> dict[int, int]:
    found: dict[int, int] = {}
    taken: set[int] = set()
    for m, n, _ in sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])):
        if m not in found and n not in taken:
            found[m] = n
            taken.add(n)
    return found


def _with(plan: Plan, numbers: Mapping[str, Mapping[str, Mapping[int, int]]]) -> Plan:
    import pyarrow as pa

    tables = dict(plan.tables)
    for name, columns in numbers.items():
        for column, number in columns.items():
            given = tables[name]
            cells = [
                [number[n] for n in cell] if isinstance(cell, list) else number[cell]
                for cell in given[column].to_pylist()
            ]
            values = pa.array(cells, given[column].type)
            tables[name] = given.set_column(given.column_names.index(column), column, values)
    return replace(plan, tables=tables, checks={})
