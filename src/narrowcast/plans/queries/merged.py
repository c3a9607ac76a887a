"""What query merging returns: the sets, their merged queries, what they cost and what they save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from narrowcast.errors import InputError
from narrowcast.plans.queries.boxes import Floats, bounding_each
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.problem import BoxProblem, Problem, Set, Terms, total_terms
from narrowcast.plans.queries.procedures import Rectangle


@dataclass(frozen=True, slots=True)
class CostTerms:
    """The cost of a plan, part by part: `total` is `server + channel + transfer + client`."""

    total: float
    server: float
    channel: float
    transfer: float
    client: float
    amounts: Terms

    @classmethod
    def of(cls, terms: Terms, k: Constants) -> CostTerms:
        server = k.ka * (k.per_query * terms.channels + k.per_object * terms.size)
        channel, transfer, client = k.km * terms.channels, k.kt * terms.size, k.ku * terms.irrelevant
        return cls(server + channel + transfer + client, server, channel, transfer, client, terms)


@dataclass(frozen=True, eq=False, slots=True)
class MergePlan:
    """Sets of queries, each answered by one merged query.

    `boxes[i]` bounds set i; `pieces[i]` are the boxes whose union is its merged query (one, the same,
    under `rectangle`). `cost` is the plan's, `baseline` that of answering every query apart.
    """

    sets: tuple[Set, ...]
    boxes: Floats
    pieces: tuple[Floats, ...]
    cost: float
    terms: CostTerms
    sizes: Floats  # objects sent for each set
    baseline: float
    method: str
    procedure: str
    constants: Constants
    seed: int

    @property
    def saved(self) -> float:
        """The share of the baseline that merging saves."""
        return 1.0 - self.cost / self.baseline if self.baseline else 0.0

    def __repr__(self) -> str:
        return (
            f"MergePlan({sum(map(len, self.sets))} queries in {len(self.sets)} sets by {self.method}, "
            f"cost {self.cost:.6g} instead of {self.baseline:.6g})"
        )


def box_plan(problem: BoxProblem, sets: tuple[Set, ...], method: str, seed: int) -> MergePlan:
    """Pack an algorithm's sets, priced anew from the definition."""
    check_cover(sets, problem.n)
    terms = CostTerms.of(total_terms(problem, sets), problem.constants)
    boxes = bounding_each(problem.boxes, sets)
    if isinstance(problem.procedure, Rectangle):
        pieces = tuple(boxes[:, None])
    else:
        pieces = tuple(problem.procedure.pieces(problem.boxes[list(members)], problem.size) for members in sets)
    return MergePlan(
        sets,
        boxes,
        pieces,
        terms.total,
        terms,
        set_sizes(problem, sets),
        baseline(problem),
        method,
        problem.procedure.name,
        problem.constants,
        seed,
    )


def set_sizes(problem: BoxProblem, sets: Sequence[Set]) -> Floats:
    """How much is sent for each set."""
    if isinstance(problem.procedure, Rectangle) and sets:
        return np.asarray(problem.size(bounding_each(problem.boxes, sets)))
    return np.array([problem.terms(members).size for members in sets])


def baseline(problem: Problem) -> float:
    """The cost of answering every query apart."""
    return CostTerms.of(total_terms(problem, [(i,) for i in range(problem.n)]), problem.constants).total


def check_cover(sets: Sequence[Sequence[int]], n: int) -> tuple[Set, ...]:
    """The sets as sorted tuples; refuses an empty set, an unknown query and a query without an answer."""
    checked: list[Set] = []
    for at, members in enumerate(sets):
        distinct = tuple(sorted({int(i) for i in members}))
        if not distinct or distinct[0] < 0 or distinct[-1] >= n:
            raise InputError(f"sets[{at}] is {list(members)}; it must name queries 0 to {n - 1}", name="sets")
        checked.append(distinct)
    missing = set(range(n)).difference(*checked)
    if missing:
        raise InputError(f"query {min(missing)} is in no set; every query needs an answer", name="sets", got=missing)
    return tuple(checked)
