"""What the planners cluster: points with a rate and an audience, one per distinct audience.

Flows with the same audience are one point with their rates added. Splitting such a class never pays
in any cost of this room (docs/decisions/0050), so nothing is lost, and there is far less to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Floats, Ints, distinct


@dataclass(frozen=True, eq=False)
class Points:
    """Points 0..n−1: the users of point k are `users[offsets[k]:offsets[k + 1]]`, its rate `rates[k]`."""

    offsets: Ints
    users: Ints
    rates: Floats
    n_users: int

    @property
    def n(self) -> int:
        return int(self.rates.size)

    @cached_property
    def sizes(self) -> Ints:
        """|V_k|, the audience of each point."""
        return np.diff(self.offsets)

    @cached_property
    def point_of_pair(self) -> Ints:
        return np.repeat(np.arange(self.n), self.sizes)

    @cached_property
    def useful(self) -> float:
        """What receivers want: Σ λ|V|."""
        return float(self.rates @ self.sizes)

    @cached_property
    def by_user(self) -> tuple[Ints, Ints]:
        """(offsets, points): the points that user u wants, ascending."""
        order = np.argsort(self.users, kind="stable")
        return _offsets(self.users, self.n_users), self.point_of_pair[order]

    def subset(self, chosen: Ints) -> Points:
        """Some of the points, in this order."""
        sizes = self.sizes[chosen]
        offsets = np.zeros(chosen.size + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], sizes)
        return Points(offsets, self.users[at], self.rates[chosen], self.n_users)

    def kept(self, pairs: Bools) -> Points:
        """The same points with some of their pairs."""
        offsets = np.concatenate([[0], np.cumsum(pairs)])[self.offsets]
        return Points(offsets, self.users[pairs], self.rates, self.n_users)

    def merged(self, cluster_of: Ints, n_clusters: int) -> Points:
        """Each cluster as one point: its rates added, its audiences united. Cluster −1 is left out."""
        cluster = cluster_of[self.point_of_pair]
        inside = cluster >= 0
        pair = distinct(cluster[inside] * self.n_users + self.users[inside])
        clusters, users = np.divmod(pair, max(self.n_users, 1))
        kept = cluster_of >= 0
        rates: Floats = np.bincount(cluster_of[kept], self.rates[kept], minlength=n_clusters).astype(np.float64)
        return Points(_offsets(clusters, n_clusters), users, rates, self.n_users)


def _offsets(keys: Ints, n: int) -> Ints:
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=n), out=offsets[1:])
    return offsets


def plain(interest: Interest) -> tuple[Points, Ints]:
    """One point per wanted flow, and the point of each flow (−1: nobody wants it)."""
    wanted = interest.audience_sizes > 0
    point_of_flow = np.where(wanted, np.cumsum(wanted) - 1, -1)
    return _points(interest).subset(np.flatnonzero(wanted)), point_of_flow


def collapse(interest: Interest, keep_apart: Ints | None = None) -> tuple[Points, Ints]:
    """One point per distinct audience, and the point of each flow (−1: nobody wants it).

    Audiences are compared by a 128-bit sum of random numbers per user, then word for word. Flows
    with different labels in `keep_apart` stay different points. O(pairs log flows).
    """
    n, sizes = interest.n_flows, interest.audience_sizes
    wanted = np.flatnonzero(sizes > 0)
    if wanted.size == 0:
        return plain(interest)
    salt = np.random.default_rng(0).integers(0, 2**63, (2, interest.n_users), dtype=np.uint64)
    starts = interest.offsets[wanted]
    keys = [np.add.reduceat(row[interest.users], starts) for row in salt]
    label = np.zeros(n, np.int64) if keep_apart is None else keep_apart
    order = np.lexsort((wanted, sizes[wanted], label[wanted], keys[1], keys[0]))
    first = np.zeros(wanted.size, np.bool_)
    first[0] = True
    for column in (keys[0], keys[1], label[wanted], sizes[wanted]):
        first[1:] |= column[order][1:] != column[order][:-1]
    run = np.cumsum(first) - 1
    leader = np.empty(wanted.size, np.int64)
    leader[order] = wanted[order][first][run]
    collided = _different(interest, wanted, leader)
    leader[collided] = wanted[collided]
    leaders, point = np.unique(leader, return_inverse=True)
    point_of_flow = np.full(n, -1)
    point_of_flow[wanted] = point
    points = _points(interest).subset(leaders)
    rates: Floats = np.bincount(point, interest.rates[wanted], minlength=leaders.size).astype(np.float64)
    return Points(points.offsets, points.users, rates, points.n_users), point_of_flow


def _different(interest: Interest, flows: Ints, leaders: Ints) -> Ints:
    """Positions of flows whose audience is not word for word that of their leader."""
    sizes = interest.audience_sizes[flows]
    ends = np.cumsum(sizes)
    inner = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
    mine = interest.users[np.repeat(interest.offsets[flows], sizes) + inner]
    other = interest.users[np.repeat(interest.offsets[leaders], sizes) + inner]
    at = np.repeat(np.arange(flows.size), sizes)
    return np.unique(at[mine != other])


def _points(interest: Interest) -> Points:
    return Points(interest.offsets, interest.users, interest.rates, interest.n_users)
