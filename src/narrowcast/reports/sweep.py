"""A quick sweep of a plan's main budget, for a report that was given none."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from narrowcast.model.interest_tables import interest_of
from narrowcast.model.plan import Plan
from narrowcast.reports.whatif import Whatif, knee_of, parse_whatif

FACTORS = (1, 0.5, 2, 0.25, 4, 0.75, 1.5, 3)
SECONDS = 12.0


def quick_sweep(plan: Plan) -> Whatif | None:
    """What other numbers of groups, or of filters, would cost; None for kinds that have no such budget."""
    if plan.kind == "filters":
        return _filters(plan)
    # A hybrid with sessions has no fast planner.
    two_level = plan.kind == "hybrid" and "sessions" in plan.parameters
    return _groups(plan) if plan.kind in ("channels", "hybrid") and not two_level else None


def _groups(plan: Plan) -> Whatif | None:
    """By the fast planners, so the curve lies above what a search finds; as far as the time goes."""
    from narrowcast.plans import channels

    interest = interest_of(plan)
    present = int(plan.parameters.get("groups", 0)) or 1
    end = time.monotonic() + SECONDS
    points: list[dict[str, float]] = []
    for budget in dict.fromkeys(max(1, round(present * factor)) for factor in FACTORS):
        if points and time.monotonic() > end:
            break
        if plan.kind == "channels":
            sessions = max(budget, int(plan.parameters.get("sessions", budget)))
            alpha, beta = (float(plan.parameters.get(name, 1.0)) for name in ("alpha", "beta"))
            made = channels.plan(interest, budget, sessions, "gf", alpha=alpha, beta=beta, seed=plan.seed)
            found = {"sessions": sessions, "cost": made.cost.excess, "relative": made.cost.relative}
        else:
            w = tuple(float(v) for v in plan.parameters.get("weights", (1.0, 1.0, 1.0)))
            mixed = channels.hybrid(interest, budget, unicast="reverse", weights=(w[0], w[1], w[2]), seed=plan.seed)
            found = {"cost": mixed.cost, "relative": mixed.percent_of_perfect / 100}
        points.append({"groups": budget, **found})
    if len(points) < 2:
        return None
    line = sorted((point["groups"], point["cost"]) for point in points)
    which = "groups first" if plan.kind == "channels" else "reverse start"
    how = f"A quick estimate by the fast planner ({which}); narrowcast whatif searches each setting."
    return parse_whatif({"x": "groups", "points": points, "present": present, "knee": knee_of(line)}, how)


def _filters(plan: Plan) -> Whatif | None:
    """The least traffic for every number of filters: exact, from the tree in the plan."""
    from narrowcast.model import Tree
    from narrowcast.plans import filters

    if plan.parameters.get("objective", "traffic") != "traffic":
        return None
    trees = plan.tables["trees"]
    at = {name: i for i, name in enumerate(trees["node"].to_pylist())}
    parents = [-1 if p is None else at[p] for p in trees["parent"].to_pylist()]
    options: dict[str, Any] = {
        c: np.asarray(trees[c].to_pylist()) for c in ("link_cost", "can_filter", "users") if c in trees.column_names
    }
    tree, flow = Tree(parents, **options), trees["flow"].to_numpy()
    present = int(plan.parameters.get("k", plan.tables["filters"].num_rows))
    most = min(max(2 * present, 8), int(tree.can_filter.sum()), 400)
    curve = np.asarray(filters.place(tree, flow, most).curve, float)
    picked = np.unique(np.round(np.linspace(0, len(curve) - 1, min(len(curve), 40))).astype(int)).tolist()
    picked = sorted({*picked, min(present, len(curve) - 1)})
    whole = curve[0] or 1.0
    points = [{"filters": k, "cost": float(curve[k]), "relative": float(curve[k] / whole)} for k in picked]
    if len(points) < 2:
        return None
    knee = knee_of([(point["filters"], point["cost"]) for point in points])
    return parse_whatif(
        {"x": "filters", "points": points, "present": present, "knee": knee}, "Optimal for every number."
    )
