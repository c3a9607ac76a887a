"""Queries that come and go: a plan that follows without starting over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.plans.queries.boxes import Floats, as_boxes, bounding, unions
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.problem import BoxProblem, MergeAmounts, Set, check_cover, total_terms, united
from narrowcast.plans.queries.procedures import MergeProcedure, Rectangle, as_procedure
from narrowcast.plans.queries.sizes import Area, Given, GridHistogram, PointCounts, SizeFunction, as_sizes


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
        size: Area | GridHistogram | PointCounts | Given | SizeFunction | None = None,
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
        rectangle = isinstance(self._problem.procedure, Rectangle)
        self._boxes = SetBoxTable(start.shape[1]) if rectangle else None
        given_sets = Pair()(self._problem) if sets is None else check_cover(list(sets), self._problem.n)
        for members in given_sets:
            self._new_set(members)

    @property
    def sets(self) -> tuple[Set, ...]:
        """The sets, as ids of the queries that are still there."""
        return tuple(sorted(self._sets.values()))

    @property
    def named_sets(self) -> Mapping[int, Set]:
        """The sets by names that stay while a set does and are never used again."""
        return self._sets

    @property
    def problem(self) -> BoxProblem:
        """What any set of the queries costs, those that are gone included."""
        return self._problem

    @property
    def queries(self) -> tuple[int, ...]:
        """The ids of the queries that are still there."""
        return tuple(sorted(self._set_of))

    @property
    def terms(self) -> MergeAmounts:
        """Channels, rows sent and rows that clients throw away, of all sets together."""
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
        rest = tuple(q for q in self._take(name) if q != query)
        if rest:
            self._settle([self._new_set(rest)])

    def change(self, gone: Iterable[int] = (), new: ArrayLike = ()) -> tuple[int, ...]:
        """Many queries go and come at once, each touched set looked at once; the ids of the new ones.

        Parameters
        ----------
        gone : ids of queries that are there
        new : boxes of new queries, (n, d, 2)

        Returns
        -------
        tuple : the ids of the new queries, in their order

        Raises
        ------
        InputError : an id that is not there, or boxes of other dimensions; then nothing has changed
        """
        leaving = sorted(set(gone))
        for query in leaving:
            self._known(query)
        boxes = as_boxes(new, finite=self._finite)
        if len(boxes) and boxes.shape[1] != self._problem.boxes.shape[1]:
            raise InputError(
                f"new must have {self._problem.boxes.shape[1]} dimensions, got {boxes.shape[1]}", name="new"
            )
        touched: dict[int, set[int]] = {}
        for query in leaving:
            touched.setdefault(self._set_of.pop(query), set()).add(query)
        changed = []
        for name, out in touched.items():
            rest = tuple(q for q in self._take(name) if q not in out)
            changed += [self._new_set(rest)] if rest else []
        first = len(self._problem.boxes)
        if len(boxes):
            self._problem.extend(boxes)
        ids = tuple(range(first, first + len(boxes)))
        self._settle([*changed, *(self._new_set((query,)) for query in ids)])
        return ids

    def settle(self, queries: Iterable[int]) -> None:
        """Look again at the sets of these queries, as after a change."""
        self._settle(sorted({self._set_of[query] for query in queries if query in self._set_of}))

    def restart(self) -> bool:
        """Plan from nothing and keep that if it is cheaper; whether it was."""
        ids = self.queries
        fresh = [tuple(ids[i] for i in part) for part in Pair()(self._problem.subset(ids))]
        cheaper = total_terms(self._problem, fresh).priced(self._problem.constants) < self.cost * (1 - 1e-12)
        if cheaper:
            for name in list(self._sets):
                self._take(name)
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
        if self._boxes is not None:
            box = bounding(self._problem.boxes[list(members)])
            terms = self._problem.terms(members)
            cost = terms.priced(self._problem.constants)
            self._boxes.put(name, box, terms.size, cost, len(members))
        return name

    def _take(self, name: int) -> Set:
        if self._boxes is not None:
            self._boxes.drop(name)
        return self._sets.pop(name)

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
            members = self._take(name)
            if merge_gain >= split_gain:
                changed.append(self._new_set(united(members, self._take(other))))
            else:
                changed.append(self._new_set(tuple(q for q in members if q != query)))
                changed.append(self._new_set((query,)))

    def _best_merge(self, name: int) -> tuple[float, int]:
        if len(self._sets) < 2:
            return 0.0, -1
        if self._boxes is not None:
            return self._boxes.best_merge(name, self._problem)
        others = [other for other in self._sets if other != name]
        mine, theirs = self._sets[name], [self._sets[other] for other in others]
        gains = self._problem.cost(mine) + self._problem.costs(theirs) - self._problem.joined(mine, theirs)
        at = int(gains.argmax())
        return float(gains[at]), others[at]

    def _best_split(self, name: int) -> tuple[float, int]:
        members = self._sets[name]
        if len(members) == 1:
            return 0.0, -1
        alone = self._problem.costs([(query,) for query in members])
        if self._boxes is not None:
            gains = self._problem.cost(members) - rest_costs(self._problem, members) - alone
        else:
            rests = [tuple(q for q in members if q != query) for query in members]
            gains = self._problem.cost(members) - self._problem.costs(rests) - alone
        at = int(gains.argmax())
        return float(gains[at]), members[at]


class SetBoxTable:
    """The bounding boxes of sets, in arrays: the best partner of one is found without a look at any query."""

    def __init__(self, d: int) -> None:
        self._row: dict[int, int] = {}
        self._free: list[int] = []
        self.name = np.full(0, -1, np.int64)  # of the set in each row; -1: none
        self.box = np.zeros((0, d, 2))
        self.size, self.cost, self.count = np.zeros(0), np.zeros(0), np.zeros(0, np.int64)

    def put(self, name: int, box: Floats, size: float, cost: float, count: int) -> None:
        if not self._free:
            had = len(self.name)
            more = max(64, had)
            self.name = np.concatenate([self.name, np.full(more, -1)])
            self.box = np.concatenate([self.box, np.zeros((more, *self.box.shape[1:]))])
            self.size, self.cost = (np.concatenate([old, np.zeros(more)]) for old in (self.size, self.cost))
            self.count = np.concatenate([self.count, np.zeros(more, np.int64)])
            self._free = list(range(had + more - 1, had - 1, -1))
        at = self._row[name] = self._free.pop()
        self.name[at], self.box[at], self.size[at], self.cost[at], self.count[at] = name, box, size, cost, count

    def drop(self, name: int) -> None:
        at = self._row.pop(name)
        self.name[at] = -1
        self._free.append(at)

    def best_merge(self, name: int, problem: BoxProblem) -> tuple[float, int]:
        """The most that uniting a set with another gains, and with which; of equals the one that came first.

        Under K_T and K_U alone nothing is gained where even the larger of the two is too much for both: sizes grow
        with the box, so what cannot gain is not sized. Sizes of one's own may not, and all are asked for.
        """
        me = self._row[name]
        km, kt, ku = problem.constants.folded
        rows = np.flatnonzero(self.name >= 0)
        rows = rows[rows != me]
        apart = self.cost[me] + self.cost[rows]
        own = kt * (self.size[me] + self.size[rows])
        if not isinstance(problem.size, Given):
            # gain = km + kt·(S_a + S_b − S_ab) − ku·(what both sides hear more), and S_ab is at least the larger.
            larger = np.maximum(self.size[me], self.size[rows])
            more = self.count[me] * (larger - self.size[me]) + self.count[rows] * (larger - self.size[rows])
            may = km + own - kt * larger - ku * more > 0
            rows, apart, own = rows[may], apart[may], own[may]
            if not rows.size:
                return 0.0, -1
        joined = problem.size(unions(self.box[me], self.box[rows]))
        heard = self.count[me] * (joined - self.size[me]) + self.count[rows] * (joined - self.size[rows])
        gains = km + own - kt * joined - ku * heard
        best = gains.max()
        at = rows[gains == best]
        return float(best), int(self.name[at].min())


def rest_costs(problem: BoxProblem, members: Set) -> Floats:
    """The cost of a set without each of its queries: bounding boxes from the two outermost bounds of each side."""
    boxes, alone = problem.boxes[list(members)], problem.alone[list(members)]
    n = len(members)
    lows, highs = np.sort(boxes[:, :, 0], axis=0), np.sort(boxes[:, :, 1], axis=0)
    low = np.where(boxes[:, :, 0] == lows[0], lows[1], lows[0])
    high = np.where(boxes[:, :, 1] == highs[-1], highs[-2], highs[-1])
    sizes = problem.size(np.stack([low, high], axis=-1))
    km, kt, ku = problem.constants.folded
    costs: Floats = km + kt * sizes + ku * ((n - 1) * sizes - (alone.sum() - alone))
    return costs
