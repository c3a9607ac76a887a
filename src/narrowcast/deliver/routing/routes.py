"""Routings from what planners decide: flows in sessions, channels by content, one filtered tree.

Each is sound by construction. Who takes what follows from the profiles themselves, never from what a
window of messages happened to show: a subscription takes every channel that may carry something it
wants, and one that the channels do not provably cover is left to the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from narrowcast.deliver.routing.audience import Audiences
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Address, Multicast, Overlay, Unicast
from narrowcast.profiles import Profile
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.possible import candidates, possible, possible_elsewhere
from narrowcast.profiles.sql.syntax import Expression

# One small message for everybody instead of one per channel.
PULSE = Unicast("~pulse")


@dataclass(frozen=True)
class Subscribers:
    """Whom a routing is for: the profile's text and the edge of each subscription, the broker of each edge."""

    profiles: Mapping[str, str]
    edges: Mapping[str, str]
    gateways: Mapping[str, str] = field(default_factory=dict)

    def routing(
        self, addresses: Mapping[int, Address], taken: Mapping[str, tuple[int, ...]], **rest: object
    ) -> Routing:
        """A routing with what it needs to know of those who take something."""
        kept = [name for name in sorted(taken) if name in self.profiles and name in self.edges]
        return Routing(
            addresses=addresses,
            taken={name: taken[name] for name in kept},
            profiles={name: parsed(self.profiles[name]).text for name in kept},
            edges={name: self.edges[name] for name in kept},
            gateways=dict(self.gateways),
            pulse=PULSE,
            **rest,  # type: ignore[arg-type]
        )


def by_flows(
    key: Sequence[str],
    session_of_flow: Mapping[str, int],
    group_of_session: Mapping[int, int],
    subscribers: Subscribers,
    *,
    unicast: Iterable[tuple[str, str]] = (),
) -> Routing:
    """Flows bundled into sessions, sessions into groups, and (flow, subscription) pairs sent apart.

    Channel l is session l. One more, in a group of its own, carries what belongs to no flow of the plan;
    those whose profile may match there take it. Each subscription that gets something apart has one more: the
    flows it has a pair for, and those that it may want and that no session carries, so that whoever the plan
    did not know is served by it as well.

    >>> who = Subscribers({"ann": "s = 'IBM'"}, {"ann": "desk"})
    >>> routing = by_flows(["s"], {"IBM": 4, "GE": 5}, {4: 1, 5: 2}, who)
    >>> routing.taken["ann"], routing.route({"s": "IBM"})[1], routing.route({"s": "new"})[1]
    ((4,), (4,), (6,))
    >>> by_flows(["s"], {}, {}, who, unicast=[("IBM", "bob")]).addresses[1]  # bob is not here, and ann wants it too
    Unicast(name='ann')
    """
    addresses: dict[int, Address] = {l: Multicast(g, l) for l, g in sorted(group_of_session.items())}
    rest = max(addresses, default=-1) + 1
    addresses[rest] = Multicast(max(group_of_session.values(), default=-1) + 1, rest)
    pairs = set(unicast)
    channels: dict[str, list[int]] = {flow: [l] for flow, l in sorted(session_of_flow.items()) if l in addresses}
    channels |= {flow: [] for flow, _ in sorted(pairs) if flow not in channels}
    sent = {flow: found[0] if found else None for flow, found in channels.items()}
    taken, free = {}, rest + 1
    for name, text in sorted(subscribers.profiles.items()):
        expression = parsed(text).expression
        flows = _flows_wanted(expression, sent, key)
        apart = [flow for flow in flows if sent[flow] is None or (flow, name) in pairs]
        found = {l for flow in flows if (l := sent[flow]) is not None and (flow, name) not in pairs}
        if apart:
            addresses[free] = Unicast(name)
            for flow in apart:
                channels[flow].append(free)
            found.add(free)
            free += 1
        if possible_elsewhere(expression, sent, key):
            found.add(rest)
        taken[name] = tuple(sorted(found))
    flows_sent = tuple((flow, tuple(found)) for flow, found in sorted(channels.items()))
    return subscribers.routing(addresses, taken, key=tuple(key), flows=flows_sent, rest=(rest,))


def _flows_wanted(expression: Expression, sent: Mapping[str, object], key: Sequence[str]) -> list[str]:
    """Every flow that may hold something wanted."""
    named = candidates(expression, key)
    beyond = sent if named is None else sorted(named & sent.keys())
    return [flow for flow in beyond if possible(expression, flow, key)]


def by_content(contents: Mapping[int, Profile], addresses: Mapping[int, Address], subscribers: Subscribers) -> Routing:
    """Channels chosen by what is in a message: semantic channels, merged queries.

    >>> wide = Profile.parse("price > 1")
    >>> who = Subscribers({"ann": "price > 5", "bob": "price > 0"}, {"ann": "desk", "bob": "desk"})
    >>> by_content({0: wide}, {0: Multicast(0, 0)}, who).taken  # bob is not covered
    {'ann': (0,)}
    """
    texts = {channel: profile.text for channel, profile in sorted(contents.items())}
    reached: dict[str | None, list[int]] = {}
    taken = {}
    for name, text in subscribers.profiles.items():
        gateway = subscribers.gateways.get(subscribers.edges.get(name, ""))
        if gateway not in reached:
            reached[gateway] = [c for c in texts if _reaches(addresses[c], gateway)]
        found = tuple(c for c in reached[gateway] if _overlap(texts[c], text))
        if found and _cover(tuple(texts[c] for c in found), text):
            taken[name] = found
    return subscribers.routing(dict(addresses), taken, content=texts)


@lru_cache(maxsize=1 << 18)
def _overlap(content: str, wanted: str) -> bool:
    """Kept from plan to plan: most of what is compared was compared before, for others or for the plan before."""
    return parsed(content).overlaps(parsed(wanted))


@lru_cache(maxsize=1 << 16)
def _cover(contents: tuple[str, ...], wanted: str) -> bool:
    return parsed(wanted).is_covered_by([parsed(content) for content in contents])


def by_audience(rule: Audiences, addresses: Mapping[int, Address], subscribers: Subscribers) -> Routing:
    """Channels chosen by the gateways where a message is wanted, as `search` plans them.

    A subscription takes every channel by which something wanted at its gateway may come, if all of them
    get there; one at a gateway that the plan does not know, or does not reach, is left to the log.

    >>> rule = Audiences((), ((0, 1.0, ("b1",)),))
    >>> who = Subscribers({"ann": "p > 5", "bob": "p > 5"}, {"ann": "x", "bob": "y"}, {"x": "b1", "y": "b2"})
    >>> by_audience(rule, {0: Overlay("b0", (("b0", "b1"),))}, who).taken  # bob's gateway is not in the plan
    {'ann': (0,)}
    """
    taken = {}
    for name in subscribers.profiles:
        gateway = subscribers.gateways.get(subscribers.edges.get(name, ""), "")
        found = rule.taken_at(gateway)
        if found and all(_reaches(addresses[channel], gateway) for channel in found):
            taken[name] = found
    return subscribers.routing(dict(addresses), taken, audiences=rule)


def by_tree(tree: Overlay, filters: Iterable[str]) -> Routing:
    """One channel for everything, on a tree whose filters thin it out. Subscriptions climb it by themselves."""
    return Routing({0: tree}, content={0: ""}, filters=tuple(sorted(filters)), pulse=PULSE, climbs=True)


def _reaches(address: Address, gateway: str | None) -> bool:
    return not isinstance(address, Overlay) or gateway in address.brokers
