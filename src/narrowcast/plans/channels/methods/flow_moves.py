"""Single flows to where they cost least, within a budget of moves and joins and under a cap on unicast."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.channels.mixed_tally import NOWHERE, UNICAST, MixedTally
from narrowcast.plans.continued import Budget

PASSES = 8  # over all flows, since each one that moves changes the others
ROUNDING = 1e-12


class FlowMoves:
    """Flows on their way from home, where they are now: each that leaves it counts as a move and must save `least`.

    `home` is a place of the tally; a flow without one (−2) is new, and may go anywhere. `joined` says who is in which
    group now (groups × users). No move raises the unicast share above the cap, or raises it further where it is
    above, and none takes more new joins than the budget has.
    """

    def __init__(
        self, interest: Interest, tally: MixedTally, home: Ints, joined: Bools, cap: float, budget: Budget
    ) -> None:
        self._interest, self._tally, self._home, self._joined, self._cap = interest, tally, home, joined, cap
        self._budget = budget
        self._flows = np.flatnonzero(interest.audience_sizes > 0)
        self._most = self._flows.size if budget.moves is None else budget.moves

    def make(self) -> None:
        """What is new finds a place first; then the flows that save most move, again and again."""
        new = self._flows[self._home[self._flows] == NOWHERE]
        weight = self._interest.rates * self._interest.audience_sizes
        new = new[np.argsort(-weight[new], kind="stable")]
        for _ in range(PASSES):
            if not self._settle(new.tolist()):
                break
        self._keep_cap()
        for _ in range(PASSES):
            gains = np.array([self._best(flow)[1] for flow in self._flows.tolist()])
            order = np.argsort(-gains, kind="stable")[: np.count_nonzero(gains > 0)]
            if not self._settle(self._flows[order].tolist()):
                break

    @property
    def _away(self) -> int:
        """How many flows are not at home."""
        flows, home = self._flows, self._home
        return int(np.count_nonzero((self._tally.place != home)[flows] & (home[flows] != NOWHERE)))

    def _settle(self, flows: Iterable[int]) -> int:
        """Each in turn where it costs least now; how many have moved."""
        moved = 0
        for flow in flows:
            to, gain = self._best(flow)
            if gain > 0:
                self._move(flow, to)
                moved += 1
        return moved

    def _move(self, flow: int, to: int) -> None:
        if self._tally.place[flow] != NOWHERE:
            self._tally.leave(flow)
        self._tally.enter(flow, to)

    def _best(self, flow: int) -> tuple[int, float]:
        """The best place that a flow may go to, and what that saves; nothing where it stays."""
        tally, at, home = self._tally, int(self._tally.place[flow]), int(self._home[flow])
        if at == home != NOWHERE and self._away >= self._most:
            return at, 0.0
        if at != NOWHERE:
            tally.leave(flow)
        costs, copies = tally.offers(flow)
        allowed = self._allowed(flow, at, costs, copies)
        if at != NOWHERE:
            tally.enter(flow, at)
        if home > NOWHERE:
            costs += self._budget.least
            costs[home] -= self._budget.least
        found = np.where(allowed, costs, np.inf)
        to = int(found.argmin())
        to = UNICAST if to == costs.size - 1 else to
        if at == NOWHERE:
            return to, np.inf  # nowhere it cannot stay
        gain = float(costs[at] - found[to])
        return (to, gain) if gain > ROUNDING * (1 + float(costs[at])) else (at, 0.0)

    def _allowed(self, flow: int, at: int, costs: Floats, copies: Floats) -> Bools:
        """The places a flow that was taken out may go to; where it was is always one."""
        tally, here = self._tally, at if at != NOWHERE else UNICAST
        share = tally.unicast + copies <= self._cap * (tally.cost + costs) * (1 + ROUNDING)
        allowed: Bools = share | (copies < copies[here])
        if self._budget.joins is not None:
            fresh = self._fresh(flow)
            used = int(np.count_nonzero((tally.groups.counts > 0) & ~self._joined))
            allowed &= (used + fresh <= self._budget.joins) | (fresh <= fresh[here])
        if at != NOWHERE:
            allowed[at] = True
        return allowed

    def _fresh(self, flow: int) -> Ints:
        """How many new joins a flow that was taken out takes at each place."""
        users = self._interest.users_of(flow)
        new = (self._tally.groups.counts[:, users] == 0) & ~self._joined[:, users]
        return np.append(np.count_nonzero(new, axis=1)[self._tally.group_of], 0)

    def _keep_cap(self) -> None:
        """Flows back from unicast while its share is above the cap: those first for which that costs least."""
        if not self._above_cap():
            return
        for flow in self._tally.thinned:
            if self._above_cap():
                self._tally.rejoin(flow)
        alone = [flow for flow in self._flows.tolist() if self._tally.place[flow] == UNICAST]
        prices = {flow: self._price_of_session(flow) for flow in alone}
        for flow in sorted(alone, key=lambda flow: prices[flow][1]):
            if self._above_cap() and (self._away < self._most or self._home[flow] != UNICAST):
                self._move(flow, self._price_of_session(flow)[0])

    def _price_of_session(self, flow: int) -> tuple[int, float]:
        """The best session for a flow by unicast, and what it costs there for each part of unicast it saves."""
        self._tally.leave(flow)
        costs, copies = self._tally.offers(flow)
        self._tally.enter(flow, UNICAST)
        to = int(costs[:-1].argmin())
        saved = float(copies[UNICAST] - copies[to])
        return to, float(costs[to] - costs[UNICAST]) / saved if saved > 0 else np.inf

    def _above_cap(self) -> bool:
        return self._tally.unicast > self._cap * self._tally.cost * (1 + ROUNDING)
