"""Is everybody in who wants something, and is the cost what it should be?"""

from __future__ import annotations

from narrowcast.model import Tables

COLUMNS = {"flows": ("flow", "rate"), "interest": ("flow", "subscriber"), "members": ("subscriber",)}
OPTIONAL = ()
BOUNDED = "total"


def faults(plan: Tables) -> list[str]:
    inside = set(plan.tables["members"]["subscriber"].to_pylist())
    wanting = dict.fromkeys(plan.tables["interest"]["subscriber"].to_pylist())
    return [f"{name} wants something and is not a member" for name in wanting if name not in inside]


def cost(plan: Tables) -> dict[str, float]:
    rate = sum(plan.tables["flows"]["rate"].to_pylist())
    total = float(plan.parameters["price"]) * rate * plan.tables["members"].num_rows
    return {"total": total, "reception": total}


def checked(plan: Tables) -> tuple[str, ...]:
    return ("everybody who wants something is a member",)
