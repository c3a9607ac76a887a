"""What a simulated system is made of. Tests replace one part by a broken one and see that it is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from narrowcast.deliver.parts.broker import Broker
from narrowcast.deliver.parts.coordinator import Coordinator
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.effects import PlanWanted
from narrowcast.deliver.parts.publisher import Publisher
from narrowcast.deliver.parts.relay import glance
from narrowcast.deliver.parts.site_relay import SiteRelay
from narrowcast.deliver.parts.source import Source
from narrowcast.deliver.routing.audience import Audiences
from narrowcast.deliver.routing.routes import Subscribers, by_audience, by_content, by_flows, by_tree
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.sites import RELAY, SiteRoutes, by_sites
from narrowcast.deliver.transport import Address, Multicast, Overlay, Unicast
from narrowcast.deliver.trust.entitlement import kept_apart
from narrowcast.deliver.wire import Attach, Frame, Malformed, Pulse, Seal
from narrowcast.profiles import Profile
from narrowcast.profiles.parsed import parsed
from simulator.disk import SimLog
from simulator.workload import FLOWS

Planner = Callable[[PlanWanted, Random], Routing]


def random_plan(wanted: PlanWanted, rng: Random) -> Routing:
    """Any sound plan of any kind; a few subscriptions are left out, to be served from the log."""
    relays = [name for name in wanted.subscriptions if name.startswith(RELAY)]
    names = [name for name in wanted.subscriptions if name not in relays and rng.random() > 0.1]
    kinds = (_flows, _hybrid, _content, _tree, _audience)
    kind = rng.choice((network_plan,) if relays and rng.random() < 0.6 else kinds)
    names += relays if kind is network_plan else []
    who = Subscribers(
        {name: wanted.subscriptions[name] for name in names},
        {name: wanted.edges[name] for name in names},
        wanted.gateways,
    )
    found = kind(who, wanted, rng)
    return found if rng.random() < 0.6 else replace(found, pulse=None)


def _flows(who: Subscribers, wanted: PlanWanted, rng: Random) -> Routing:
    known = [flow for flow in FLOWS if rng.random() > 0.2]
    sessions = {flow: rng.randrange(3) for flow in known}
    return by_flows(["s"], sessions, {l: rng.randrange(2) for l in range(3)}, who)


def _hybrid(who: Subscribers, wanted: PlanWanted, rng: Random) -> Routing:
    sessions = {flow: rng.randrange(2) for flow in FLOWS if rng.random() > 0.3}
    pairs = [(flow, name) for flow in FLOWS for name in who.profiles if rng.random() < 0.3]
    return by_flows(["s"], sessions, {0: 0, 1: 1}, who, unicast=pairs)


def _content(who: Subscribers, wanted: PlanWanted, rng: Random) -> Routing:
    groups: dict[int, list[Profile]] = {}
    for text in sorted(set(who.profiles.values())):
        groups.setdefault(rng.randrange(3), []).append(parsed(text))
    contents = {channel: Profile.any_of(profiles) for channel, profiles in sorted(groups.items())}
    addresses = {channel: _address(channel, wanted, rng) for channel in contents}
    return by_content(contents, addresses, who)


def _tree(who: Subscribers, wanted: PlanWanted, rng: Random) -> Routing:
    tree = overlay(wanted, rng)
    filters = [broker for broker in sorted(tree.brokers) if rng.random() < 0.6]
    return by_tree(tree, filters)


def _audience(who: Subscribers, wanted: PlanWanted, rng: Random) -> Routing:
    """Channels for random sets of gateways on random trees, and one or two blocks that all of them are in."""
    trees: dict[int, Address] = {channel: overlay(wanted, rng) for channel in range(4)}
    known = sorted({gateway for gateway in wanted.gateways.values() if gateway})
    made = []
    for channel in (0, 1):
        reach = [gateway for gateway in known if rng.random() < 0.7]
        core = [gateway for gateway in reach if rng.random() < 0.5]
        made.append((channel, rng.random(), tuple(core), tuple(reach)))
    first = [gateway for gateway in known if rng.random() < 0.5]
    blocks = [(2, rng.random(), tuple(first)), (3, rng.random(), tuple(g for g in known if g not in first))]
    return by_audience(Audiences(tuple(made), tuple(blocks)), trees, who)


def network_plan(who: Subscribers, wanted: PlanWanted, rng: Random) -> Routing:
    """A site at every gateway, flows on random trees; a few are somewhere else than the plan thinks."""
    gateways = sorted({gateway for gateway in wanted.gateways.values() if gateway})
    sites = []
    for gateway in gateways:
        sessions = {flow: rng.randrange(3) for flow in FLOWS if rng.random() > 0.3}
        groups = {l: rng.randrange(2) for l in sorted(set(sessions.values()))}
        here = [name for name in who.profiles if wanted.gateways.get(wanted.edges[name]) == gateway]
        pairs = frozenset((flow, name) for flow in FLOWS for name in here if rng.random() < 0.2)
        straight = frozenset(flow for flow in FLOWS if flow not in sessions and rng.random() < 0.5)
        sites.append(SiteRoutes(gateway, sessions, groups if rng.random() > 0.2 else {}, pairs, straight))
    trees = [overlay(wanted, rng) for _ in range(3)]
    short = [Overlay(tree.root, tree.links[:1]) for tree in trees]
    backbone = {flow: rng.choice((*trees, *short)) for flow in FLOWS if rng.random() > 0.1}
    filters = [broker for broker in trees[0].brokers if rng.random() < 0.5]
    return by_sites(["s"], sites, backbone, trees[0], who, filters)


def _address(channel: int, wanted: PlanWanted, rng: Random) -> Address:
    kind = rng.randrange(3)
    if kind == 0:
        return overlay(wanted, rng)
    return Multicast(rng.randrange(2), channel) if kind == 1 else Unicast(f"subject-{channel}")


def overlay(wanted: PlanWanted, rng: Random) -> Overlay:
    """A random tree over the brokers that are alive."""
    alive = [node for node in wanted.nodes if node.startswith("broker")] or ["broker-0"]
    rng.shuffle(alive)
    return Overlay(alive[0], tuple((rng.choice(alive[:k]), alive[k]) for k in range(1, len(alive))))


@dataclass(frozen=True)
class Parts:
    """The class of each part, the planner and the disk."""

    client: type[Publisher] = Publisher
    source: type[Source] = Source
    broker: type[Broker] = Broker
    edge: type[Edge] = Edge
    site_relay: type[SiteRelay] = SiteRelay
    coordinator: type[Coordinator] = Coordinator
    planner: Planner = random_plan
    log: type[SimLog] = SimLog
    relay: Callable[[bytes], Frame | Attach | Pulse | Malformed] = glance
    seal: type[Seal] = Seal
    kept_apart: Callable[[Routing, Any], list[str]] = kept_apart
    extra: Any = None
