"""Entitlements are profiles: what an account may see. None is everything.

What somebody gets is what they want and may see. A session's key opens whatever the session carries, so it is given to
those only who may see all of that; everybody else has a channel of their own, filtered by the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.sites import RELAY
from narrowcast.deliver.transport import Multicast, Unicast
from narrowcast.errors import InputError
from narrowcast.profiles import Profile
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.possible import certain
from narrowcast.profiles.sql.syntax import And, Expression


def effective(wanted: str, entitled: str | None) -> str:
    """What is both wanted and allowed, as a profile's text; the same again for what it returned.

    >>> effective("price > 5", "region = 'EU'")
    "price > 5 AND region = 'EU'"
    >>> effective("price > 5 AND region = 'EU'", "region = 'EU'")
    "price > 5 AND region = 'EU'"

    Raises InputError if that is nothing.
    """
    wish = Profile.parse(wanted)
    if entitled is None:
        return wish.text
    limit = parsed(entitled)
    if _conjuncts(limit) <= _conjuncts(wish) or limit.covers(wish):
        return wish.text
    if not limit.overlaps(wish):
        raise InputError(
            f"profile must overlap what this account may see ({entitled}), got {wish.text}",
            name="profile",
            got=wish.text,
        )
    return (wish & limit).text


def _conjuncts(profile: Profile) -> frozenset[Expression]:
    expression = profile.expression
    return frozenset(expression.parts if isinstance(expression, And) else (expression,))


def kept_apart(routing: Routing, entitled: Mapping[str, str | None]) -> list[str]:
    """The subscriptions of accounts that need a channel of their own: the plan's carry more than they may see.

    `entitled` has the subscriptions of accounts, and what each may see. Overlay trees and relays of sites are for those
    without an account: their frames are opened on the way and sealed for everybody below.
    """
    found = []
    for name, text in sorted(entitled.items()):
        limit = None if text is None else parsed(text)
        taken = routing.taken.get(name)
        if taken is None or not all(is_within(routing, channel, limit, name) for channel in taken):
            found.append(name)
    return found


def is_within(routing: Routing, channel: int, limit: Profile | None, name: str) -> bool:
    """Whether whatever a channel carries may be seen by somebody, and is carried in a way that is safe for them."""
    address = routing.addresses[channel]
    if channel in routing.relayed or not (isinstance(address, Multicast) or address == Unicast(name)):
        return False
    if limit is None:
        return True
    if channel in routing.rest or (routing.audiences is not None and channel not in routing.content):
        return False
    text = routing.content.get(channel)
    if text is not None and (not text or not limit.covers(parsed(text))):
        return False
    flows = _flows_of(routing).get(channel, ())
    known = text is not None or bool(flows)  # of any other channel nobody knows here what it carries
    return known and all(certain(limit.expression, flow, routing.key) for flow in flows)


@lru_cache(maxsize=4)
def _flows_of(routing: Routing) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for flow, channels in routing.flows:
        for channel in channels:
            found.setdefault(channel, []).append(flow)
    return found


def plan_view(routing: Routing, owns: Callable[[str], bool]) -> Routing:
    """What one account needs of a plan: its own subscriptions and their channels, and nobody else's.

    And which channels are those of relays: a heartbeat of theirs that somebody leads here would be taken for one of a
    source, and what it does not speak of for something that is not there.
    """
    own = [name for name in routing.taken if owns(name)]
    taken = {name: routing.taken[name] for name in own}
    channels = {channel for found in taken.values() for channel in found}
    relayed = {channel: RELAY for channel in routing.relayed if routing.relay_of(channel)}
    return Routing(
        addresses={channel: at for channel, at in routing.addresses.items() if channel in channels},
        taken=taken,
        rest=tuple(channel for channel in routing.rest if channel in channels),
        profiles={name: routing.profiles[name] for name in own},
        edges={name: routing.edges[name] for name in own} | dict.fromkeys(relayed.values(), ""),
        pulse=routing.pulse,
        relayed=relayed,
    )
