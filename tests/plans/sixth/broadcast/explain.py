"""There is one thing to ask about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from narrowcast.evaluate.explanation import Explanation
from narrowcast.model import Tables


def explained(plan: Tables) -> Mapping[str, Callable[[Tables, Any], Explanation]]:
    return {"subscriber": _subscriber}


def _subscriber(plan: Tables, name: str) -> Explanation:
    headline = f"{name} gets everything, like everybody"
    return Explanation("broadcast", f"subscriber {name}", headline, {}, "cost", plan.cost["total"])
