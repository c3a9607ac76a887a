"""The sessions and groups of a plan in work, as passes over the flows are told of them and change them.

This is all that a pass must know of the flows it does not see: for each user how many points of each
session they want, and the rates. It does not grow with the number of flows. Letters as in Tock et al.
2005: θ (`theta`) is the rate of a session.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.channels.kernels import two_level as kernel
from narrowcast.plans.channels.kernels.two_level import Prices, TwoLevelState
from narrowcast.plans.channels.methods.state import NOISE

Counts = NDArray[np.int32]  # also the sessions of points, of which there are many
# The rate of a session that is not to be opened: no flow is worth that.
CLOSED = 1e250


@dataclass(frozen=True, eq=False)
class SessionClusters:
    """`count[u, l]` points of session l that user u wants; rate and points of each session; its group."""

    count: Counts
    theta: Floats
    n_points: Ints
    group_of: Ints
    n_groups: int

    @property
    def n_sessions(self) -> int:
        return int(self.theta.size)

    def state(self, session_of: Ints, *, closed: NDArray[np.bool_] | None = None) -> TwoLevelState:
        """Ready for sweeps over points with these sessions; empty sessions that are `closed` stay so."""
        member = (self.count > 0).astype(np.uint8)
        in_group = self._group_counts()
        group_member = (in_group > 0).astype(np.uint8)
        theta = self.theta.copy()
        if closed is not None:
            theta[closed & (self.n_points == 0)] = CLOSED
        return TwoLevelState(
            session_of.astype(np.int64),
            self.group_of.copy(),
            self.count.copy(),
            member,
            in_group,
            group_member,
            theta,
            member.sum(axis=0).astype(np.float64),
            self.n_points.copy(),
            np.bincount(self.group_of, self.theta, minlength=self.n_groups).astype(np.float64),
            group_member.sum(axis=0).astype(np.float64),
            np.bincount(self.group_of, self.n_points, minlength=self.n_groups).astype(np.int64),
            np.array([np.count_nonzero(self.n_points)]),
        )

    def _group_counts(self) -> Counts:
        """users × groups: how many points of the group each user wants."""
        found = np.zeros((self.count.shape[0], self.n_groups), np.int32)
        for l in np.flatnonzero(self.n_points):
            found[:, self.group_of[l]] += self.count[:, l]
        return found

    def regrouped(self, prices: Prices, heat: float, rng: np.random.Generator) -> SessionClusters:
        """Every session moved to the group where it costs least (or by a heat bath)."""
        state = self.state(np.zeros(0, np.int64))
        starts = rng.integers(0, NOISE.size - self.n_groups, self.n_sessions)
        kernel.regroup(state, prices, heat, NOISE, starts)
        return SessionClusters(self.count, self.theta, self.n_points, state.group_of, self.n_groups)

    def joins(self) -> tuple[Ints, Ints]:
        """(user, group) of everybody who must join a group, sorted."""
        user, group = np.nonzero(self._group_counts())
        return user, group

    def costs(self) -> tuple[float, float]:
        """(Σ over users and joined groups of Θ, Σ over users and their sessions of θ): C1 and C2 at price 1."""
        rates = np.bincount(self.group_of, self.theta, minlength=self.n_groups)
        members = np.count_nonzero(self._group_counts(), axis=0)
        return float(rates @ members), float(self.theta @ np.count_nonzero(self.count, axis=0))

    def cost(self, prices: Prices) -> float:
        c1, c2 = self.costs()
        return prices.alpha * c1 + prices.beta * c2


def empty(n_users: int, groups: int, sessions: int) -> SessionClusters:
    """Sessions without a flow, dealt to the groups in turn."""
    return SessionClusters(
        np.zeros((n_users, sessions), np.int32),
        np.zeros(sessions),
        np.zeros(sessions, np.int64),
        np.arange(sessions) % groups,
        groups,
    )
