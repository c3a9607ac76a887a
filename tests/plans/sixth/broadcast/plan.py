"""Planning is quickly done."""

from __future__ import annotations

from narrowcast.model import Cost, Demand, Interest
from plans.sixth.broadcast.result import BroadcastPlan


def make(demand: Demand | Interest, *, price: float = 1.0, seed: int = 0) -> BroadcastPlan:
    """Everybody gets everything; a message costs `price` at each receiver."""
    given = Demand.of(demand)
    total = price * float(given.interest.rates.sum()) * given.interest.n_users
    return BroadcastPlan(demand=given, cost=Cost(total, {"reception": total}), parameters={"price": price}, seed=seed)
