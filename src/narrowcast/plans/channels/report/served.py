"""What each receiver of a channels plan gets, wants and throws away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from narrowcast.model.arrays import Bools, Floats, Ints, distinct
from narrowcast.model.interest import Interest
from narrowcast.model.interest_tables import names_of
from narrowcast.plans.channels.result import ChannelsPlan


@dataclass(frozen=True, eq=False)
class Served:
    """A plan as arrays over its flows, users, sessions and groups; groups and sessions as numbered there.

    `session` and `group` are per flow, −1 for one that no group carries. `joins` is users × groups, `unicast`
    marks the pairs of the interest that are sent apart.
    """

    interest: Interest
    session: Ints
    group: Ints
    joins: Any
    unicast: Bools
    alpha: float
    beta: float

    @property
    def n_groups(self) -> int:
        return int(self.joins.shape[1])

    @cached_property
    def group_rate(self) -> Floats:
        """Θ of each group."""
        sent = self.group >= 0
        return _sums(self.group[sent], self.interest.rates[sent], self.n_groups)

    @cached_property
    def wanted(self) -> Floats:
        """The rate each user wants."""
        interest = self.interest
        return _sums(interest.users, interest.rates[interest.flow_of_pair], interest.n_users)

    @cached_property
    def received(self) -> Floats:
        """The rate that arrives at each user: all of its groups, and its unicast."""
        interest = self.interest
        apart = interest.rates[interest.flow_of_pair] * self.unicast
        alone = _sums(interest.users, apart, interest.n_users)
        return np.asarray(self.joins @ self.group_rate).ravel() + alone

    @cached_property
    def excess(self) -> Floats:
        """What each user's filtering costs beyond what it wants: α of its groups and β of its sessions."""
        interest = self.interest
        session = self.session[interest.flow_of_pair]
        there = (session >= 0) & ~self.unicast
        n = int(self.session.max(initial=-1)) + 1
        sent = self.session >= 0
        rate = _sums(self.session[sent], interest.rates[sent], n)
        taken = distinct(interest.users[there] * max(n, 1) + session[there])
        users, sessions = np.divmod(taken, max(n, 1))
        in_sessions = _sums(users, rate[sessions], interest.n_users)
        by_group = interest.rates[interest.flow_of_pair] * there
        own = _sums(interest.users, by_group, interest.n_users)
        in_groups = np.asarray(self.joins @ self.group_rate).ravel()
        return self.alpha * (in_groups - own) + self.beta * (in_sessions - own)

    @cached_property
    def filters_nothing(self) -> Bools:
        """Whether all that arrives at a user is wanted there."""
        return self.received - self.wanted <= 1e-9 * np.maximum(self.received, self.wanted)

    @property
    def sent(self) -> float:
        """The rate of all flows that somebody wants: what goes out if each message is sent once."""
        return float(self.interest.rates[self.interest.audience_sizes > 0].sum())

    @property
    def useful(self) -> float:
        """The share of all that arrives that is wanted."""
        received = float(self.received.sum())
        return float(self.wanted.sum()) / received if received else 1.0

    @property
    def useful_flooded(self) -> float:
        """The same if everything went to everybody."""
        return float(self.wanted.sum()) / ((self.sent * self.interest.n_users) or 1.0)

    @property
    def arrives(self) -> float:
        """What arrives in all, as a share of what flooding would bring."""
        return float(self.received.sum()) / ((self.sent * self.interest.n_users) or 1.0)

    def culprits(self, user: int, most: int = 3) -> list[tuple[int, float]]:
        """The fastest flows that a user gets and does not want: (flow, rate)."""
        groups = self.joins[[user]].indices
        offsets, flows = self.interest.by_user
        mine = np.zeros(self.interest.n_flows, np.bool_)
        mine[flows[offsets[user] : offsets[user + 1]]] = True
        unwanted = np.flatnonzero(np.isin(self.group, groups) & (self.group >= 0) & ~mine)
        top = unwanted[np.argsort(-self.interest.rates[unwanted], kind="stable")][:most]
        return [(int(k), float(self.interest.rates[k])) for k in top]


def served(plan: ChannelsPlan) -> Served:
    """A plan as its receivers see it."""
    interest = _named(plan.interest)
    who, joined = plan.joins
    n_groups = int(max(joined.max(initial=-1), plan.group_of_session.max(initial=-1))) + 1
    joins = sparse.csr_matrix((np.ones(who.size), (who, joined)), shape=(interest.n_users, max(n_groups, 1)))
    return Served(interest, plan.session_of_flow, plan.group_of_flow, joins, plan.by_unicast, plan.alpha, plan.beta)


def _named(interest: Interest) -> Interest:
    """The same with names; numbers stand for those that have none."""
    flows = names_of(interest.flow_names, range(interest.n_flows)).to_pylist()
    users = names_of(interest.user_names, range(interest.n_users)).to_pylist()
    return replace(interest, flow_names=tuple(flows), user_names=tuple(users))


def _sums(places: Ints, amounts: Floats, n: int) -> Floats:
    """The amounts of each place added up."""
    return np.bincount(places, np.asarray(amounts, np.float64), minlength=n).astype(np.float64)
