"""Whether a group has room for some flows: the budgets and limits that a plan was made under."""

from __future__ import annotations

import numpy as np

from narrowcast.model.plan import Tables
from narrowcast.plans.channels.explain.placements import Block, members
from narrowcast.plans.channels.judge.delivery import Delivery
from narrowcast.plans.channels.judge.limits import limits_of


class Room:
    """The limits of a plan as they bind a block of flows that was taken out of it."""

    def __init__(self, plan: Tables, read: Delivery, block: Block) -> None:
        self._read, self._block = read, block
        self._limits = limits_of(plan)
        stays = read.group_of_flow >= 0
        stays[block.flows] = False
        self._stays = stays
        cluster, user = members(read, read.group_of_flow, stays)
        self._joined = read.pair(cluster, user)
        self._joins = np.bincount(user, minlength=read.n_users)
        budget = plan.parameters.get("sessions")
        sessions = np.unique(read.session_of_flow[stays]).size
        self.no_session = f"all {budget} sessions are in use" if budget is not None and sessions >= budget else ""
        budget = plan.parameters.get("groups")
        groups = np.unique(read.group_of_flow[stays]).size
        self.no_group = f"all {budget} groups are in use" if budget is not None and groups >= budget else ""

    def barred(self, group: int) -> str:
        """The limit that keeps the block out of a group (−1: a new one); empty if there is room."""
        read, block, limits = self._read, self._block, self._limits
        rate = block.rate + (float(block.groups.rates[group]) if group >= 0 else 0.0)
        if limits.get("rate_per_group") is not None and rate > limits["rate_per_group"] * (1 + 1e-9):
            return f"rate_per_group {limits['rate_per_group']:g}"
        most = limits.get("joins_per_subscriber")
        if most is not None:
            newcomers = block.audience[~np.isin(read.pair(np.full(block.audience.size, group), block.audience),
                                                self._joined)]  # fmt: skip
            if (self._joins[newcomers] >= most).any():
                return f"joins_per_subscriber {most}"
        mine = {read.flow_names[k] for k in block.flows.tolist()}
        for flow, pin in limits.get("pinned", {}).items():
            if flow in mine and (group < 0 or read.groups[group] != pin):
                return f"{flow} is pinned to group {pin}"
        there = {read.flow_names[k] for k in np.flatnonzero(self._stays & (read.group_of_flow == group)).tolist()}
        for one, two in limits.get("apart", []):
            if (one in mine and two in there) or (two in mine and one in there):
                return f"{one} and {two} must be apart"
        return ""
