"""An overlay of brokers and the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints, amounts, frozen, indices

ROLES = ("source", "gateway", "interior")


@dataclass(frozen=True, eq=False, init=False)
class Topology:
    """Brokers 0..n−1 joined by undirected links, each with a cost per message and a delay.

    `roles`, if given, says of each broker whether publishers (source) or subscribers (gateway)
    attach to it, or nobody does (interior). A link given twice keeps its cheaper copy.

    >>> ring = Topology([(0, 1), (1, 2), (2, 0)], cost=[1, 1, 3])
    >>> ring.n_brokers, ring.n_links
    (3, 3)
    """

    edges: Ints
    cost: Floats
    delay: Floats
    n_brokers: int
    roles: tuple[str, ...] | None
    names: tuple[str, ...] | None

    def __init__(
        self,
        edges: ArrayLike,
        cost: ArrayLike | None = None,
        delay: ArrayLike | None = None,
        *,
        n_brokers: int | None = None,
        roles: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        pairs = np.asarray(edges)
        if pairs.size == 0:
            pairs = np.zeros((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InputError(f"edges must have shape (links, 2), got {pairs.shape}", name="edges", got=pairs.shape)
        ends = indices("edges", pairs.ravel(), high=n_brokers).reshape(-1, 2)
        if (ends[:, 0] == ends[:, 1]).any():
            at = int(np.argmax(ends[:, 0] == ends[:, 1]))
            raise InputError(f"edges[{at}] must join two brokers, got {ends[at, 0]} twice", name="edges", got=at)
        total = int(n_brokers if n_brokers is not None else ends.max(initial=-1) + 1)
        costs = amounts("cost", 1.0 if cost is None else cost, len(ends), positive=True)
        delays = amounts("delay", costs if delay is None else delay, len(ends))
        ends = np.sort(ends, axis=1)
        # Cheapest copy of each link first, then by its ends: the first of each run stays.
        order = np.lexsort((delays, costs, ends[:, 1], ends[:, 0]))
        ends, costs, delays = ends[order], costs[order], delays[order]
        first = np.ones(len(ends), np.bool_)
        first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
        for name, given in (("roles", roles), ("names", names)):
            if given is not None and len(given) != total:
                raise InputError(f"{name} must have {total} entries, one per broker, got {len(given)}", name=name)
        for at, role in enumerate(roles or ()):
            if role not in ROLES:
                raise InputError(
                    f"roles[{at}] must be one of {', '.join(ROLES)}, got {role!r}",
                    name="roles",
                    allowed=ROLES,
                    got=role,
                )
        for name, value in (("edges", ends[first]), ("cost", costs[first]), ("delay", delays[first])):
            object.__setattr__(self, name, frozen(value))
        object.__setattr__(self, "n_brokers", total)
        object.__setattr__(self, "roles", None if roles is None else tuple(roles))
        object.__setattr__(self, "names", None if names is None else tuple(names))

    @property
    def n_links(self) -> int:
        """How many links there are, each counted once."""
        return len(self.edges)

    def __repr__(self) -> str:
        return f"Topology({self.n_brokers} brokers, {self.n_links} links)"
