"""The cheapest place for one flow, by trying every place and counting the whole cost anew."""

from __future__ import annotations

from typing import Any


def total(
    audiences: list[set[int]], rates: Any, session_of: list[int], group_of: list[int], alpha: float, beta: float
) -> float:
    """α Σ Θ|P| + β Σ θ|C|."""
    cost = 0.0
    for price, label in ((beta, session_of), (alpha, [group_of[l] for l in session_of])):
        for c in set(label):
            inside = [k for k, other in enumerate(label) if other == c]
            cost += price * sum(rates[k] for k in inside) * len(set().union(*(audiences[k] for k in inside)))
    return cost


def least(
    audiences: list[set[int]], rates: Any, session_of: list[int], group_of: list[int], groups: int, k: int,
    alpha: float, beta: float,
) -> float:  # fmt: skip
    """The least total with flow k in any session; one that is empty without k may open in any group."""
    others = [l for j, l in enumerate(session_of) if j != k]
    found = []
    for l in range(len(group_of)):
        trial = [*session_of[:k], l, *session_of[k + 1 :]]
        places = [group_of[l]] if l in others else range(groups)
        found += [total(audiences, rates, trial, [*group_of[:l], g, *group_of[l + 1 :]], alpha, beta) for g in places]
    return min(found)
