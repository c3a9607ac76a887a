"""The batch driver: subscriptions change, statistics follow, filters move if it is worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model import Tree
from narrowcast.plans.filters.methods.flip import Goal
from narrowcast.plans.filters.methods.optimum import place
from narrowcast.plans.filters.methods.weighted import place_for_delay
from narrowcast.plans.filters.mobile.fleet import Activate, Fleet, Message, Migrate, Passivate, Spawn
from narrowcast.plans.filters.mobile.watch import Pairs, TreeWatch
from narrowcast.plans.filters.problem import amount, count

Ints = NDArray[np.int64]
Method = Literal["heuristic", "optimum", "still"]
METHODS = ("heuristic", "optimum", "still")


@dataclass(frozen=True, eq=False, slots=True)
class FilterBatch:
    """What one batch did.

    `before` is the objective of the old placement under the new demand, `after` that of the new
    one; `worthwhile` is false when a better placement was known but saves less than moving costs.
    `changed` counts the updates of some f(v).
    """

    messages: tuple[Message, ...]
    filters: Ints
    before: float
    after: float
    worthwhile: bool
    changed: int


class Batches:
    """Runs a tree batch after batch (content-based multicast, §3.2 and §6.1).

    Starts from the optimum for the given demand. Then each `run` applies changed subscriptions and
    either improves by at most `moves` moves ("heuristic"), or goes to the new optimum if that saves
    more than `migration_cost` per moved filter ("optimum"), or leaves the filters ("still"). The
    messages bring the filters there; `fleet` has already carried them out.

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0, 1, 1, 2, 2])
    >>> batches = nc.filters.Batches(tree, leaf=[3, 4, 5, 5, 6, 6], item=[0, 1, 0, 1, 0, 1], k=1)
    >>> batches.opening
    (Spawn(source=None, target=1),)
    >>> batch = batches.run(subscribe=([3, 4], [1, 0]), unsubscribe=([5, 6], [1, 0]))
    >>> batch.messages, batch.before, batch.after
    ((Migrate(source=1, target=2),), 12.0, 10.0)
    """

    def __init__(
        self,
        tree: Tree,
        leaf: ArrayLike,
        item: ArrayLike,
        *,
        k: int | None = None,
        size: ArrayLike | None = None,
        n_items: int | None = None,
        objective: Goal = "traffic",
        filter_delay: float = 0.0,
        link_delay: float = 1.0,
        method: Method = "heuristic",
        moves: int = 1,
        migration_cost: float = 0.0,
    ) -> None:
        if method not in METHODS:
            raise UnsupportedError(f"method must be one of {', '.join(METHODS)}, got {method!r}", works=METHODS)
        if objective == "traffic" and k is None:
            raise InputError("k, the most filters allowed, must be given for objective 'traffic'", name="k")
        self.method, self.moves, self.fee = method, count("moves", moves), amount("migration_cost", migration_cost)
        self.k = None if k is None else count("k", k)
        self._delays = {"filter_delay": filter_delay, "link_delay": link_delay}
        self.watch = TreeWatch(
            tree, leaf, item, size=size, n_items=n_items, objective=objective,
            filter_delay=filter_delay, link_delay=link_delay,
        )  # fmt: skip
        self.fleet = Fleet()
        self.watch.put(self._optimum())
        self.opening = tuple(Spawn(None, v) for v in self.watch.filters.tolist())
        self.fleet.run(*self.opening)

    def run(self, subscribe: Pairs = ((), ()), unsubscribe: Pairs = ((), ())) -> FilterBatch:
        """Apply one batch of changed subscriptions and move the filters if it pays."""
        changed = self.watch.change(subscribe, unsubscribe)
        before, old = self.watch.value, self.watch.filters
        worthwhile = True
        if self.method == "heuristic":
            self.watch.improve(self.moves, migration_cost=self.fee, k=self.k)
        elif self.method == "optimum":
            worthwhile = self._jump(old, before)
        messages = orders(self.watch.tree, self.fleet, old, self.watch.filters)
        self.fleet.run(*messages)
        return FilterBatch(messages, self.watch.filters, before, self.watch.value, worthwhile, changed)

    def _jump(self, old: Ints, before: float) -> bool:
        """Go to the optimum, and back if that saves less than it costs."""
        new = self._optimum()
        moved = max(np.setdiff1d(new, old).size, np.setdiff1d(old, new).size)
        self.watch.put(new)
        if moved == 0 or before - self.watch.value > self.fee * moved:
            return True
        self.watch.put(old)
        return False

    def _optimum(self) -> Ints:
        tree, flow = self.watch.tree, self.watch.flow
        if self.watch.objective == "delay":
            return place_for_delay(tree, flow, **self._delays).filters
        return place(tree, flow, self.k or 0).filters


def orders(tree: Tree, fleet: Fleet, old: Ints, new: Ints) -> tuple[Message, ...]:
    """The messages that turn one placement into another.

    Where a passive filter waits it is activated; elsewhere a filter no longer needed migrates;
    where none is left, the next active filter above (or the publisher) spawns one. Filters left
    over become passive, last: until then they only pass on less of what nobody wants.
    """
    come, go = np.setdiff1d(new, old).tolist(), np.setdiff1d(old, new).tolist()
    stay = set(np.intersect1d(old, new).tolist())
    woken = [v for v in come if v in fleet.passive]
    far = [v for v in come if v not in fleet.passive]
    messages: list[Message] = [Activate(v) for v in woken]
    messages += [Migrate(u, v) for u, v in zip(go, far, strict=False)]
    messages += [Spawn(_parent_filter(tree, stay, v), v) for v in far[len(go) :]]
    messages += [Passivate(u) for u in go[len(far) :]]
    return tuple(messages)


def _parent_filter(tree: Tree, active: set[int], v: int) -> int | None:
    u = int(tree.parents[v])
    while u >= 0 and u not in active:
        u = int(tree.parents[u])
    return u if u >= 0 else None
