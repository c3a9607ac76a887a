"""Classes into channels: exactly for a few, by merging and moving for many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.network.methods.backbone import BackboneTrees, Classes, Filters

#: Classes up to which channels are found exactly, over all their partitions.
EXACT = 8
SEEDS = 120  # heaviest classes that are merged pair by pair
MOVED = 40  # heaviest classes that may go to any channel, whatever it costs to extend it
ROUNDS = 4
NEAR = 4  # channels that a class is tried in, beside one of its own


@dataclass(frozen=True, eq=False)
class Channels:
    """The channel of each class (−1: none has a tree for it), the tree of each channel, and its cost."""

    channel_of: Ints
    trees: tuple[Ints, ...]
    costs: Floats

    @property
    def cost(self) -> float:
        return float(self.costs.sum())


Stop = Callable[[], bool]


def channelized(
    backbone: BackboneTrees, classes: Classes, filters: Filters, most: int, stop: Stop, start: Sequence[Ints] = ()
) -> Channels:
    """At most so many channels; a class that no channel can carry in time has none. `start` are trees to go on from."""
    if classes.n == 0 or most == 0:
        return Channels(np.full(classes.n, -1), (), np.zeros(0))
    if classes.n <= EXACT:
        found = _exact(backbone, classes, filters, most)
        if found is not None:
            return found
    return _searched(backbone, classes, filters, most, stop, start)


def _exact(backbone: BackboneTrees, classes: Classes, filters: Filters, most: int) -> Channels | None:
    """The best of all partitions, by dynamic programming over subsets: O(3^n)."""
    n = classes.n
    price: dict[int, tuple[float, Ints]] = {}
    for mask in range(1, 1 << n):
        members = np.array([i for i in range(n) if mask >> i & 1], np.int64)
        price[mask] = backbone.channel(classes, members, filters)
    best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    full = (1 << n) - 1
    for _ in range(min(most, n)):
        last, row = best[-1], {0: (0.0, 0)}
        for mask in range(1, full + 1):
            low, part = mask & -mask, mask
            found = last.get(mask, (np.inf, 0))
            while part:
                rest = last.get(mask ^ part)
                if part & low and rest is not None and rest[0] + price[part][0] < found[0] * (1 - 1e-12):
                    found = rest[0] + price[part][0], part
                part = (part - 1) & mask
            if np.isfinite(found[0]):
                row[mask] = found
        best.append(row)
    if full not in best[-1]:
        return None
    channel_of, costs = np.full(n, -1), []
    trees: list[Ints] = []
    mask, level = full, len(best) - 1
    while mask:
        while level > 1 and best[level - 1].get(mask, (np.inf, 0)) == best[level][mask]:
            level -= 1
        part = best[level][mask][1]
        channel_of[[i for i in range(n) if part >> i & 1]] = len(trees)
        costs.append(price[part][0])
        trees.append(price[part][1])
        mask, level = mask ^ part, level - 1
    return Channels(channel_of, tuple(trees), np.array(costs))


def _searched(
    backbone: BackboneTrees, classes: Classes, filters: Filters, most: int, stop: Stop, start: Sequence[Ints]
) -> Channels:
    """Merge the heaviest classes pair by pair, give all others to what carries them for least, then move what pays."""
    found = _assigned(backbone, classes, filters, list(start) or _first_trees(backbone, classes, most))
    for _ in range(ROUNDS if found.trees else 0):
        before = found.cost
        for step in (_again, _moved):
            if stop():
                return found
            after = step(backbone, classes, found, filters, most)
            if after.cost < found.cost:
                found = after
        if found.cost >= before * (1 - 1e-9):
            break
    return found


def _first_trees(backbone: BackboneTrees, classes: Classes, most: int) -> list[Ints]:
    """Trees of merged classes, one over everything, and one of least delay per source that has bounds."""
    tight = np.flatnonzero(np.isfinite(classes.bound).any(axis=1))
    safe = []
    for source in np.unique(classes.source[tight]).tolist():
        root = int(backbone.problem.demand.gateway[source])
        ends = backbone.ends(classes, tight[classes.source[tight] == source])
        safe.append(backbone.quickest(root, ends))
    safe = safe[: max(most - 1, 0)]
    whole = backbone.trees(backbone.ends(classes, np.arange(classes.n)))[0][1]
    room = most - len(safe) - 1
    return [whole, *safe, *(_merged(backbone, classes, room) if room > 0 else [])]


def _assigned(backbone: BackboneTrees, classes: Classes, filters: Filters, trees: list[Ints]) -> Channels:
    """Every class to the tree that carries it for least, then each channel on its own best tree."""
    price = np.column_stack([backbone.marginal(classes, links, filters) for links in trees])
    best = price.argmin(axis=1)
    label = np.where(np.isfinite(price[np.arange(classes.n), best]), best, -1)
    return _retreed(backbone, classes, label, filters, trees)


def _retreed(
    backbone: BackboneTrees, classes: Classes, label: Ints, filters: Filters, trees: Sequence[Ints]
) -> Channels:
    costs, channel_of = [], np.full(classes.n, -1)
    new: list[Ints] = []
    for c in np.unique(label[label >= 0]).tolist():
        members = np.flatnonzero(label == c)
        known = trees[c] if c < len(trees) else None
        cost, links = backbone.channel(classes, members, filters, known)
        channel_of[members] = len(new)
        new.append(links)
        costs.append(cost)
    return Channels(channel_of, tuple(new), np.array(costs))


def _again(backbone: BackboneTrees, classes: Classes, found: Channels, filters: Filters, most: int) -> Channels:
    """Every class to the channel that carries it for least, as the trees are now."""
    after = _assigned(backbone, classes, filters, list(found.trees))
    return after if (after.channel_of >= 0).sum() >= (found.channel_of >= 0).sum() else found


def _ends(backbone: BackboneTrees, classes: Classes) -> Bools:
    """Classes × sites: where its tree must be, the source included."""
    ends = classes.needs.copy()
    ends[np.arange(classes.n), classes.source] = True
    return ends


def _brokers(backbone: BackboneTrees, row: Bools) -> frozenset[int]:
    return frozenset(backbone.problem.demand.gateway[np.flatnonzero(row)].tolist())


def _price(backbone: BackboneTrees, row: Bools) -> float:
    return backbone.trees(_brokers(backbone, row))[0][0]


def _merged(backbone: BackboneTrees, classes: Classes, most: int) -> list[Ints]:
    """Trees of the heaviest classes, merged until they are few enough, the cheapest pair first."""
    ends = _ends(backbone, classes)
    weight = classes.bytes_s * np.array([_quick(backbone, row) for row in ends])
    heavy = np.argsort(-weight, kind="stable")[: max(SEEDS, 2 * most)]
    rows = [ends[i].copy() for i in heavy]
    load = classes.bytes_s[heavy].tolist()
    cost = [load[a] * _price(backbone, rows[a]) for a in range(len(rows))]
    alive = list(range(len(rows)))
    rise = np.full((len(rows), len(rows)), np.inf)

    def reprice(a: int, others: list[int]) -> None:
        for b in others:
            if a != b:
                both = (load[a] + load[b]) * _price(backbone, rows[a] | rows[b])
                rise[min(a, b), max(a, b)] = both - cost[a] - cost[b]

    for a in alive:
        reprice(a, [b for b in alive if b > a])
    while len(alive) > most:
        a, b = (int(at) for at in np.unravel_index(int(np.argmin(rise)), rise.shape))
        rows[a] = rows[a] | rows[b]
        load[a] += load[b]
        cost[a] = load[a] * _price(backbone, rows[a])
        alive.remove(b)
        rise[b, :] = rise[:, b] = np.inf
        reprice(a, alive)
    return [backbone.trees(_brokers(backbone, rows[a]))[0][1] for a in alive]


def _quick(backbone: BackboneTrees, row: Bools) -> float:
    """Roughly what a tree over these sites costs: ways from the first of them."""
    at = backbone.problem.demand.gateway[np.flatnonzero(row)]
    return float(backbone.problem.by_cost.cost[at[0], at[1:]].sum()) if at.size > 1 else 0.0


def _moved(backbone: BackboneTrees, classes: Classes, found: Channels, filters: Filters, most: int) -> Channels:
    """The heaviest classes one by one to where they cost least, exactly priced, a channel of their own among it."""
    label = found.channel_of.copy()
    if (label < 0).all():
        return found
    costs = dict(enumerate(found.costs.tolist()))
    tree = np.array([backbone.price[links].sum() for links in found.trees])
    waste = np.where(label >= 0, classes.bytes_s * tree[label], 0.0)
    for i in np.argsort(-waste, kind="stable")[:MOVED].tolist():
        if label[i] < 0:
            continue
        here = int(label[i])
        stay = np.flatnonzero(label == here)
        left = stay[stay != i]
        without = backbone.channel(classes, left, filters)[0] if left.size else 0.0
        best, to, price = costs[here] * (1 - 1e-12) - without, here, 0.0
        new = next((c for c in range(most) if c not in costs), None)
        near = _nearest(backbone, classes, label, costs, i)
        for c in near + ([new] if new is not None and left.size else []):
            if c == here:
                continue
            with_it = backbone.channel(classes, np.append(np.flatnonzero(label == c), i), filters)[0]
            rise = with_it - costs.get(c, 0.0)
            if rise < best:
                best, to, price = rise, c, with_it
        if to != here:
            label[i] = to
            costs[to] = price
            costs[here] = without
            if not left.size:
                del costs[here]
    return _retreed(backbone, classes, label, filters, found.trees)


def _nearest(backbone: BackboneTrees, classes: Classes, label: Ints, costs: dict[int, float], i: int) -> list[int]:
    """The channels that share most with a class, a few."""
    if len(costs) <= 2 * NEAR:
        return sorted(costs)
    need = classes.needs[i]
    reach = {c: classes.needs[label == c].any(axis=0) for c in costs}
    apart = {c: int((row & ~need).sum() + 2 * (need & ~row).sum()) for c, row in reach.items()}
    return sorted(sorted(costs, key=lambda c: (apart[c], c))[:NEAR])
