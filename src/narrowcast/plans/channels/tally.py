"""What a channel plan costs, kept up to date while single flows change their session: O(audience) a change."""

from __future__ import annotations

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Floats, Ints


class Tally:
    """The rate and the number of wishes of every user, in every session and every group.

    A session costs its rate times its users, at price beta; a group the same, at price alpha (the part that
    nobody can avoid is the same for all plans, and left in). Memory is users × (sessions + groups) × 4 bytes.

    >>> interest = Interest.from_pairs([0, 0, 1, 2], [0, 1, 1, 2], [4.0, 2.0, 1.0])
    >>> tally = Tally(interest, np.array([0, 0, 1]), np.array([0, 0]), 1.0, 1.0)
    >>> tally.cost, tally.costs_of_moving(1).tolist(), tally.cost
    (34.0, [0.0, 1.0], 34.0)
    >>> tally.move(1, 1); tally.cost
    35.0
    """

    def __init__(self, interest: Interest, session: Ints, group: Ints, alpha: float, beta: float) -> None:
        self._interest, self.session, self._group = interest, session.copy(), group
        n = interest.n_users
        levels = ((session, group.size, beta), (np.append(group, -1)[session], int(group.max(initial=-1)) + 1, alpha))
        self._levels = [Level(interest, label, size, n, price) for label, size, price in levels]

    @property
    def cost(self) -> float:
        return float(sum(level.cost for level in self._levels))

    def costs_of_moving(self, flow: int) -> Floats:
        """How much more it would cost with the flow in each session; 0 for its own. O(audience · sessions)."""
        users, rate = self._interest.users_of(flow), float(self._interest.rates[flow])
        home = int(self.session[flow])
        sessions, groups = self._levels
        for level, at in ((sessions, home), (groups, int(self._group[home]))):
            level.change(users, rate, at, -1)
        found: Floats = sessions.costs_of_adding(users, rate) + groups.costs_of_adding(users, rate)[self._group]
        for level, at in ((sessions, home), (groups, int(self._group[home]))):
            level.change(users, rate, at, 1)
        rest: Floats = found - found[home]
        return rest

    def move(self, flow: int, to: int) -> None:
        users, rate = self._interest.users_of(flow), float(self._interest.rates[flow])
        home = int(self.session[flow])
        for level, a, b in zip(self._levels, (home, self._group[home]), (to, self._group[to]), strict=True):
            level.change(users, rate, int(a), -1)
            level.change(users, rate, int(b), 1)
        self.session[flow] = to


class Level:
    """Sessions, or groups: how often each user wants something in each, and the rate of each."""

    def __init__(self, interest: Interest, label: Ints, size: int, n_users: int, price: float) -> None:
        wanted = interest.audience_sizes > 0
        self.rate: Floats = np.bincount(label[wanted], interest.rates[wanted], size).astype(np.float64)
        of_pair = label[interest.flow_of_pair]
        wishes = np.bincount(of_pair * n_users + interest.users, minlength=size * n_users)
        self.counts = wishes.astype(np.int32).reshape(size, n_users)
        self.members = np.count_nonzero(self.counts, axis=1)
        self.price = price

    @property
    def cost(self) -> float:
        return self.price * float(self.rate @ self.members)

    def change(self, users: Ints, rate: float, at: int, by: int) -> None:
        """A flow comes (by = 1) or goes (by = −1)."""
        row = self.counts[at]
        row[users] += by
        self.members[at] += by * int(np.count_nonzero(row[users] == (by == 1)))
        self.rate[at] += by * rate

    def costs_of_adding(self, users: Ints, rate: float) -> Floats:
        """How much more a flow of these users costs here, in each."""
        new = np.count_nonzero(self.counts[:, users] == 0, axis=1)
        found: Floats = self.price * (self.rate * new + rate * (self.members + new))
        return found
