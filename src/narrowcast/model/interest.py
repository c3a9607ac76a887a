"""Who wants which flow, and how fast each flow is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints, amounts, distinct, frozen, indices

# Costs are sums of rates times users, and searches square them.
LARGEST = 1e70


@dataclass(frozen=True, eq=False)
class Interest:
    """Which user wants which flow, sparse, with a rate per flow.

    The users of flow k are `users[offsets[k]:offsets[k + 1]]`, ascending, each once. Names are
    optional and only travel along.

    >>> interest = Interest.from_pairs(flow=[0, 0, 1], user=[0, 1, 1], rates=[5.0, 2.0])
    >>> interest.n_flows, interest.n_users, interest.n_pairs
    (2, 2, 3)
    >>> interest.users_of(0).tolist()
    [0, 1]
    """

    offsets: Ints
    users: Ints
    rates: Floats
    n_users: int
    flow_names: tuple[str, ...] | None = None
    user_names: tuple[str, ...] | None = None

    @classmethod
    def from_pairs(
        cls,
        flow: ArrayLike,
        user: ArrayLike,
        rates: ArrayLike,
        *,
        n_users: int | None = None,
        flow_names: Sequence[str] | None = None,
        user_names: Sequence[str] | None = None,
    ) -> Interest:
        """From parallel index arrays and a rate per flow; a pair given twice counts once."""
        rate = amounts("rates", rates)
        n_flows = rate.size
        if n_users is None and user_names is not None:
            n_users = len(user_names)
        flows = indices("flow", flow, high=n_flows)
        users = indices("user", user, high=n_users)
        if flows.size != users.size:
            raise InputError(f"flow and user must have the same length, got {flows.size} and {users.size}", name="user")
        total = int(n_users if n_users is not None else users.max(initial=-1) + 1)
        if not float(rate.sum(dtype=np.longdouble)) * max(total, 1) < LARGEST:
            raise InputError("rates are too large: costs overflow", name="rates", hint="use a larger unit")
        pair = distinct(flows * max(total, 1) + users)
        flows, users = np.divmod(pair, max(total, 1))
        offsets = np.zeros(n_flows + 1, np.int64)
        np.cumsum(np.bincount(flows, minlength=n_flows), out=offsets[1:])
        for name, names, n in (("flow_names", flow_names, n_flows), ("user_names", user_names, total)):
            if names is not None and len(names) != n:
                raise InputError(f"{name} must have {n} entries, got {len(names)}", name=name)
        return cls(
            frozen(offsets),
            frozen(users),
            frozen(rate.copy()),
            total,
            None if flow_names is None else tuple(flow_names),
            None if user_names is None else tuple(user_names),
        )

    @property
    def n_flows(self) -> int:
        """How many flows there are, unwanted ones included."""
        return int(self.rates.size)

    @property
    def n_pairs(self) -> int:
        """How many wishes there are: pairs of a flow and a user who wants it."""
        return int(self.users.size)

    def users_of(self, flow: int) -> Ints:
        """The users who want a flow, ascending."""
        return self.users[self.offsets[flow] : self.offsets[flow + 1]]

    @cached_property
    def audience_sizes(self) -> Ints:
        """How many users want each flow."""
        return frozen(np.diff(self.offsets))

    @cached_property
    def flow_of_pair(self) -> Ints:
        """The flow of each pair, parallel to `users`."""
        return frozen(np.repeat(np.arange(self.n_flows), self.audience_sizes))

    @cached_property
    def by_user(self) -> tuple[Ints, Ints]:
        """The same pairs the other way round: (offsets, flows), the flows of user u ascending."""
        order = np.argsort(self.users, kind="stable")
        offsets = np.zeros(self.n_users + 1, np.int64)
        np.cumsum(np.bincount(self.users, minlength=self.n_users), out=offsets[1:])
        return frozen(offsets), frozen(self.flow_of_pair[order])

    def __repr__(self) -> str:
        return f"Interest({self.n_flows} flows, {self.n_users} users, {self.n_pairs} pairs)"
