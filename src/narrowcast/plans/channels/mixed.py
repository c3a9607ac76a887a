"""Mixed plans: groups for some flows, unicast for some (flow, user) pairs, and their cost C'."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from narrowcast.model.arrays import Bools, Ints, distinct
from narrowcast.plans.channels.kernels import greedy_unicast as kernel
from narrowcast.plans.channels.kernels.greedy_unicast import Mixed
from narrowcast.plans.channels.points import Points


@dataclass(frozen=True, slots=True)
class Weights:
    """w1 per reception, w2 per sending, w3 per cost of a unicast copy; `cap` on the unicast share.

    `filter` is β, the price of a message at the flow filter, in plans with sessions.
    """

    receive: float = 1.0
    send: float = 1.0
    copy: float = 1.0
    cap: float = 1.0
    filter: float = 0.0

    @property
    def unicast(self) -> float:
        """What one unicast copy of a message costs: w3(w1 + w2), with sessions w3(w1 + β + w2)."""
        return self.copy * (self.receive + self.filter + self.send)


@dataclass(frozen=True, slots=True)
class Terms:
    """C' = reception + transmission + unicast, beside perfect multicast."""

    reception: float
    transmission: float
    unicast: float
    perfect: float

    @property
    def total(self) -> float:
        return self.reception + self.transmission + self.unicast

    @property
    def unicast_share(self) -> float:
        return self.unicast / self.total if self.total > 0 else 0.0

    @property
    def percent_of_perfect(self) -> float:
        return 100 * self.total / self.perfect if self.perfect > 0 else 100.0


def mixed(points: Points, group_of: Ints, alone: Bools | None, groups: int) -> Mixed:
    """A mixed plan with its counts, ready for the kernels; the maps are copied."""
    plan = Mixed(
        group_of.astype(np.int64),
        np.zeros(points.users.size, np.bool_) if alone is None else alone.copy(),
        np.zeros((points.n_users, groups), np.int32),
        np.zeros(groups),
        np.zeros(groups),
        np.zeros(points.n, np.int64),
    )
    kernel.count_up(points.offsets, points.users, points.rates, plan)
    return plan


def terms(points: Points, group_of: Ints, alone: Bools, w: Weights) -> Terms:
    """C' of any mixed plan, from its definition: a flow in a group is sent, its multicast users join."""
    n_groups = int(group_of.max(initial=-1)) + 1
    sent = group_of >= 0
    joins = ~alone & sent[points.point_of_pair]
    pair = distinct(group_of[points.point_of_pair[joins]] * points.n_users + points.users[joins])
    Theta = np.bincount(group_of[sent], points.rates[sent], minlength=n_groups)
    reception = float(Theta @ np.bincount(pair // max(points.n_users, 1), minlength=n_groups)) if n_groups else 0.0
    copies = float(points.rates[points.point_of_pair[alone]].sum())
    perfect = w.receive * points.useful + w.send * float(points.rates.sum())
    return Terms(w.receive * reception, w.send * float(Theta.sum()), w.unicast * copies, perfect)


def two_level_terms(points: Points, session_of: Ints, group_of: Ints, alone: Bools, w: Weights) -> Terms:
    """The same of a plan with sessions (−1: none): what the flow filter throws away is reception too."""
    found = terms(points, np.append(group_of, -1)[session_of], alone, w)
    if w.filter == 0:
        return found
    filtered = w.filter * points.kept(~alone).merged(session_of, group_of.size).useful
    perfect = found.perfect + w.filter * points.useful
    return replace(found, reception=found.reception + filtered, perfect=perfect)
