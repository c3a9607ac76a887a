"""What a semantic plan does, written slowly: where each message of the window and the sample comes, at what cost."""

from __future__ import annotations

from typing import Any

import narrowcast as nc
from narrowcast.model.plan import Tables


def semantic(plan: Tables) -> Any:
    """Comparable; raises for a plan that nobody could obey."""
    rows = {name: table.to_pylist() for name, table in plan.tables.items()}
    nodes = [row["node"] for row in rows["nodes"]]
    assert len(set(nodes)) == len(nodes)
    link = {(r[a], r[b]): (r["cost"], r["delay"]) for r in rows["topology"] for a, b in (("u", "v"), ("v", "u"))}
    assert all(u in nodes and cost >= 0 for (u, _), (cost, _) in link.items())
    roots = {row["channel"]: row["rendezvous"] for row in rows["channels"]}
    assert len(roots) == len(rows["channels"])
    members: dict[int, set[str]] = {c: set() for c in roots}
    for row in rows["channel_members"]:
        assert row["gateway"] in nodes
        members[row["channel"]].add(row["gateway"])
    trees: dict[int, list[tuple[str, str]]] = {c: [] for c in roots}
    for row in rows["trees"]:
        trees[row["channel"]].append((row["u"], row["v"]))
    for c, root in roots.items():
        assert root in nodes
        reached = walk(root, trees[c])
        assert len(reached) == len(trees[c]) + 1
        assert members[c] <= reached
    texts = {row["profile"]: row["text"] for row in rows["profiles"]}
    wanted: dict[int, set[str]] = {p: set() for p in texts}
    for row in rows["clients"]:
        assert row["gateway"] in nodes
        wanted[row["profile"]].add(row["gateway"])
    cost = {c: sum(link[edge][0] for edge in edges) for c, edges in trees.items()}
    far = distances(nodes, link)
    rule = plan.parameters["rule"]
    assert rule in ("audience", "content")
    formulas = read_formulas(rows["contents"], {row["channel"]: row["content"] for row in rows["channels"]}, set(texts))

    def came(profiles: Any, channels: list[int]) -> Any:
        got = set().union(*(members[c] for c in channels))
        missed = set().union(*(wanted[p] for p in profiles)) - got
        return sorted(got), sorted(missed), formulas(set(profiles)) if rule == "content" else None

    rate = dict.fromkeys(roots, 0.0)
    paid, way, arrivals = 0.0, 0.0, []
    for row in rows["window"]:
        for c in row["channels"]:
            rate[c] += row["weight"]
            paid += row["weight"] * cost[c]
            way += row["weight"] * (0 if row["source"] is None else far[row["source"]][roots[c]])
        arrivals.append([*came(row["profiles"], row["channels"])[:2], row["weight"]])
    for row in rows["channels"]:
        assert abs(rate[row["channel"]] - row["rate"]) < 1e-9
    parsed = {p: nc.Profile.parse(text) for p, text in texts.items()}
    tried = []
    for message in rows["sample"]:
        plain = {name: value for name, value in message.items() if name not in ("_broker", "_channels")}
        matched = [p for p, profile in parsed.items() if profile.matches(plain)]
        tried.append(came(matched, message["_channels"]))
    kinds = {row["channel"]: row["kind"] for row in rows["channels"]}
    fallback = set().union(*(members[c] for c, kind in kinds.items() if kind == "fallback"))
    lost = sorted(set().union(*wanted.values()) - fallback) if rule == "audience" else []
    # A sample that goes elsewhere but reaches whoever wants it is no harm under a rule that knows no formulas.
    kept = [t[1:] for t in tried] if rule == "audience" else tried
    return {"arrivals": arrivals, "tried": kept, "paid": paid, "way": way, "lost": lost}


def walk(root: str, edges: list[tuple[str, str]]) -> set[str]:
    reached, again = {root}, True
    while again:
        again = False
        for u, v in edges:
            if u in reached and v not in reached:
                reached.add(v)
                again = True
    return reached


def distances(nodes: list[str], link: dict[tuple[str, str], tuple[float, float]]) -> dict[str, dict[str, float]]:
    """Floyd and Warshall."""
    far = {u: {v: 0.0 if u == v else link.get((u, v), (float("inf"), 0))[0] for v in nodes} for u in nodes}
    for w in nodes:
        for u in nodes:
            for v in nodes:
                far[u][v] = min(far[u][v], far[u][w] + far[w][v])
    return far


def read_formulas(parts: list[dict[str, Any]], content: dict[int, int | None], profiles: set[int]) -> Any:
    made = {row["part"]: (row["operation"], row["operands"]) for row in parts}
    assert len(made) == len(parts)

    def holds(part: int, matched: set[int]) -> bool:
        operation, operands = made[part]
        if operation == "any":
            assert set(operands) <= profiles
            return bool(set(operands) & matched)
        inner = [holds(p, matched) for p in operands if p < part]
        assert len(inner) == len(operands)
        if operation == "all":
            return all(inner)
        if operation == "any of":
            return any(inner)
        assert operation == "less"
        return inner[0] and not inner[1]

    def channels(matched: set[int]) -> list[int]:
        return sorted(c for c, part in content.items() if part is not None and holds(part, matched))

    return channels
