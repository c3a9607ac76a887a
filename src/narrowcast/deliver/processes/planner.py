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
from narrowcast.deliver.trust.entitlement import kept_apart
from narrowcast.errors import InputError, NarrowcastError, PlanError
from narrowcast.model.folder import HEAD, fingerprint, read_tables
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.kinds import kind_of
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.verbs import decoded, judge

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
    memberships: int = 20
    groups: int | None = None  # how many there are
    prediction: dict[str, Any] = field(default_factory=dict)
    base: str = ""
    _offered: tuple[str, Plan] | None = None

    @classmethod
    def read(cls, folder: str | Path | None, key: Sequence[str] = (), memberships: int | None = None) -> FolderPlanner:
        """The plan in a folder, judged first; `key` is for a plan that does not say which attributes make a flow."""
        plan = None if folder is None else with_key(checked(folder), key)
        most = limit_of_memberships() if memberships is None else memberships
        return cls(plan, most, base="" if folder is None else base_of(folder))

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
                key = () if self.plan is None else self.plan.key
                self._offered = (offer["folder"], with_key(checked(offer["folder"]), key))
        except NarrowcastError as error:
            if wanted.trying:
                raise
            log.warning("the plan in force cannot be read, using coordinator.plan instead: %s", error)
            return self.plan
        return self._offered[1]

    def _routing(self, plan: Plan | None, wanted: PlanWanted) -> Routing:
        who = Subscribers(wanted.subscriptions, wanted.edges, wanted.gateways)
        if plan is None:
            return apart(Routing({}), who, sorted(who.profiles))
        routing = kind_of(plan.kind).route.route(plan, who, self.groups)
        names = {*_too_wide(routing, self.memberships - 2), *kept_apart(routing, wanted.entitled)}
        return apart(routing, who, sorted(names))


def base_of(folder: str | Path) -> str:
    """What tells one plan from another: the fingerprint of its head, which has those of its tables."""
    return fingerprint(Path(folder) / HEAD)


def checked(folder: str | Path) -> Plan:
    """The plan in a folder, if it is sound, judged from its tables alone; PlanError for any other."""
    tables = read_tables(folder)
    found = judge(tables)
    if not found.sound:
        raise PlanError(f"{folder}: the plan is unsound and is not installed: {found.faults[0]}")
    return decoded(tables, str(folder))


def with_key(plan: Plan, key: Sequence[str]) -> Plan:
    """The plan with a flow key, if it has none of its own and its kind needs one."""
    if not isinstance(plan, ChannelsPlan | NetworkPlan) or plan.key:
        return plan
    if not key:
        raise InputError(
            "the plan does not say which attributes of a message make its flow",
            name="key",
            hint="measure and plan again, or name them: --key symbol",
        )
    keyed: Any = replace(plan.demand, key=tuple(key))
    return replace(plan, demand=keyed, written=None)


def groups_of(plan: Plan | None, least: int = 256) -> int:
    """How many multicast groups to map: those of the plan, one for what belongs to no flow, and room to re-plan."""
    used = getattr(plan, "machine_groups", 0)  # of a network on one machine
    used = int(plan.group_of_flow.max(initial=0)) if isinstance(plan, ChannelsPlan) else used
    return max(least, used + 2)


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


def apart(routing: Routing, who: Subscribers, names: Sequence[str]) -> Routing:
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
    kept = names if routing.climbs else list(who.profiles)  # who climbs is not listed
    profiles, edges = ({name: every[name] for name in kept if name in every} for every in (who.profiles, who.edges))
    known: Mapping[str, Any] = {"profiles": profiles, "edges": edges}
    return replace(routing, addresses=addresses, content=content, taken=taken, **known)
