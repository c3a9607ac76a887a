"""What a plan with unicast costs, kept up to date while single flows change their place: O(audience) a change."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.channels.mixed import Weights
from narrowcast.plans.channels.tally import Level

UNICAST, NOWHERE = -1, -2
Thin = Mapping[tuple[int, int], Bools]


class MixedTally:
    """Flows in sessions of groups, by unicast (place −1) or nowhere yet (−2), and the terms of C'.

    `thin` names places where some of a flow's users have it by unicast: (flow, session) → which of them. Anywhere
    else all of them take its session. Memory is users × (sessions + groups) × 4 bytes.

    >>> interest = Interest.from_pairs([0, 0, 1, 2], [0, 1, 1, 2], [4.0, 2.0, 1.0])
    >>> tally = MixedTally(interest, np.array([0, 0, UNICAST]), np.array([0, 1]), Weights(), {})
    >>> tally.cost, tally.unicast
    (20.0, 2.0)
    >>> tally.leave(1); [found.tolist() for found in tally.offers(1)]
    [[6.0, 4.0, 4.0], [0.0, 0.0, 4.0]]
    >>> tally.enter(1, 1); tally.cost
    18.0
    """

    def __init__(self, interest: Interest, place: Ints, group: Ints, w: Weights, thin: Thin) -> None:
        self._interest, self.group_of, self._w, self._thin = interest, group, w, dict(thin)
        self._thin_at: dict[int, list[int]] = {}
        for flow, session in thin:
            self._thin_at.setdefault(flow, []).append(session)
        nothing = Interest.from_pairs([], [], interest.rates, n_users=interest.n_users)
        label, n_groups = np.full(interest.n_flows, -1), int(group.max(initial=-1)) + 1
        self._sessions = Level(nothing, label, group.size, interest.n_users, w.filter)
        self.groups = Level(nothing, label, n_groups, interest.n_users, w.receive)
        self.place = np.full(interest.n_flows, NOWHERE)
        self.sent, self.copies = 0.0, 0.0
        for flow in np.flatnonzero((place > NOWHERE) & (interest.audience_sizes > 0)).tolist():
            self.enter(flow, int(place[flow]))

    @property
    def unicast(self) -> float:
        """The part of the cost that is paid for unicast."""
        return self._w.unicast * self.copies

    @property
    def cost(self) -> float:
        """C' of the flows that have a place."""
        return self._sessions.cost + self.groups.cost + self._w.send * self.sent + self.unicast

    def offers(self, flow: int) -> tuple[Floats, Floats]:
        """What a flow that is nowhere would add to the cost in each session and, last, by unicast; and what of that
        is unicast. O(audience · sessions).
        """
        users, rate = self._interest.users_of(flow), float(self._interest.rates[flow])
        costs = np.append(self._in_sessions(users, rate), self._w.unicast * rate * users.size)
        copies = np.zeros(costs.size)
        copies[UNICAST] = costs[UNICAST]
        for session in self._thin_at.get(flow, ()):
            alone = self._thin[flow, session]
            copies[session] = self._w.unicast * rate * int(alone.sum())
            costs[session] = self._in_sessions(users[~alone], rate)[session] + copies[session]
        return costs, copies

    def enter(self, flow: int, place: int) -> None:
        self._change(flow, place, 1)
        self.place[flow] = place

    def leave(self, flow: int) -> None:
        self._change(flow, int(self.place[flow]), -1)
        self.place[flow] = NOWHERE

    def rejoin(self, flow: int) -> None:
        """All users of a flow take its session again."""
        place = int(self.place[flow])
        self.leave(flow)
        del self._thin[flow, place]
        self._thin_at[flow].remove(place)
        self.enter(flow, place)

    @property
    def thinned(self) -> list[int]:
        """Flows some of whose users have it by unicast."""
        return [flow for flow, session in self._thin if self.place[flow] == session]

    @property
    def alone(self) -> Bools:
        """Of each pair, whether it is by unicast though the flow is in a session."""
        found = np.zeros(self._interest.n_pairs, np.bool_)
        for flow in self.thinned:
            pairs = slice(self._interest.offsets[flow], self._interest.offsets[flow + 1])
            found[pairs] = self._thin[flow, int(self.place[flow])]
        return found

    def _in_sessions(self, users: Ints, rate: float) -> Floats:
        groups = self.groups.costs_of_adding(users, rate)[self.group_of]
        found: Floats = self._sessions.costs_of_adding(users, rate) + groups + self._w.send * rate
        return found

    def _change(self, flow: int, place: int, by: int) -> None:
        users, rate = self._interest.users_of(flow), float(self._interest.rates[flow])
        if place >= 0:
            alone = self._thin.get((flow, place), np.zeros(users.size, np.bool_))
            self._sessions.change(users[~alone], rate, place, by)
            self.groups.change(users[~alone], rate, int(self.group_of[place]), by)
            self.sent += by * rate
            self.copies += by * rate * int(alone.sum())
        elif place == UNICAST:
            self.copies += by * rate * users.size
