"""Queries that come and go: a plan that follows without starting over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.plans.queries.boxes import Floats, as_boxes
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.problem import BoxProblem, MergeAmounts, Set, check_cover, total_terms, united
from narrowcast.plans.queries.procedures import MergeProcedure, as_procedure
from narrowcast.plans.queries.sizes import Area, SizeFunction, as_sizes


class LiveQueries:
    """A merge plan under change. Every query it holds is in exactly one set, at every moment.

    A new query joins the set where it gains most, or stays alone; then, as after a removal, the sets it
    touched take the best of all merges with others and single-query splits until none gains (the moves of
    directed search, on what changed only). A change costs O(sets) a step instead of a whole plan; the
    plan drifts slowly from what starting over would give, and `restart` starts over if that is cheaper.
    It begins with `sets`, or with those that pair merging finds.

    >>> live = LiveQueries([[[0, 2], [0, 1]]], km=10, kt=9, ku=1)
    >>> live.add([[0, 1], [0, 2]]), live.sets
    (1, ((0, 1),))
    >>> live.remove(0)
    >>> live.sets
    ((1,),)
    """

    def __init__(
        self,
        boxes: ArrayLike = (),
        *,
        d: int = 2,
        km: float | None = None,
        kt: float | None = None,
        ku: float | None = None,
        ka: float = 0.0,
        procedure: str | MergeProcedure = "rectangle",
        size: SizeFunction | None = None,
        constants: Constants | None = None,
        sets: Iterable[Sequence[int]] | None = None,
    ) -> None:
        given = {name: value for name, value in (("km", km), ("kt", kt), ("ku", ku)) if value is not None}
        sizes = as_sizes(size)
        self._finite = isinstance(sizes, Area)
        start = as_boxes(boxes, finite=self._finite)
        start = start if len(start) else np.zeros((0, d, 2))
        self._problem = BoxProblem(start, constants or Constants(ka=ka, **given), as_procedure(procedure), sizes)
        self._sets: dict[int, Set] = {}  # by a name that is never used again
        self._set_of: dict[int, int] = {}  # query to the name of its set
        self._next = 0
        given_sets = Pair()(self._problem) if sets is None else check_cover(list(sets), self._problem.n)
        for members in given_sets:
            self._new_set(members)

    @property
    def sets(self) -> tuple[Set, ...]:
        """The sets, as ids of the queries that are still there."""
        return tuple(sorted(self._sets.values()))

    @property
    def queries(self) -> tuple[int, ...]:
        """The ids of the queries that are still there."""
        return tuple(sorted(self._set_of))

    @property
    def terms(self) -> MergeAmounts:
        return total_terms(self._problem, self.sets)

    @property
    def cost(self) -> float:
        """What the plan costs now, from the definition."""
        return self.terms.priced(self._problem.constants)

    def box(self, query: int) -> Floats:
        """The box of a query that is there."""
        self._known(query)
        return np.array(self._problem.boxes[query])

    def add(self, box: ArrayLike) -> int:
        """A new query; its id is never used again."""
        new = as_boxes(np.asarray(box, np.float64)[None], finite=self._finite)
        if new.shape[1] != self._problem.boxes.shape[1]:
            raise InputError(
                f"box needs {self._problem.boxes.shape[1]} dimensions, got {new.shape[1]}", name="box", got=new.shape
            )
        query = len(self._problem.boxes)
        self._problem.extend(new)
        self._settle([self._new_set((query,))])
        return query

    def remove(self, query: int) -> None:
        """A query goes; the rest of its set is looked at again."""
        self._known(query)
        name = self._set_of.pop(query)
        rest = tuple(q for q in self._sets.pop(name) if q != query)
        if rest:
            self._settle([self._new_set(rest)])

    def settle(self, queries: Iterable[int]) -> None:
        """Look again at the sets of these queries, as after a change."""
        self._settle(sorted({self._set_of[query] for query in queries if query in self._set_of}))

    def restart(self) -> bool:
        """Plan from nothing and keep that if it is cheaper; whether it was."""
        ids = self.queries
        fresh = [tuple(ids[i] for i in part) for part in Pair()(self._problem.subset(ids))]
        cheaper = total_terms(self._problem, fresh).priced(self._problem.constants) < self.cost * (1 - 1e-12)
        if cheaper:
            self._sets.clear()
            for members in fresh:
                self._new_set(members)
        return cheaper

    def _known(self, query: int) -> None:
        if query not in self._set_of:
            raise InputError(f"query {query!r} is not in the plan", name="query", got=query)

    def _new_set(self, members: Set) -> int:
        name = self._next
        self._next += 1
        self._sets[name] = members
        self._set_of.update(dict.fromkeys(members, name))
        return name

    def _settle(self, changed: list[int]) -> None:
        """The best merge or split of a changed set, until none gains. Costs fall with each, so it ends."""
        while changed:
            name = changed.pop()
            if name not in self._sets:
                continue
            merge_gain, other = self._best_merge(name)
            split_gain, query = self._best_split(name)
            if max(merge_gain, split_gain) <= 1e-12 * self._problem.cost(self._sets[name]):
                continue
            members = self._sets.pop(name)
            if merge_gain >= split_gain:
                changed.append(self._new_set(united(members, self._sets.pop(other))))
            else:
                changed.append(self._new_set(tuple(q for q in members if q != query)))
                changed.append(self._new_set((query,)))

    def _best_merge(self, name: int) -> tuple[float, int]:
        others = [other for other in self._sets if other != name]
        if not others:
            return 0.0, -1
        mine, theirs = self._sets[name], [self._sets[other] for other in others]
        gains = self._problem.cost(mine) + self._problem.costs(theirs) - self._problem.joined(mine, theirs)
        at = int(gains.argmax())
        return float(gains[at]), others[at]

    def _best_split(self, name: int) -> tuple[float, int]:
        members = self._sets[name]
        if len(members) == 1:
            return 0.0, -1
        rests = [tuple(q for q in members if q != query) for query in members]
        alone = [(query,) for query in members]
        gains = self._problem.cost(members) - self._problem.costs(rests) - self._problem.costs(alone)
        at = int(gains.argmax())
        return float(gains[at]), members[at]
