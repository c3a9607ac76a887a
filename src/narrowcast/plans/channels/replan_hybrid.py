"""Plans with unicast go on flow by flow: to another session, to unicast or back, where that saves enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Ints, distinct, frozen
from narrowcast.model.demand import Demand
from narrowcast.plans.channels.hybrid import check_weights, hybrid, packed_hybrid
from narrowcast.plans.channels.methods.flow_moves import FlowMoves
from narrowcast.plans.channels.mixed import Terms, Weights, two_level_terms
from narrowcast.plans.channels.mixed_tally import NOWHERE, UNICAST, MixedTally
from narrowcast.plans.channels.plan import usable
from narrowcast.plans.channels.points import plain
from narrowcast.plans.channels.result import ChannelsPlan, places
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.numbers import agreed

GONE = -3  # where nothing can go back to: a session that is now in another group


@dataclass(frozen=True)
class HybridSettings:
    """What a plan with unicast is made with; without `sessions` each group is one."""

    groups: int
    w: Weights
    sessions: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, plan: ChannelsPlan) -> HybridSettings:
        w = check_weights(plan.weights or (1, 1, 1), plan.parameters.get("cap"))
        return cls(plan.groups, replace(w, filter=plan.beta), plan.sessions, plan.seed)

    @property
    def more(self) -> dict[str, float]:
        """The parameters of a plan beside groups and weights."""
        if self.sessions is not None:
            return {"sessions": self.sessions, "beta": self.w.filter}
        return {"cap": self.w.cap} if self.w.cap < 1 else {}


@dataclass(frozen=True, eq=False)
class ContinuedHybrid:
    """The session of each flow (−1: by unicast, −2: the plan does not know it), the group of each session, and the
    pairs that go by unicast though their flow is in a session, under an interest.

    A flow that the plan does not know goes where the runtime sends it: into one more channel, in a group of its own,
    which everybody takes who may want something there. Who newly wants a flow of the plan gets it as the flow goes:
    in its session, or by unicast. Sessions that hold nothing are there to be used, one in each group that is free.
    """

    session: Ints
    group: Ints
    apart: Bools
    demand: Demand
    settings: HybridSettings

    @property
    def interest(self) -> Interest:
        return self.demand.interest

    @classmethod
    def of(cls, plan: ChannelsPlan, demand: Demand) -> ContinuedHybrid:
        """A plan, under the demand of now."""
        made = cls._decided(plan, HybridSettings.of(plan))
        return replace(made, group=made._roomy(made.session, made.group)).under(demand)

    @classmethod
    def _decided(cls, plan: ChannelsPlan, settings: HybridSettings) -> ContinuedHybrid:
        """What a plan says under its own demand."""
        session = np.where(plan.interest.audience_sizes > 0, plan.session_of_flow, NOWHERE)
        apart = plan.by_unicast & (session >= 0)[plan.interest.flow_of_pair]
        return cls(frozen(session), plan.group_of_session, apart, plan.demand, settings)

    @property
    def size(self) -> int:
        return int(np.count_nonzero(self.interest.audience_sizes))

    @cached_property
    def _place(self) -> Ints:
        """Where each wanted flow goes: one that nobody takes from its session any more is by unicast."""
        interest = self.interest
        taken = np.bincount(interest.flow_of_pair[~self.apart], minlength=interest.n_flows)
        place = np.where((self.session >= 0) & (taken == 0), UNICAST, self.session)
        return np.where(interest.audience_sizes > 0, place, NOWHERE)

    @cached_property
    def _served(self) -> tuple[Ints, Ints]:
        """The two maps with one more session for what the plan does not know, in one more group; −1: unicast."""
        unknown = (self._place == NOWHERE) & (self.interest.audience_sizes > 0)
        session = np.where(unknown, self.group.size, np.maximum(self._place, UNICAST))
        return session, np.append(self.group, self.group.max(initial=-1) + 1)

    def _terms(self, session: Ints, group: Ints) -> tuple[Terms, Bools]:
        """C' of two maps, and the pairs by unicast."""
        points, point_of_flow = plain(self.interest)
        of_point = session[point_of_flow >= 0]
        alone = self.apart | (of_point < 0)[points.point_of_pair]
        return two_level_terms(points, of_point, group, alone, self.settings.w), alone

    @cached_property
    def cost(self) -> float:
        return self._terms(*self._served)[0].total

    def under(self, demand: Demand) -> ContinuedHybrid:
        then, now = self.interest, demand.interest
        flow = places(then.flow_names, then.n_flows, now.flow_names, now.n_flows)
        user = places(then.user_names, then.n_users, now.user_names, now.n_users)
        session = np.full(now.n_flows, NOWHERE)
        session[flow[flow >= 0]] = self.session[flow >= 0]
        pairs = flow[then.flow_of_pair[self.apart]] * now.n_users + user[then.users[self.apart]]
        known = (flow[then.flow_of_pair[self.apart]] >= 0) & (user[then.users[self.apart]] >= 0)
        apart = np.isin(now.flow_of_pair * now.n_users + now.users, pairs[known])
        moved = replace(self, session=frozen(session), apart=apart, demand=demand)
        return replace(moved, group=moved._roomy(moved.session, self.group))

    def improved(self, budget: Budget) -> ContinuedHybrid:
        return self._polished(self, budget)

    def anew(self) -> ContinuedHybrid:
        """Numbered so that as many flows as possible are where they were."""
        s = self.settings
        weights = (s.w.receive, s.w.send, s.w.copy)
        cap = s.w.cap if s.w.cap < 1 else None
        plan = hybrid(
            self.demand, s.groups, weights=weights, cap=cap, seed=s.seed, sessions=s.sessions, beta=s.w.filter
        )
        made = self._decided(plan, s)
        n = self.group.size
        number = np.append(agreed(np.maximum(made.session, -1), np.maximum(self.session, -1), n), [NOWHERE, UNICAST])
        session = number[made.session]
        if s.sessions is None:
            return replace(self, session=frozen(session), apart=made.apart)
        n_groups = int(max(self.group.max(initial=-1) + 1, usable(s.groups, self.interest)))
        new_group = agreed(_groups(made), _groups(self), n_groups)
        group = np.zeros(n, np.int64)
        group[number[: made.group.size]] = new_group[made.group]
        return replace(self, session=frozen(session), group=self._roomy(session, group), apart=made.apart)

    def reorganised(self, least: float) -> ContinuedHybrid:
        return self._polished(self.anew(), Budget(least=least))

    def _polished(self, found: ContinuedHybrid, budget: Budget) -> ContinuedHybrid:
        """The same with every flow where it costs least, a move from where it is now counted at `least`."""
        thin = self._thin() | found._thin()
        tally = MixedTally(self.interest, found._place, found.group, self.settings.w, thin)
        same = np.append(self.group == found.group[: self.group.size], [True, True])
        home = np.where(same[self._place], self._place, GONE)
        joined = np.zeros(tally.groups.counts.shape, np.bool_)
        users, groups = self._joined()
        joined[groups[groups < joined.shape[0]], users[groups < joined.shape[0]]] = True
        FlowMoves(self.interest, tally, home, joined, self.settings.w.cap, budget).make()
        return replace(found, session=frozen(tally.place), apart=tally.alone)

    def _thin(self) -> dict[tuple[int, int], Bools]:
        """Flows of which some pairs are by unicast, where they are now."""
        interest, place = self.interest, self._place
        flows = distinct(interest.flow_of_pair[self.apart])
        return {
            (flow, int(place[flow])): self.apart[interest.offsets[flow] : interest.offsets[flow + 1]]
            for flow in flows.tolist()
            if place[flow] >= 0
        }

    def change_to(self, other: ContinuedHybrid) -> Change:
        (mine, my_group), (theirs, their_group) = self._served, other._served
        groups = np.append(my_group, UNICAST)[mine], np.append(their_group, UNICAST)[theirs]
        differs = (self.interest.audience_sizes > 0) & ((mine != theirs) | (groups[0] != groups[1]))
        moved = differs & (self.session > NOWHERE)
        weight = self.interest.rates * self.interest.audience_sizes
        joins = np.setdiff1d(other._joins(), self._joins()).size
        return Change(int(moved.sum()), int(joins), float(weight[differs].sum()))

    def _joined(self) -> tuple[Ints, Ints]:
        """(user, group) of each pair that is multicast; the group of the unknown is one beyond all others."""
        session, group = self._served
        of_pair = session[self.interest.flow_of_pair]
        taken = (of_pair >= 0) & ~self.apart
        beyond = self.settings.groups
        return self.interest.users[taken], np.where(of_pair == self.group.size, beyond, group[of_pair])[taken]

    def _joins(self) -> Ints:
        """(user, group) pairs as numbers."""
        users, groups = self._joined()
        found: Ints = distinct(users * (self.settings.groups + 1) + groups)
        return found

    def plan(self) -> ChannelsPlan:
        """What the plan does not know yet is by unicast: that is sound whatever it is."""
        session = np.maximum(self._place, UNICAST)
        price, alone = self._terms(session, self.group)
        s, demand = self.settings, Demand(self.interest, self.demand.key)
        return packed_hybrid(demand, price, session, self.group, alone, s.groups, s.w, s.seed, s.more)

    def _roomy(self, session: Ints, group: Ints) -> Ints:
        """The groups of all sessions there is use for. Those that hold nothing are dealt out: to a group of their own
        without a budget of sessions, to all in turn with one.
        """
        s = self.settings
        n_groups = usable(s.groups if s.sessions is None else min(s.groups, s.sessions), self.interest)
        n = max(group.size, n_groups if s.sessions is None else usable(s.sessions, self.interest))
        used = distinct(session[session >= 0])
        spare = np.setdiff1d(np.arange(n), used)
        free = np.setdiff1d(np.arange(n), group[used]) if s.sessions is None else np.arange(spare.size) % n_groups
        found = np.zeros(n, np.int64)
        found[used], found[spare] = group[used], free[: spare.size]
        return frozen(found)


def _groups(plan: ContinuedHybrid) -> Ints:
    """The group of each flow, −1 where it has none."""
    return np.append(plan.group, UNICAST)[np.maximum(plan.session, UNICAST)]
