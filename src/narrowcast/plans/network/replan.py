"""Network plans go on: the old decisions under the demand of now, and from there as far as a budget allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from narrowcast.model.demand import Demand
from narrowcast.model.interest import Interest
from narrowcast.model.interest_tables import names_of
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.decisions import Decisions, NetworkProblem
from narrowcast.plans.network.methods.joint import Timer, improved, stitched
from narrowcast.plans.network.methods.previous import carried_over, count_moves, within_moves
from narrowcast.plans.network.plan import packed
from narrowcast.plans.network.prices import HOUR
from narrowcast.plans.network.result import NetworkPlan


@dataclass(frozen=True, eq=False)
class ContinuedNetwork:
    """Decisions for a network, under who wants what there now.

    Sites, hosts and links are those of the plan. A subscriber that it does not know is in no site, and served from
    the log; a flow that it does not know enters where the runtime sends it from, at the first gateway.
    """

    base: NetworkDemand  # where everybody is, and every flow enters
    problem: NetworkProblem
    decisions: Decisions
    seed: int = 0

    @classmethod
    def of(cls, plan: NetworkPlan, demand: Demand) -> ContinuedNetwork:
        """A plan, under the demand of now."""
        return cls(plan.demand, plan.problem, plan.decisions, plan.seed).under(demand)

    @property
    def size(self) -> int:
        return self.problem.demand.interest.n_flows

    @cached_property
    def cost(self) -> float:
        return priced(self.problem, self.decisions).total / HOUR

    def under(self, demand: Demand) -> ContinuedNetwork:
        problem = replace(self.problem, demand=moved(self.base, demand.interest))
        return replace(self, problem=problem, decisions=carried_over(problem, self.problem, self.decisions))

    def improved(self, budget: Budget) -> ContinuedNetwork:
        best = self._improved(self.decisions)
        if budget.moves is not None:
            best = within_moves(self.problem, self.decisions, best, budget.moves)
        return replace(self, decisions=best)

    def anew(self) -> ContinuedNetwork:
        start = stitched(self.problem, self.seed, Timer(None))
        found = (self._improved(start), self._improved(self.decisions))
        return replace(self, decisions=min(found, key=lambda each: priced(self.problem, each).total))

    def _improved(self, start: Decisions) -> Decisions:
        return improved(self.problem, start, self.seed, Timer(None), lambda piece, cost: None)

    def reorganised(self, least: float) -> ContinuedNetwork:
        return self.anew()

    def change_to(self, other: ContinuedNetwork) -> Change:
        old, new = self.decisions, other.decisions
        joins, warm = 0, 0.0
        for site, before, after in zip(self.problem.sites, old.sites, new.sites, strict=True):
            joined = []
            for its in (before, after):
                at = ~its.alone & (its.session_of[site.flow] >= 0)
                groups = np.append(its.group_of, -1)[its.session_of[site.flow[at]]]
                joined.append(set(zip(site.host[site.user[at]].tolist(), groups.tolist(), strict=True)))
            joins += len(joined[1] - joined[0])
            moved_ = before.session_of != after.session_of
            warm += float((site.rates * site.audience)[moved_].sum())
        return Change(count_moves(self.problem, old, new), joins, warm)

    def plan(self) -> NetworkPlan:
        start = stitched(self.problem, self.seed, Timer(None))
        return packed(self.problem, self.decisions, start, "joint", self.seed)


def moved(base: NetworkDemand, interest: Interest) -> NetworkDemand:
    """The same network with other wishes and rates: those of subscribers that are somewhere in it."""
    place = {
        name: at for at, name in enumerate(names_of(base.interest.user_names, range(base.interest.n_users)).to_pylist())
    }
    known = {
        name: at for at, name in enumerate(names_of(base.interest.flow_names, range(base.interest.n_flows)).to_pylist())
    }
    users = names_of(interest.user_names, range(interest.n_users)).to_pylist()
    flows = names_of(interest.flow_names, range(interest.n_flows)).to_pylist()
    here = np.array([place.get(name, -1) for name in users], np.int64)
    was = np.array([known.get(name, -1) for name in flows], np.int64)
    kept = here[interest.users] >= 0
    wishes = Interest.from_pairs(
        interest.flow_of_pair[kept], here[interest.users[kept]], interest.rates, n_users=base.interest.n_users,
        flow_names=flows, user_names=list(place),
    )  # fmt: skip
    new, at = was < 0, np.maximum(was, 0)
    mean = float(base.size.mean()) if base.size.size else 100.0
    source = np.where(new, 0, base.source[at]) if base.source.size else np.zeros(len(flows), np.int64)
    size = np.where(new, mean, base.size[at]) if base.size.size else np.full(len(flows), mean)
    return replace(base, interest=wishes, source=source, size=size, queries=None)  # answers are flows like others


continued = ContinuedNetwork.of
