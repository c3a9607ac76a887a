"""A fixed number of physical channels: which carries which merged query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model.arrays import amounts, indices
from narrowcast.model.cost import Cost
from narrowcast.plans.queries.boxes import Floats, Ints, flat
from narrowcast.plans.queries.kernels.physical import physical as place
from narrowcast.plans.queries.result import QueriesPlan


@dataclass(frozen=True, eq=False, slots=True)
class PhysicalChannels:
    """The physical channel of each merged query, what each carries, who listens, and the price.

    `overheard` counts the objects that clients hear on a channel they listen to, of merged queries in
    which they have no part. `cost` is the plan's own plus K_U for each of these, so that with a channel
    for every merged query it is the plan's.
    """

    channel_of_set: Ints
    load: Floats
    listeners: tuple[tuple[int, ...], ...]
    overheard: float
    cost: float


def assign(
    plan: QueriesPlan, clients: ArrayLike, *, channels: int, restarts: int = 8, seed: int = 0
) -> PhysicalChannels:
    """Put the merged queries of a plan on at most `channels` channels so that clients overhear little.

    `clients` is the client of each query. A client listens to every channel that carries an answer with
    one of its queries, and hears all that is on it. Answers are put one by one where they add least, then
    moved while that gains, from `restarts` orders. A local optimum; O(passes · channels · pairs).

    >>> from narrowcast.plans.queries.plan import merge
    >>> plan = merge([[[0, 2]], [[9, 10]], [[0, 3]], [[20, 24]]], km=0.1, kt=1, ku=1)
    >>> plan.sets, assign(plan, [0, 0, 1, 2], channels=2).channel_of_set.tolist()
    (((0, 2), (1,), (3,)), [0, 0, 1])
    """
    if plan.procedure == "exact":
        raise UnsupportedError(
            "physical channels do not support procedure 'exact', whose pieces have a channel each",
            works=("rectangle", "polygon"),
        )
    if not isinstance(channels, (int, np.integer)) or channels < 1:
        raise InputError(f"channels must be a whole number, 1 or more, got {channels!r}", name="channels", got=channels)
    n = 1 + max((q for members in plan.sets for q in members), default=-1)
    owner = indices("clients", clients)
    if owner.size != n:
        raise InputError(f"clients must have {n} entries, got {owner.size}", name="clients", got=owner.size)
    wanted = [sorted({int(owner[q]) for q in members}) for members in plan.sets]
    home = place_answers(plan.sizes, wanted, channels, restarts, seed)
    load, listeners, overheard = overhearing(plan.sizes, wanted, home)
    return PhysicalChannels(home, load, listeners, overheard, plan.cost + plan.constants.ku * overheard)


def on_channels(plan: QueriesPlan, channels: int, seed: int = 0) -> QueriesPlan:
    """The plan with its merged queries on at most `channels` physical channels, what is overheard priced.

    Who has no client is its own.
    """
    names = plan.demand.clients or plan.demand.labels
    number = {name: at for at, name in enumerate(dict.fromkeys(names))}
    found = assign(plan, [number[name] for name in names], channels=channels, seed=seed)
    overheard = plan.constants.ku * found.overheard
    cost = Cost(plan.cost.total + overheard, {**plan.cost.terms, "overheard": overheard}, lambda: plan.cost.compared)
    parameters = {**plan.parameters, "channels": int(channels)}
    home = tuple(found.channel_of_set.tolist())
    return replace(plan, physical=home, cost=cost, parameters=parameters, written=None)


def place_answers(sizes: ArrayLike, wanted: Sequence[Sequence[int]], channels: int, restarts: int, seed: int) -> Ints:
    """The channel of each answer, given its size and the clients that want it; the best of some orders."""
    size = amounts("sizes", sizes, len(wanted))
    if not wanted:
        return np.zeros(0, np.int64)
    clients, offsets = flat(wanted)
    offsets = np.append(offsets, clients.size)
    rng = np.random.default_rng(seed)
    orders = [np.argsort(-size, kind="stable"), *(rng.permutation(size.size) for _ in range(restarts - 1))]
    n_clients = int(clients.max()) + 1
    placed = [place(size.copy(), offsets, clients, n_clients, min(channels, size.size), order) for order in orders]
    best = min(placed, key=lambda home: overhearing(size, wanted, home)[2])
    # Channels are numbered by the first answer they carry, so that equal plans look equal.
    _, first, numbered = np.unique(best, return_index=True, return_inverse=True)
    home: Ints = np.argsort(np.argsort(first))[numbered]
    return home


def overhearing(
    sizes: Floats, wanted: Sequence[Sequence[int]], home: Ints
) -> tuple[Floats, tuple[tuple[int, ...], ...], float]:
    """What each channel carries, who listens, and how much is overheard in all."""
    used = int(home.max(initial=-1)) + 1
    load = np.bincount(home, weights=sizes, minlength=used).astype(np.float64)
    listeners: list[set[int]] = [set() for _ in range(used)]
    for at, clients in zip(home.tolist(), wanted, strict=True):
        listeners[at].update(clients)
    heard = sum(float(load[h]) * len(listeners[h]) for h in range(used))
    needed = sum(float(size) * len(clients) for size, clients in zip(sizes, wanted, strict=True))
    return load, tuple(tuple(sorted(clients)) for clients in listeners), max(0.0, heard - needed)
