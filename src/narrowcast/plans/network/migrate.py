"""From one network plan to another, across the backbone and all sites: links, joins, sessions and copies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count, islice
from typing import Any

import numpy as np

from narrowcast.errors import PlanError
from narrowcast.evaluate.ways import Need, Ways
from narrowcast.model.plan import Tables
from narrowcast.plans.network.judge import NetworkRead
from narrowcast.plans.numbers import agreed


def ways(plan: Tables) -> Ways:
    """For each wish the links that bring the flow to its site, and a join or a copy there. O(wishes · path)."""
    read = NetworkRead(plan)
    brokers, sites, flows, users = (x.to_pylist() for x in (read.brokers, read.sites, read.flows, read.users))
    flow, user = (end.tolist() for end in read.pair)
    walks: dict[tuple[int, int], dict[int, tuple[Need, ...]]] = {}
    place, wishes, shared = {}, {}, dict[tuple[int, int], frozenset[Need]]()
    for at, (k, u) in enumerate(zip(flow, user, strict=True)):
        s, name = int(read.user_site[u]), users[u]
        content = f"{flows[k]} in {sites[s]}"
        source, session = int(read.source[k]), int(read.session[k, s])
        if (k, s) not in shared:
            if read.direct[k, s]:
                shared[k, s], where = frozenset(), "unicast from its source"
            else:
                c = int(read.channel[k])
                if s != source and (c, source) not in walks:
                    walks[c, source] = _walked(read, c, source, brokers)
                to = int(read.gateway[s])
                if s != source and to not in walks[c, source]:
                    raise PlanError(f"the plan is unsound: {flows[k]} does not reach {sites[s]}")
                shared[k, s] = frozenset(walks[c, source][to] if s != source else ())
                where = f"channel {c}, " if s != source else ""
                where += f"session {session} of group {read.group[s, session]}" if session >= 0 else "unicast"
            place[content] = where
        if read.alone[at]:
            own = frozenset({Need("copy", name, f"flow {flows[k]}")})
        else:
            group = read.group[s, session]
            own = frozenset({Need("join", name, f"group {group}"), Need("take", name, f"session {session}")})
        wishes[name, content] = shared[k, s] | own
    rates = read.rate.tolist()
    weight = {f"{flows[k]} in {sites[s]}": rates[k] for k, s in shared}
    return Ways(place, wishes, {brokers[v]: 1.0 for v in sorted(read.filters)}, weight)


def _walked(read: NetworkRead, c: int, source: int, brokers: list[str]) -> dict[int, tuple[Need, ...]]:
    """The links of a channel's tree from a source to every broker of it, as needs."""
    around: dict[int, list[int]] = {}
    for u, v, _ in read.trees.get(c, ()):
        around.setdefault(u, []).append(v)
        around.setdefault(v, []).append(u)
    root = int(read.gateway[source])
    found: dict[int, tuple[Need, ...]] = {root: ()}
    front = [root]
    while front:
        u = front.pop()
        for v in around.get(u, ()):
            if v not in found:
                found[v] = (*found[u], Need("forward", brokers[u], f"channel {c} to {brokers[v]}"))
                front.append(v)
    return found


def renumbered(new: Tables, old: Tables) -> Tables:
    """The new plan with the old one's numbers of channels, and of sessions and groups of each site, where they fit."""
    tables = dict(new.tables)
    labels = [dict(zip(_column(p, "flow_channel", "flow"), _column(p, "flow_channel", "channel"), strict=True))
              for p in (new, old)]  # fmt: skip
    channel = _agreed(labels, [c for name in ("flow_channel", "trees") for c in _column(new, name, "channel")])
    for name in ("flow_channel", "trees"):
        tables[name] = _renamed(tables[name], "channel", [channel[c] for c in _column(new, name, "channel")])
    session: dict[tuple[str, int], int] = {}
    group: dict[tuple[str, int], int] = {}
    held = [_by_site(plan) for plan in (new, old)]
    rows = [*zip(*(_column(new, "session_group", name) for name in ("site", "session", "group")), strict=True)]
    for site in sorted({site for site, _, _ in rows}):
        sessions = [each.get(site, ({}, {}))[0] for each in held]
        groups = [each.get(site, ({}, {}))[1] for each in held]
        its = [(l, g) for at, l, g in rows if at == site]
        session |= {(site, l): n for l, n in _agreed(sessions, [l for l, _ in its]).items()}
        group |= {(site, g): n for g, n in _agreed(groups, [g for _, g in its]).items()}
    for name in ("flow_session", "session_group"):
        given = zip(_column(new, name, "site"), _column(new, name, "session"), strict=True)
        tables[name] = _renamed(tables[name], "session", [session[pair] for pair in given])
    given = zip(_column(new, "session_group", "site"), _column(new, "session_group", "group"), strict=True)
    tables["session_group"] = _renamed(tables["session_group"], "group", [group[pair] for pair in given])
    return replace(new, tables=tables, checks={})


def _by_site(plan: Tables) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
    """Of each site the session and the group of each flow."""
    rows = zip(*(_column(plan, "session_group", c) for c in ("site", "session", "group")), strict=True)
    group_of = {(site, session): group for site, session, group in rows}
    found: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    held = (_column(plan, "flow_session", c) for c in ("site", "flow", "session"))
    for site, flow, session in zip(*held, strict=True):
        sessions, groups = found.setdefault(site, ({}, {}))
        sessions[flow], groups[flow] = session, group_of[site, session]
    return found


def _agreed(labels: list[dict[str, int]], every: Iterable[int]) -> dict[int, int]:
    """A number for every label of the first, as near to the second's as it can be, however large its labels are."""
    things = sorted({*labels[0], *labels[1]})
    given = [np.array([each.get(thing, -1) for thing in things], np.int64) for each in labels]
    held = [np.unique(np.array([*every], np.int64)), np.unique(given[1][given[1] >= 0])]
    n = max(map(len, held))
    taken = dict.fromkeys(held[1].tolist())
    numbers = [*taken, *islice((number for number in count() if number not in taken), n - len(taken))]
    new, old = (np.where(g >= 0, np.searchsorted(h, g), -1) for g, h in zip(given, held, strict=True))
    found = agreed(new, old, n).tolist() if n else []
    return {int(label): numbers[to] for label, to in zip(held[0], found, strict=False)}


def _column(plan: Tables, table: str, column: str) -> list[Any]:
    found: list[Any] = plan.tables[table][column].to_pylist()
    return found


def _renamed(table: Any, column: str, values: list[int]) -> Any:
    import pyarrow as pa

    return table.set_column(table.column_names.index(column), column, pa.array(values, pa.int64()))
