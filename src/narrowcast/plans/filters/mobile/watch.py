"""Flow and importance kept up to date while subscriptions and filters change."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import InputError
from narrowcast.model import Tree
from narrowcast.plans.filters.demand import demand_arrays
from narrowcast.plans.filters.kernels import counts as demand_counts
from narrowcast.plans.filters.kernels.flip import importance
from narrowcast.plans.filters.kernels.state import toggle
from narrowcast.plans.filters.methods.flip import FlipMove, Goal, filters_of, goal, make, next_move, state_of
from narrowcast.plans.filters.problem import amount, count, filter_mask, named, walk_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Pairs = tuple[ArrayLike, ArrayLike]


class TreeWatch:
    """A tree under changing demand: f(v), importance and the objective, always current.

    A subscription climbs from its leaf only while it changes what is wanted, and touches nothing
    else: O(changed vertices) per change. Behind it is a count per (vertex, item) of who wants the
    item, one entry for each vertex on an item's paths. The same pair may be subscribed by several
    users of a leaf; it is wanted until the last one leaves. Sizes that are not whole numbers leave
    rounding errors after very many changes.

    >>> import narrowcast as nc
    >>> watch = nc.filters.TreeWatch(nc.Tree([-1, 0, 0, 1, 1]), leaf=[3, 4], item=[0, 0], n_items=2)
    >>> watch.flow.tolist(), watch.value
    ([1.0, 1.0, 0.0, 1.0, 1.0], 4.0)
    >>> watch.change(subscribe=([2], [1]))  # two vertices want more: the leaf and the root
    2
    >>> watch.value
    8.0
    >>> watch.improve(k=1)
    (FlipMove(kind='add', source=None, target=0, gain=4.0),)
    """

    def __init__(
        self,
        tree: Tree,
        leaf: ArrayLike,
        item: ArrayLike,
        *,
        size: ArrayLike | None = None,
        n_items: int | None = None,
        filters: ArrayLike = (),
        objective: Goal = "traffic",
        filter_delay: float = 0.0,
        link_delay: float = 1.0,
    ) -> None:
        leaves, items, sizes = demand_arrays(tree, leaf, item, size)
        if size is None and n_items is not None:
            sizes = np.ones(max(count("n_items", n_items), sizes.size))
        self.tree, self.objective, self._sizes = tree, objective, sizes
        self._walk = walk_of(tree)
        self._depth = tree.depth[self._walk.vertex]
        mask = filter_mask(tree, np.asarray(filters, np.int64) if np.size(filters) == 0 else filters)
        form = goal(tree, objective, filter_delay, link_delay)
        self._state = state_of(tree, np.zeros(tree.n), form, mask)
        self._value = float(form.price[mask].sum())
        self._keys, self._counts, self._used = np.full(1024, -1, np.int64), np.zeros(1024, np.int32), 0
        self._apply(self._walk.place[leaves], items, 1)

    @property
    def flow(self) -> Floats:
        """f(v) now."""
        return self._state.flow[self._walk.place]

    @property
    def filters(self) -> Ints:
        """The vertices with a filter, ascending."""
        return filters_of(self.tree, self._state)

    @property
    def value(self) -> float:
        """The objective now."""
        return self._value

    @property
    def importance(self) -> Floats:
        """I(v) now: what the filter at v saves, or would save."""
        return importance(self._state)[self._walk.place]

    def change(self, subscribe: Pairs = ((), ()), unsubscribe: Pairs = ((), ())) -> int:
        """Apply a batch of (leaf, item) pairs; returns how often some f(v) changed.

        A pair to unsubscribe that nobody subscribed is an InputError, and nothing has changed.
        """
        come, go = self._pairs("subscribe", subscribe), self._pairs("unsubscribe", unsubscribe)
        changed = self._apply(*come, 1)
        try:
            return changed + self._apply(*go, -1)
        except InputError:
            self._apply(*come, -1)
            raise

    def put(self, filters: ArrayLike) -> None:
        """Replace the placement. Touches only what lies around the filters that come and go."""
        mask = filter_mask(self.tree, filters)
        for place in np.flatnonzero(mask[self._walk.vertex] != self._state.chosen).tolist():
            self._value += float(toggle(self._state, place))

    def improve(self, moves: int = 1, *, migration_cost: float = 0.0, k: int | None = None) -> tuple[FlipMove, ...]:
        """One batch of the heuristic, as in `improve`; returns the moves made. O(moves · n)."""
        fee, made = amount("migration_cost", migration_cost), []
        for _ in range(count("moves", moves)):
            move = next_move(self.tree, self._state, self.objective, self._value, fee, k)
            if move is None:
                break
            self._value += make(self.tree, self._state, move)
            made.append(move)
        return tuple(made)

    def _pairs(self, name: str, pairs: Pairs) -> tuple[Ints, Ints]:
        leaf, item = (np.asarray(a) if np.size(a) else np.zeros(0, np.int64) for a in pairs)
        leaves, items, _ = demand_arrays(self.tree, leaf, item)
        if items.size and items.max() >= self._sizes.size:
            raise InputError(
                f"{name} must be items from 0 to {self._sizes.size - 1}, got {items.max()}",
                name=name,
                got=int(items.max()),
                hint="give size or n_items for all items at the start",
            )
        return self._walk.place[leaves], items

    def _apply(self, leaves: Ints, items: Ints, by: int) -> int:
        done = changed = 0
        while done < leaves.size:
            n, self._used, touched, total = demand_counts.change(
                self._state, self._keys, self._counts, self._used, self._sizes, self._depth,
                leaves[done:], items[done:], by,
            )  # fmt: skip
            done, changed, self._value = done + n, changed + touched, self._value + total
            if done < leaves.size:
                self._unblock(leaves, items, done, by)
        return changed

    def _unblock(self, leaves: Ints, items: Ints, at: int, by: int) -> None:
        """Grow the table, or refuse a pair that nobody subscribed and undo what went before it."""
        v, item = int(leaves[at]), int(items[at])
        slot = demand_counts.slot(self._keys, v * self._sizes.size + item)
        if by < 0 and (self._keys[slot] < 0 or self._counts[slot] == 0):
            self._apply(leaves[:at], items[:at], 1)
            u = int(self._walk.vertex[v])
            raise InputError(f"item {item} is not wanted at {named(self.tree, u)}", name="unsubscribe", got=(u, item))
        room = (self._used + int(self._depth[v]) + 1) / demand_counts.LOAD
        size = 2 ** int(np.ceil(np.log2(max(room, self._keys.size)) + 1))
        self._keys, self._counts, self._used = demand_counts.regrow(self._keys, self._counts, size)
