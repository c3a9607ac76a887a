"""Routings of networks: trees of brokers between sites, and in each site channels that its relay sends.

A relay is known by a subscription of its own, for everything, at the gateway of its site. It takes the trees that
bring what its site wants; the subscriptions of the site take what it sends there. A site without a relay that is
alive is left to the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from narrowcast.deliver.routing.routes import PULSE, Subscribers, by_flows
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Address, Multicast, Overlay, Unicast

RELAY = "~relay "
ASK, REST = "~ask", "~rest"  # how addresses of a site begin that all of its subscribers have to do with
EVERYTHING = "TRUE"  # the profile of a relay


def relay_subscription(node: str) -> str:
    """What a relay's own subscription is called.

    >>> relay_subscription("relay-London")
    '~relay relay-London'
    """
    return RELAY + node


def site_pulse(relay: str) -> Unicast:
    """Where a relay, known by its subscription, sends the heartbeats of all its channels together."""
    return Unicast(f"{PULSE.name}/{relay}")


def site_asks(relay: str) -> Unicast:
    """Where a relay, known by its subscription, is asked for frames that somebody lacks."""
    return Unicast(f"{ASK}/{relay}")


def pulses_of(routing: Routing, channels: Iterable[int]) -> list[Address]:
    """Where the heartbeats of some channels come: from sources all together, from each relay for itself."""
    senders = dict.fromkeys(routing.relay_of(channel) for channel in channels) if routing.relayed else ("",)
    found = (site_pulse(relay) if relay else routing.pulse for relay in senders)
    return [address for address in found if address is not None]


@dataclass(frozen=True)
class SiteRoutes:
    """One site: its gateway, the session of each flow, the group of each session, who gets a flow by unicast.

    `straight` are the flows that come to the subscribers here from the source, past the relay. `members` are the
    subscriptions that are known to be here; any other is here if its edge is at the gateway.
    """

    gateway: str
    sessions: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[int, int] = field(default_factory=dict)
    unicast: frozenset[tuple[str, str]] = frozenset()
    straight: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()


def by_sites(
    key: Sequence[str],
    sites: Sequence[SiteRoutes],
    backbone: Mapping[str, Overlay],
    everywhere: Overlay,
    subscribers: Subscribers,
    filters: Iterable[str] = (),
) -> Routing:
    """Flows on trees between sites, in each site in sessions that its relay sends, or by unicast.

    `backbone` is the tree of each flow. `everywhere` reaches every gateway and carries what belongs to no flow, and
    what is wanted where the flow's own tree does not go.

    >>> who = {"ann": "s = 'IBM'", relay_subscription("r"): "TRUE"}
    >>> there = Subscribers(who, {"ann": "x", relay_subscription("r"): "r"}, {"x": "b1", "r": "b1"})
    >>> tree = Overlay("b0", (("b0", "b1"),))
    >>> routing = by_sites(["s"], [SiteRoutes("b1", {"IBM": 0}, {0: 0})], {"IBM": tree}, Overlay("b0"), there)
    >>> routing.route({"s": "IBM"})[1], routing.taken, routing.relayed
    ((1, 2), {'ann': (2,), '~relay r': (1,)}, {2: '~relay r'})
    """
    relays = _relays(subscribers)
    number = {tree: k for k, tree in enumerate(dict.fromkeys((everywhere, *backbone.values())))}
    known = frozenset(name for site in sites for name in site.members)
    made = _Made(
        {k: tree for tree, k in number.items()}, taken={relay: set() for at in relays.values() for relay in at}
    )
    for site in sites:
        mine = _here(site, subscribers, known)
        made.add(
            site, mine, key, relays.get(site.gateway, [None])[0], {flow: tree.root for flow, tree in backbone.items()}
        )
    made.share()
    channels: dict[str, list[int]] = {}
    for flow, found in sorted(made.channels.items()):
        tree, ways = backbone.get(flow, everywhere), set()
        for relay in {relay for channel in found if (relay := made.relayed.get(channel, "")) in made.taken}:
            gateway = subscribers.gateways[subscribers.edges[relay]]
            ways.add(way := number[tree] if gateway in tree.brokers else 0)
            made.taken[relay].add(way)
        channels[flow] = [*sorted(ways), *found]
    for channel in made.rest:
        made.taken[made.relayed[channel]].add(0)
    for relay in (relay for at in relays.values() for relay in at):
        made.taken[relay] = made.taken[relay] or {0}  # one that takes nothing would read the log for ever
    return subscribers.routing(
        made.addresses,
        {name: tuple(sorted(found)) for name, found in sorted(made.taken.items())},
        key=tuple(key),
        flows=tuple((flow, tuple(found)) for flow, found in channels.items()),
        rest=(0, *made.rest),
        filters=tuple(sorted(filters)),
        relayed=made.relayed,
    )


def _relays(subscribers: Subscribers) -> dict[str, list[str]]:
    """The relays at each gateway by their subscriptions; the first works, the others stand by."""
    found: dict[str, list[str]] = {}
    for name in sorted(subscribers.profiles):
        gateway = subscribers.gateways.get(subscribers.edges.get(name, ""))
        if name.startswith(RELAY) and gateway is not None:
            found.setdefault(gateway, []).append(name)
    return found


def _here(site: SiteRoutes, subscribers: Subscribers, known: frozenset[str]) -> Subscribers:
    """The subscriptions of a site: those the plan knows to be there, and strangers at its gateway."""

    def belongs(name: str) -> bool:
        if name in known or name.startswith(RELAY):
            return name in site.members
        return subscribers.gateways.get(subscribers.edges.get(name, "")) == site.gateway

    mine = {name: text for name, text in subscribers.profiles.items() if belongs(name) and name in subscribers.edges}
    return Subscribers(mine, {name: subscribers.edges[name] for name in mine}, subscribers.gateways)


@dataclass
class _Made:
    """What has been put together so far: channels, who sends and who takes them, and those of each flow."""

    addresses: dict[int, Address]
    taken: dict[str, set[int]]
    relayed: dict[int, str] = field(default_factory=dict)
    channels: dict[str, list[int]] = field(default_factory=dict)
    rest: list[int] = field(default_factory=list)
    group: int = 0  # the first that no site has
    knows: dict[int, set[str]] = field(default_factory=dict)  # by the rest of a site: the flows that do not go there

    def add(
        self, site: SiteRoutes, mine: Subscribers, key: Sequence[str], relay: str | None, enters: Mapping[str, str]
    ) -> None:
        """The channels of one site that somebody takes; groups keep their numbers whoever takes something."""
        first, group = max(self.addresses) + 1, self.group
        groups = {first + session: group + at for session, at in site.groups.items()}
        self.group = max(groups.values(), default=group - 1) + 2
        if relay is None:
            return
        sessions = {flow: first + session for flow, session in site.sessions.items()}
        part = by_flows(key, sessions, groups or {first: group}, mine, unicast=site.unicast)
        wanted = {channel for found in part.taken.values() for channel in found}
        for channel in sorted(wanted):
            self.addresses[channel] = (
                _without_groups(part.addresses[channel], relay) if not site.groups else part.addresses[channel]
            )
            self.relayed[channel] = relay
        for name, found in part.taken.items():
            self.taken.setdefault(name, set()).update(found)
        for flow, found in part.flows:
            self.channels.setdefault(flow, []).extend(channel for channel in found if channel in wanted)
        for channel in wanted.intersection(part.rest):
            self.rest.append(channel)
            self.knows[channel] = {flow for flow, _ in part.flows}
        self._go_straight(site, part, enters)

    def _go_straight(self, site: SiteRoutes, part: Routing, enters: Mapping[str, str]) -> None:
        """Flows past the relay, in a channel of their own for each who wants them and each place where they enter."""
        owner: dict[Address, str] = {
            a: name for name, found in part.taken.items() for c in found if isinstance(a := part.addresses[c], Unicast)
        }
        twin: dict[tuple[int, str], int] = {}
        for flow in sorted(site.straight & self.channels.keys() & enters.keys()):
            for at, channel in enumerate(self.channels[flow]):
                address = part.addresses.get(channel)
                if not isinstance(address, Unicast) or channel not in self.relayed:
                    continue
                if (channel, enters[flow]) not in twin:
                    new = twin[channel, enters[flow]] = max(*self.addresses, *part.addresses) + 1
                    self.addresses[new], self.relayed[new] = address, enters[flow]
                    self.taken[owner[address]].add(new)
                self.channels[flow][at] = twin[channel, enters[flow]]
        used = {channel for found in self.channels.values() for channel in found}
        for channel in {channel for channel, _ in twin} - used:
            self.taken[owner[part.addresses[channel]]].discard(channel)
            del self.addresses[channel], self.relayed[channel]

    def share(self) -> None:
        """A flow that a site does not know goes where it puts what it does not know."""
        for channel, known in self.knows.items():
            for flow, found in self.channels.items():
                if flow not in known:
                    found.append(channel)


def _without_groups(address: Address, relay: str) -> Address:
    """A site without groups has no multicast, not even for what belongs to no flow."""
    return Unicast(f"{REST}/{relay}") if isinstance(address, Multicast) else address
