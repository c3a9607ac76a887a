"""Channel plans go on by local search from where they are: flows keep their session unless moving pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from narrowcast.errors import InfeasibleError
from narrowcast.model import Interest
from narrowcast.model.arrays import Ints, distinct, frozen
from narrowcast.model.demand import Demand
from narrowcast.plans.channels import api as channels
from narrowcast.plans.channels.plan import packed, usable
from narrowcast.plans.channels.replan_hybrid import ContinuedHybrid
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.channels.tally import Tally
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.numbers import agreed

PASSES = 4  # over all flows, since each one that moves changes the others


@dataclass(frozen=True)
class ChannelSettings:
    """What a channel plan is made with."""

    groups: int
    sessions: int
    alpha: float = 1.0
    beta: float = 1.0
    seed: int = 0
    joins_per_subscriber: int | None = None
    rate_per_group: float | None = None


@dataclass(frozen=True, eq=False)
class ContinuedChannels:
    """The session of each flow (−1: the plan does not know it) and the group of each session, under an interest.

    A flow that is wanted and that the plan does not know goes where the runtime sends it: into one more
    channel, in a group of its own, which everybody takes who may want something there.
    """

    session: Ints
    group: Ints
    demand: Demand
    settings: ChannelSettings

    @property
    def interest(self) -> Interest:
        return self.demand.interest

    @classmethod
    def of(cls, plan: ChannelsPlan, demand: Demand) -> ContinuedChannels:
        """A plan, under the demand of now."""
        return cls(plan.session_of_flow, plan.group_of_session, plan.demand, settings_of(plan)).under(demand)

    @classmethod
    def begin(cls, demand: Demand, settings: ChannelSettings) -> ContinuedChannels:
        """A plan made from nothing."""
        nowhere = np.full(demand.interest.n_flows, -1)
        return cls(frozen(nowhere), np.zeros(0, np.int64), demand, settings).anew()

    @property
    def size(self) -> int:
        return int(np.count_nonzero(self.interest.audience_sizes))

    @cached_property
    def _served(self) -> tuple[Ints, Ints]:
        """The two maps with one more session for what the plan does not know, in one more group."""
        wanted = self.interest.audience_sizes > 0
        rest = self.group.size
        session = np.where(wanted, np.where(self.session >= 0, self.session, rest), -1)
        return session, np.append(self.group, self.group.max(initial=-1) + 1)

    @cached_property
    def cost(self) -> float:
        s = self.settings
        return channels.cost(self.interest, *self._served, s.alpha, s.beta).excess

    def under(self, demand: Demand) -> ContinuedChannels:
        interest = demand.interest
        if interest.flow_names == self.interest.flow_names:
            return replace(self, demand=demand)
        known = dict(zip(self.interest.flow_names or (), self.session.tolist(), strict=True))
        session = np.array([known.get(name, -1) for name in interest.flow_names or ()], np.int64)
        return replace(self, session=frozen(session), demand=demand)

    def improved(self, budget: Budget) -> ContinuedChannels:
        """As they are, where no plan within the budget keeps the limits."""
        try:
            return self._polished(self._made(budget, (self.session, self.group)), budget)
        except InfeasibleError:
            return self

    def _polished(self, found: ContinuedChannels, budget: Budget) -> ContinuedChannels:
        """The same with every flow where it costs least, a move from where it is now counted at `least`.

        A search goes many ways that are as good as staying; this takes them back, and finds what it missed.
        """
        s = self.settings
        if s.rate_per_group is not None or s.joins_per_subscriber is not None or budget.joins is not None:
            return found  # the other way may not keep the limits
        tally = Tally(self.interest, found.session, found.group, s.alpha, s.beta)
        same = np.flatnonzero(self.group == found.group[: self.group.size])
        home = np.where(np.isin(self.session, same), self.session, -1)
        weight = self.interest.rates * self.interest.audience_sizes
        order = np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)]
        most = self.size if budget.moves is None else budget.moves
        away = int(np.count_nonzero(((home < 0) | (tally.session != home))[order] & (self.session[order] >= 0)))
        for _ in range(PASSES):
            before = tally.session.copy()
            for flow in order.tolist():
                away += _settle(tally, flow, int(home[flow]), budget.least, away < most)
            if np.array_equal(before, tally.session):
                break
        return replace(found, session=frozen(tally.session))

    def anew(self) -> ContinuedChannels:
        """Numbered so that as many flows as possible are where they were."""
        made = self._made(Budget(), None)
        s = self.settings
        n_sessions = max(usable(s.sessions, self.interest), self.group.size)
        n_groups = max(usable(s.groups, self.interest), int(self.group.max(initial=-1)) + 1)
        session = agreed(made.session, self.session, n_sessions)
        group = agreed(_groups(made), _groups(self), n_groups)
        renumbered = np.zeros(n_sessions, np.int64)
        renumbered[session[: made.group.size]] = group[made.group]
        known = made.session >= 0
        return replace(made, session=frozen(np.where(known, session[made.session], -1)), group=frozen(renumbered))

    def reorganised(self, least: float) -> ContinuedChannels:
        return self._polished(self.anew(), Budget(least=least))

    def _made(self, budget: Budget, previous: tuple[Ints, Ints] | None) -> ContinuedChannels:
        s = self.settings
        limits = channels.Limits(s.joins_per_subscriber, s.rate_per_group, moves=budget.moves, new_joins=budget.joins)
        bound = previous is not None or s.joins_per_subscriber is not None or s.rate_per_group is not None
        made = channels.plan(
            self.interest, s.groups, s.sessions, alpha=s.alpha, beta=s.beta, seed=s.seed, previous=previous,
            limits=limits if bound else None,
        )  # fmt: skip
        return replace(self, session=made.session_of_flow, group=made.group_of_session)

    def change_to(self, other: ContinuedChannels) -> Change:
        (mine, my_group), (theirs, their_group) = self._served, other._served
        sent = mine >= 0
        differs = sent & ((mine != theirs) | (my_group[mine] != their_group[theirs]))
        moved = differs & (self.session >= 0)
        weight = self.interest.rates * self.interest.audience_sizes
        joins = np.setdiff1d(other._joins(), self._joins()).size
        return Change(int(moved.sum()), int(joins), float(weight[differs].sum()))

    def _joins(self) -> Ints:
        """(user, group) pairs as numbers; the group of the unknown is one of its own whatever its number."""
        session, group = self._served
        of_pair = session[self.interest.flow_of_pair]
        number = np.where(of_pair == self.group.size, 0, group[of_pair] + 1)
        found: Ints = distinct(self.interest.users * (self.settings.groups + 2) + number)
        return found

    def plan(self) -> ChannelsPlan:
        s, wanted = self.settings, self.interest.audience_sizes > 0
        session = np.where(wanted, self.session, -1)
        bound = s.joins_per_subscriber is not None or s.rate_per_group is not None
        limits = channels.Limits(s.joins_per_subscriber, s.rate_per_group) if bound else None
        demand = Demand(self.interest, self.demand.key)
        return packed(
            demand, session, self.group, "search", s.groups, s.sessions, s.alpha, s.beta, s.seed, limits=limits
        )


def continued(plan: ChannelsPlan, demand: Demand) -> ContinuedChannels | ContinuedHybrid:
    """A plan under the demand of now, with unicast or without, as the loop goes on from it."""
    return (ContinuedChannels if plan.weights is None else ContinuedHybrid).of(plan, demand)


def settings_of(plan: ChannelsPlan) -> ChannelSettings:
    """What a plan was made with, limits of receivers and groups included."""
    limits = plan.limits or channels.Limits()
    joins, rate = limits.joins_per_subscriber, limits.rate_per_group
    return ChannelSettings(plan.groups, plan.sessions or 500, plan.alpha, plan.beta, plan.seed, joins, rate)


def _groups(plan: ContinuedChannels) -> Ints:
    """The group of each flow, −1 where it has none."""
    return np.where(plan.session >= 0, plan.group[plan.session], -1) if plan.group.size else plan.session


def _settle(tally: Tally, flow: int, home: int, least: float, free: bool) -> int:
    """Put a flow where it costs least; by how much the number of flows away from home has changed."""
    costs = tally.costs_of_moving(flow)
    at = int(tally.session[flow])
    if home >= 0:
        costs += least
        costs[home] -= least
        if at == home and not free:
            return 0
    to = int(costs.argmin())
    if to == at or not costs[to] < costs[at] * (1 - 1e-12) - 1e-12:
        return 0
    tally.move(flow, to)
    return 0 if home < 0 else int(at == home) - int(to == home)
