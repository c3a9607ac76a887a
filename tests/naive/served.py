"""What each receiver gets, from the definition: walk through the tables one row at a time."""

from __future__ import annotations

from typing import Any


def naive_served(plan: Any) -> dict[str, dict[str, float]]:
    """Per subscriber: the rates it wants and gets, and the cost of filtering beyond what it wants."""
    rows = {name: table.to_pylist() for name, table in plan.tables.items()}
    rate = {row["flow"]: row["rate"] for row in rows["flows"]}
    session = {row["flow"]: row["session"] for row in rows["flow_session"]}
    group = {row["session"]: row["group"] for row in rows["session_group"]}
    apart = {(row["flow"], row["subscriber"]) for row in rows.get("unicast", [])}
    hybrid = "unicast" in rows
    alpha = plan.parameters["weights"][0] if hybrid else plan.parameters.get("alpha", 1.0)
    beta = plan.parameters.get("beta", 0.0 if hybrid else 1.0)
    found = {}
    for user in {row["subscriber"] for row in rows["interest"]}:
        wants = [row["flow"] for row in rows["interest"] if row["subscriber"] == user]
        alone = [flow for flow in wants if (flow, user) in apart]
        shared = [flow for flow in wants if (flow, user) not in apart]
        joined = {row["group"] for row in rows["subscriber_group"] if row["subscriber"] == user}
        taken = {session[flow] for flow in shared}
        in_groups = sum(rate[flow] for flow, l in session.items() if group[l] in joined)
        in_sessions = sum(rate[flow] for flow, l in session.items() if l in taken)
        own = sum(rate[flow] for flow in shared)
        found[user] = {
            "wanted": sum(rate[flow] for flow in wants),
            "received": in_groups + sum(rate[flow] for flow in alone),
            "excess": alpha * (in_groups - own) + beta * (in_sessions - own),
        }
    return found
