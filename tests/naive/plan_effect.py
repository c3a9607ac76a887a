"""What a plan does, written slowly: who receives what, what that costs, and what the plan says of itself.

Two plans with the same effect are the same to everybody. None stands for a plan that nobody could obey.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

from naive.semantic_effect import semantic
from narrowcast.errors import InputError
from narrowcast.model.plan import Tables

BROKEN = None


def effect(plan: Tables) -> Any:
    """Comparable with ==; numbers to nine digits."""
    # Two baselines take an algorithm to recompute; nobody would act on them alone.
    baselines = {} if plan.kind == "semantic" else {n: v for n, v in plan.baselines.items() if n != "greedy address"}
    said = _plain({"cost": plan.cost, "bound": plan.lower_bound, "gap": plan.gap, "baselines": baselines})
    try:
        done = {"channels": _channels, "hybrid": _channels, "filters": _filters, "queries": _queries,
                "semantic": semantic}[plan.kind](plan)  # fmt: skip
    except (InputError, KeyError, ValueError, TypeError, IndexError, AssertionError, RecursionError):
        return BROKEN
    return said, _plain(done)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        assert value == value
        assert abs(value) != float("inf")
        return float(f"{value:.9g}") if abs(value) > 1e-9 else 0.0
    return value


def _channels(plan: Tables) -> Any:
    rows = {name: table.to_pylist() for name, table in plan.tables.items()}
    rate = {row["flow"]: row["rate"] for row in rows["flows"]}
    assert len(rate) == len(rows["flows"])
    assert all(r is not None and r >= 0 for r in rate.values())
    wants = [(row["flow"], row["subscriber"]) for row in rows["interest"]]
    assert len(set(wants)) == len(wants)
    assert all(flow in rate for flow, _ in wants)
    users = {user for _, user in wants}
    session = {row["flow"]: row["session"] for row in rows["flow_session"]}
    group = {row["session"]: row["group"] for row in rows["session_group"]}
    assert len(session) == len(rows["flow_session"])
    assert len(group) == len(rows["session_group"])
    assert set(session.values()) == set(group)
    assert set(session) <= set(rate)
    joins = [(row["subscriber"], row["group"]) for row in rows["subscriber_group"]]
    alone = [(row["flow"], row["subscriber"]) for row in rows.get("unicast", [])]
    assert {user for user, _ in joins} | {user for _, user in alone} <= users
    assert {flow for flow, _ in alone} <= set(rate)
    members: dict[Any, list[str]] = {}
    for user, number in joins:
        members.setdefault(number, []).append(user)
    received = Counter((flow, user) for flow, l in session.items() for user in members.get(group[l], []))
    received += Counter(alone)
    left_out = [pair for pair in wants if pair not in received]
    known = plan.parameters
    n_users = known.get("subscribers", len(users))
    assert isinstance(n_users, int)
    assert n_users >= len(users)
    numbers = {"groups": set(group.values()) | {g for _, g in joins}, "sessions": set(group)}
    broken = [name for name, used in numbers.items() if name in known and max(used, default=0) >= known[name]]
    theta: Counter[Any] = Counter()
    for flow, l in session.items():
        theta[l] += rate[flow]
    load: Counter[Any] = Counter()
    for l, g in group.items():
        load[g] += theta[l]
    sent = sum(rate[flow] for flow in {flow for flow, _ in wants})
    useful = sum(rate[flow] for flow, _ in wants)
    through_groups = sum(load[g] for _, g in joins)
    if "unicast" in plan.tables:
        w1, w2, w3 = known["weights"]
        costs = [w1 * through_groups, w2 * sum(load.values()), w3 * (w1 + w2) * sum(rate[flow] for flow, _ in alone)]
    else:
        assert known["alpha"] >= 0 <= known["beta"]
        takes = {(session[flow], user) for flow, user in wants if flow in session}
        costs = [known["alpha"] * through_groups, known["beta"] * sum(theta[l] for l, _ in takes)]
    return {"received": sorted(received.items()), "left_out": left_out, "broken": broken, "costs": costs,
            "perfect": [sent, useful, n_users]}  # fmt: skip


def _filters(plan: Tables) -> Any:
    rows = plan.tables["trees"].to_pylist()
    place = {row["node"]: v for v, row in enumerate(rows)}
    assert len(place) == len(rows)
    assert None not in place
    above = [None if row["parent"] is None else place[row["parent"]] for row in rows]
    assert above.count(None) == 1
    filters = [place[row["node"]] for row in plan.tables["filters"].to_pylist()]
    assert len(set(filters)) == len(filters)
    assert set(filters) <= set(above)
    assert all(rows[v]["can_filter"] for v in filters)
    assert len(filters) <= plan.parameters.get("k", len(rows))
    assert all(row["can_filter"] is not None for row in rows)
    everywhere = [v for v, row in enumerate(rows) if row["can_filter"] and v in above]

    def path(v: int) -> list[int]:
        """From v to the root."""
        found = [v]
        while above[found[-1]] is not None:
            found.append(above[found[-1]])
            assert len(found) <= len(rows)
        return found

    def load(v: int, chosen: list[int]) -> float:
        way = path(v)
        tight = next((x for x, up in itertools.pairwise(way) if up in chosen), way[-1])
        return float(rows[tight]["flow"])

    def total(chosen: list[int]) -> float:
        known, leaves = plan.parameters, [v for v in range(len(rows)) if v not in above]
        traffic = sum(rows[v]["link_cost"] * load(v, chosen) for v in range(len(rows)) if above[v] is not None)
        if known.get("objective", "traffic") == "traffic":
            return float(traffic)
        assert known["objective"] == "delay"
        c, f = known["link_delay"], known["filter_delay"]
        on_way = {u: sum(c * load(v, chosen) for v in path(u)[:-1]) for u in leaves}
        in_filters = {u: f * sum(v in chosen for v in path(u)) for u in leaves}
        return float(sum(rows[u]["users"] * (on_way[u] + in_filters[u]) for u in leaves))

    for v, row in enumerate(rows):
        assert row["flow"] >= 0
        assert row["link_cost"] >= 0
        assert row["users"] >= 0
        if above[v] is not None:
            assert row["flow"] <= rows[above[v]]["flow"] + 1e-9
            assert abs(row["load"] - load(v, filters)) < 1e-9
        else:
            assert row["load"] in (None, 0.0)
    loads = [load(v, filters) for v in range(len(rows)) if above[v] is not None]
    return {"loads": loads, "costs": [total(filters), total([]), total(everywhere)]}


def _queries(plan: Tables) -> Any:
    known = plan.parameters
    asked: dict[Any, dict[str, Any]] = {}
    for row in plan.tables["queries"].to_pylist():
        assert row["dimension"] not in asked.setdefault(row["query"], {})
        assert row["low"] <= row["high"]
        asked[row["query"]][row["dimension"]] = (row["low"], row["high"])
    pieces: dict[Any, dict[Any, dict[str, Any]]] = {}
    for row in plan.tables["channels"].to_pylist():
        piece = pieces.setdefault(row["set"], {}).setdefault(row["piece"], {})
        assert row["dimension"] not in piece
        assert row["low"] <= row["high"]
        piece[row["dimension"]] = (row["low"], row["high"])
    boxes = [*asked.values(), *(box for set_ in pieces.values() for box in set_.values())]
    assert len({frozenset(box) for box in boxes}) == 1
    members: dict[Any, list[Any]] = {}
    for row in plan.tables["merges"].to_pylist():
        members.setdefault(row["set"], []).append(row["query"])
    assert sorted(q for set_ in members.values() for q in set_) == sorted(asked)
    assert set(members) == set(pieces)

    def area(box: Mapping[str, Any]) -> float:
        result = 1.0
        for low, high in box.values():
            result *= high - low
        return result

    assert known["size"] == "area"
    assert known["procedure"] in ("rectangle", "polygon", "exact")
    assert all(known[name] >= 0 for name in ("km", "kt", "ku", "ka"))
    shape, answered = [], []
    for at, queries in members.items():
        for q in queries:
            inside = any(
                all(p[d][0] <= low and high <= p[d][1] for d, (low, high) in asked[q].items())
                for p in pieces[at].values()
            )
            answered.append((q, inside))
        shape.append([sorted(queries), sorted(sorted(p.items()) for p in pieces[at].values()),
                      [area(p) for p in pieces[at].values()]])  # fmt: skip
    constants = [known[name] for name in ("km", "kt", "ku", "ka", "per_query", "per_object", "procedure")]
    return {"answered": sorted(answered), "shape": sorted(shape), "constants": constants,
            "own": sorted((q, area(box)) for q, box in asked.items())}  # fmt: skip
