"""Answers `PlanWanted`: puts a plan from its folder, or one that was offered in its place, under the subscriptions
there are now.

Who takes what follows from the profiles, so a subscriber the plan never heard of is served like any
other. One whose profile spans more groups than a host may join gets a channel of its own by unicast.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from narrowcast.deliver.parts.effects import PlanWanted
from narrowcast.deliver.processes.prediction import predicted
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Address, Multicast, Unicast
from narrowcast.errors import NarrowcastError, PlanError
from narrowcast.model.plan import HEAD, Plan, fingerprint, load
from narrowcast.plans.deploy import routing_of

log = logging.getLogger(__name__)


def limit_of_memberships(default: int = 20) -> int:
    """How many multicast groups a socket of this host may join; beyond it joins fail without a word."""
    path = Path("/proc/sys/net/ipv4/igmp_max_memberships")
    return int(path.read_text()) if path.exists() else default


@dataclass
class FolderPlanner:
    """Plans from one folder. `memberships`: groups a subscriber's host may join, two left for discovery.

    `prediction` is what the last routing should look like when it runs. `base` tells the folder's plan from others:
    an offer that goes on from another one is not for us, as after a start with another plan.
    """

    plan: Plan | None
    key: tuple[str, ...] = ("symbol",)
    memberships: int = 20
    groups: int | None = None  # how many there are
    prediction: dict[str, Any] = field(default_factory=dict)
    base: str = ""
    _offered: tuple[str, Plan] | None = None

    @classmethod
    def read(cls, folder: str | Path | None, key: Sequence[str], memberships: int | None = None) -> FolderPlanner:
        plan = None if folder is None else load(folder)
        most = limit_of_memberships() if memberships is None else memberships
        return cls(plan, tuple(key), most, base="" if folder is None else base_of(folder))

    def __call__(self, wanted: PlanWanted) -> Routing:
        plan = self._plan(wanted)
        routing = self._routing(plan, wanted)
        self.prediction = predicted(plan, routing)
        return routing

    def _plan(self, wanted: PlanWanted) -> Plan | None:
        """The plan in force, or the one that is being tried, which must be sound: an unsound one is refused."""
        offer = wanted.offer
        if offer is None or offer.get("base") != self.base:
            return self.plan
        try:
            if self._offered is None or self._offered[0] != offer["folder"]:
                self._offered = (offer["folder"], checked(load(offer["folder"])))
        except NarrowcastError as error:
            if wanted.trying:
                raise
            log.warning("the plan in force cannot be read, the first one is used again: %s", error)
            return self.plan
        return self._offered[1]

    def _routing(self, plan: Plan | None, wanted: PlanWanted) -> Routing:
        who = Subscribers(wanted.subscriptions, wanted.edges, wanted.gateways)
        if plan is None:
            return _apart(Routing({}), who, sorted(who.profiles))
        routing = routing_of(plan, who, key=self.key, groups=self.groups)
        return _apart(routing, who, _too_wide(routing, self.memberships - 2))


def base_of(folder: str | Path) -> str:
    """What tells one plan from another: the fingerprint of its head, which has those of its tables."""
    return fingerprint(Path(folder) / HEAD)


def checked(plan: Plan) -> Plan:
    """A plan that is sound, judged from its tables alone; PlanError for any other."""
    from narrowcast.evaluate import judge

    found = judge(plan)
    if not found.sound:
        raise PlanError(f"the plan is unsound and is not installed: {found.faults[0]}")
    return plan


def _too_wide(routing: Routing, most: int) -> list[str]:
    """Subscriptions that make their edge join too many groups, the widest first until the rest fits."""
    groups: dict[str, dict[str, set[int]]] = {}
    for name, channels in routing.taken.items():
        addresses = [routing.addresses[channel] for channel in channels]
        joined = {address.group for address in addresses if isinstance(address, Multicast)}
        groups.setdefault(routing.edges[name], {})[name] = joined
    found = []
    for wanted in groups.values():
        for name in sorted(wanted, key=lambda n: (-len(wanted[n]), n)):
            rest = [each for other, each in wanted.items() if other not in found]
            if len(set().union(*rest)) <= most:
                break
            found.append(name)
    return sorted(found)


def _apart(routing: Routing, who: Subscribers, names: Sequence[str]) -> Routing:
    """A channel for each of these, chosen by its own profile and sent to it alone."""
    if not names:
        return routing
    first = max(routing.addresses, default=-1) + 1
    addresses: dict[int, Address] = dict(routing.addresses)
    content, taken = dict(routing.content), dict(routing.taken)
    for channel, name in enumerate(names, first):
        addresses[channel] = Unicast(name)
        content[channel] = who.profiles[name]
        taken[name] = (channel,)
    known: Mapping[str, Any] = {"profiles": dict(who.profiles), "edges": dict(who.edges)}
    return replace(routing, addresses=addresses, content=content, taken=taken, **known)
