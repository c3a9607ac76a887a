"""A query merging problem: what any set of the queries costs. Algorithms know nothing else about queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from narrowcast.errors import InputError
from narrowcast.plans.queries.arrangement import too_many_cells
from narrowcast.plans.queries.boxes import (
    Floats,
    bounding,
    bounding_each,
    flat,
    intersections,
    is_box,
    lows_highs,
    unions,
)
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.procedures import MergeProcedure, Rectangle, Sent
from narrowcast.plans.queries.sizes import Given, Sizes

Set = tuple[int, ...]  # query indices, ascending


class MergeAmounts(NamedTuple):
    """The amounts behind a cost: channels |M|, objects sent size(M), irrelevant objects heard U."""

    channels: int
    size: float
    irrelevant: float

    def priced(self, constants: Constants) -> float:
        km, kt, ku = constants.folded
        return km * self.channels + kt * self.size + ku * self.irrelevant


@dataclass(frozen=True, slots=True)
class CostTerms:
    """The cost of a plan, part by part: `total` is `server + channel + transfer + client + overheard`.

    `overheard` is what clients hear of others' answers on a physical channel that they share.
    """

    total: float
    server: float
    channel: float
    transfer: float
    client: float
    amounts: MergeAmounts
    overheard: float = 0.0

    @classmethod
    def of(cls, amounts: MergeAmounts, k: Constants) -> CostTerms:
        """Amounts at their prices."""
        server = k.ka * (k.per_query * amounts.channels + k.per_object * amounts.size)
        channel, transfer, client = k.km * amounts.channels, k.kt * amounts.size, k.ku * amounts.irrelevant
        return cls(server + channel + transfer + client, server, channel, transfer, client, amounts)

    @property
    def by_name(self) -> dict[str, float]:
        """The paper's four terms by name, without `overheard`."""
        return {name: getattr(self, name) for name in ("server", "channel", "transfer", "client")}


class MergeProblem(Protocol):
    """What the algorithms need: boxes, profiles or anything else that can be merged."""

    constants: Constants

    @property
    def n(self) -> int: ...

    def terms(self, members: Set) -> MergeAmounts:
        """The amounts of one set."""
        ...

    def cost(self, members: Set) -> float:
        """What one set adds to the total."""
        ...

    def joined(self, members: Set, others: Sequence[Set]) -> Floats:
        """The cost of this set united with each of the others; may be infinite where it exceeds the two apart."""
        ...

    def subset(self, members: Sequence[int]) -> MergeProblem:
        """The problem of only these queries, renumbered from 0."""
        ...


@dataclass(eq=False)
class BoxProblem:
    """Queries that are boxes, under a merge procedure and a size."""

    boxes: Floats
    constants: Constants
    procedure: MergeProcedure
    size: Sizes
    alone: Floats = field(init=False)
    _known: dict[Set, Sent] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.alone = np.asarray(self.size(self.boxes), np.float64) if len(self.boxes) else np.zeros(0)

    @property
    def n(self) -> int:
        return len(self.boxes)

    @property
    def has_kernel(self) -> bool:
        """Whether kernels can price it: bounding boxes under a size they know and may take as monotone."""
        return isinstance(self.procedure, Rectangle) and not isinstance(self.size, Given)

    def kernel_arguments(self) -> tuple[Floats, Floats, Floats, object]:
        """Lows, highs, (K_M, K_T, K_U) and the measure."""
        assert not isinstance(self.size, Given)
        low, high = lows_highs(self.boxes)
        return low, high, np.array(self.constants.folded), self.size.measure(self.boxes.shape[1])

    def sent(self, members: Set) -> Sent:
        """What goes out for a set; remembered."""
        known = self._known.get(members)
        if known is None:
            at = list(members)
            known = self._known[members] = self.procedure.sent(self.boxes[at], self.alone[at], self.size)
        return known

    def terms(self, members: Set) -> MergeAmounts:
        sent = self.sent(members)
        return MergeAmounts(sent.channels, sent.size, sent.heard - float(self.alone[list(members)].sum()))

    def cost(self, members: Set) -> float:
        return self.terms(members).priced(self.constants)

    def joined(self, members: Set, others: Sequence[Set]) -> Floats:
        if not isinstance(self.procedure, Rectangle):
            return self._joined_one_by_one(members, others)
        box = bounding(self.boxes[list(members)])
        sizes = self.size(unions(box, bounding_each(self.boxes, others)))
        rows, starts = flat(others)
        counts = len(members) + np.diff(starts, append=rows.size)
        own = self.alone[list(members)].sum() + np.add.reduceat(self.alone[rows], starts)
        km, kt, ku = self.constants.folded
        costs: Floats = km + kt * sizes + ku * (counts * sizes - own)
        return costs

    def _joined_one_by_one(self, members: Set, others: Sequence[Set]) -> Floats:
        """Sets that share no point are priced from what is known of each, and those that cannot gain not at all."""
        shared = intersections(bounding(self.boxes[list(members)]), bounding_each(self.boxes, others))
        near = is_box(shared)
        overlap = np.zeros(len(others))
        overlap[near] = self.size(shared[near])
        mine = self.sent(members)
        costs = np.full(len(others), np.inf)
        for at, other in enumerate(others):
            if not self._may_gain(members, other, bool(near[at]), float(overlap[at])):
                continue
            both = united(members, other)
            if not near[at] and both not in self._known:
                sent = self.procedure.side_by_side(mine, len(members), self.sent(other), len(other))
                if sent is not None:
                    self._known[both] = sent
            costs[at] = self.cost(both)
        return costs

    def _may_gain(self, members: Set, other: Set, near: bool, overlap: float) -> bool:
        """False where even the union itself, sent as one, costs more than the two apart.

        One merged query that everyone hears whole is no smaller than the union, which is no smaller than
        the two less what their bounding boxes share. Answers in disjoint pieces gain only from data shared.
        """
        if not self.procedure.heard_by_all:
            return near and not too_many_cells(self.boxes[list(united(members, other))])
        a, b = self.sent(members), self.sent(other)
        least = max(a.size, b.size, a.size + b.size - overlap) * (1 - 1e-9)
        km, kt, ku = self.constants.folded
        heard = (len(members) + len(other)) * least
        return km + kt * (a.size + b.size - least) + ku * (a.heard + b.heard - heard) > 0

    def costs(self, sets: Sequence[Set]) -> Floats:
        """The cost of each set."""
        if not isinstance(self.procedure, Rectangle):
            return np.array([self.cost(members) for members in sets])
        sizes = self.size(bounding_each(self.boxes, sets))
        rows, starts = flat(sets)
        counts, own = np.diff(starts, append=rows.size), np.add.reduceat(self.alone[rows], starts)
        km, kt, ku = self.constants.folded
        costs: Floats = km + kt * sizes + ku * (counts * sizes - own)
        return costs

    def extend(self, boxes: Floats) -> None:
        """More queries, numbered on from the last. Nothing known so far changes."""
        self.boxes = np.concatenate([self.boxes, boxes])
        self.alone = np.concatenate([self.alone, self.size(boxes)])

    def subset(self, members: Sequence[int]) -> BoxProblem:
        return BoxProblem(self.boxes[list(members)], self.constants, self.procedure, self.size)


