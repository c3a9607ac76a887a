"""What clients overhear on physical channels, client by client, and the least of all assignments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product


def overheard(sizes: Sequence[float], wanted: Sequence[Sequence[int]], home: Sequence[int]) -> float:
    total = 0.0
    for client in {c for clients in wanted for c in clients}:
        tuned = {home[i] for i in range(len(sizes)) if client in wanted[i]}
        total += sum(sizes[i] for i in range(len(sizes)) if home[i] in tuned and client not in wanted[i])
    return total


def least(sizes: Sequence[float], wanted: Sequence[Sequence[int]], channels: int) -> float:
    return min(overheard(sizes, wanted, home) for home in product(range(channels), repeat=len(sizes)))