@dataclass(eq=False)
class SizedProblem:
    """Queries of any kind, known only by the size of the union of any of them."""

    alone: Floats
    constants: Constants
    union: Callable[[Set], float]
    _known: dict[Set, float] = field(init=False, repr=False, default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.alone)

    def terms(self, members: Set) -> MergeAmounts:
        size = self._known.get(members)
        if size is None:
            size = self._known[members] = float(self.alone[members[0]] if len(members) == 1 else self.union(members))
        return MergeAmounts(1, size, len(members) * size - float(self.alone[list(members)].sum()))

    def cost(self, members: Set) -> float:
        return self.terms(members).priced(self.constants)

    def joined(self, members: Set, others: Sequence[Set]) -> Floats:
        return np.array([self.cost(united(members, other)) for other in others])

    def subset(self, members: Sequence[int]) -> SizedProblem:
        names = list(members)
        return SizedProblem(self.alone[names], self.constants, lambda part: self.union(tuple(names[i] for i in part)))


def united(first: Set, second: Set) -> Set:
    """Both sets in one, each query once."""
    return tuple(sorted({*first, *second}))


def total_terms(problem: MergeProblem, sets: Sequence[Set]) -> MergeAmounts:
    """The amounts of a whole plan."""
    if isinstance(problem, BoxProblem) and isinstance(problem.procedure, Rectangle) and sets:
        sizes = problem.size(bounding_each(problem.boxes, sets))
        rows, starts = flat(sets)
        heard = np.diff(starts, append=rows.size) * sizes
        return MergeAmounts(
            len(sets), float(sizes.sum()), float((heard - np.add.reduceat(problem.alone[rows], starts)).sum())
        )
    parts = [problem.terms(members) for members in sets]
    return MergeAmounts(
        sum(part.channels for part in parts),
        float(sum(part.size for part in parts)),
        float(sum(part.irrelevant for part in parts)),
    )


def set_sizes(problem: BoxProblem, sets: Sequence[Set]) -> Floats:
    """How much is sent for each set."""
    if isinstance(problem.procedure, Rectangle) and sets:
        return np.asarray(problem.size(bounding_each(problem.boxes, sets)))
    return np.array([problem.terms(members).size for members in sets])


def cost_apart(problem: MergeProblem) -> float:
    """The cost of answering every query apart."""
    return CostTerms.of(total_terms(problem, [(i,) for i in range(problem.n)]), problem.constants).total


def check_cover(sets: Sequence[Sequence[int]], n: int) -> tuple[Set, ...]:
    """The sets as sorted tuples; refuses an empty set, an unknown query and a query without an answer."""
    checked: list[Set] = []
    for at, members in enumerate(sets):
        distinct = tuple(sorted({int(i) for i in members}))
        if not distinct or distinct[0] < 0 or distinct[-1] >= n:
            raise InputError(f"sets[{at}] must name queries from 0 to {n - 1}, got {list(members)}", name="sets")
        checked.append(distinct)
    missing = set(range(n)).difference(*checked)
    if missing:
        raise InputError(f"sets must hold every query, got none with query {min(missing)}", name="sets", got=missing)
    return tuple(checked)


def sets_of_labels(labels: Sequence[int]) -> tuple[Set, ...]:
    """Sets from a label per query: queries ascending, sets by their first query."""
    groups: dict[int, list[int]] = {}
    for query, label in enumerate(labels):
        groups.setdefault(int(label), []).append(query)
    return tuple(tuple(group) for group in groups.values())
