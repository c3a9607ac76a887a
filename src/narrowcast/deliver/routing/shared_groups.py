"""Many channels in few multicast groups: those that the same edges take share one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Multicast


def in_groups(routing: Routing, groups: int) -> Routing:
    """The same routing with its channels in at most so many groups; each stays a session of its own.

    Channels with most takers choose first, each the group where it brings the fewest edges what they do
    not take, and of those the one that most of its takers are in. Which group carries a channel changes
    what a host has to filter, never what it gets. O(channels · groups · edges).

    >>> from narrowcast.deliver.routing.routing import Routing
    >>> taken = {"ann": (0, 1), "bob": (2,)}
    >>> edges = {"ann": "x", "bob": "y"}
    >>> apart = Routing({c: Multicast(c, c) for c in range(3)}, taken, edges=edges)
    >>> [address.group for address in in_groups(apart, 2).addresses.values()]
    [0, 0, 1]
    """
    sessions = {c: a for c, a in routing.addresses.items() if isinstance(a, Multicast)}
    if len({address.group for address in sessions.values()}) <= groups:
        return routing
    takers = _takers(routing, sessions)
    members: list[set[str]] = [set() for _ in range(groups)]
    carried = [0] * groups
    chosen: dict[int, int] = {}
    for channel in sorted(sessions, key=lambda c: (-len(takers[c]), c)):
        mine = takers[channel]
        waste = [_waste(mine, members[g], carried[g]) for g in range(groups)]
        at = min(range(groups), key=lambda g: (waste[g], len(mine - members[g]), carried[g], g))
        chosen[channel] = at
        members[at] |= mine
        carried[at] += 1
    moved = {c: Multicast(chosen[c], address.session) for c, address in sessions.items()}
    return replace(routing, addresses={**routing.addresses, **moved})


def _takers(routing: Routing, channels: Mapping[int, Multicast]) -> dict[int, frozenset[str]]:
    found: dict[int, set[str]] = {channel: set() for channel in channels}
    for name, taken in routing.taken.items():
        for channel in taken:
            if channel in found:
                found[channel].add(routing.edges[name])
    return {channel: frozenset(edges) for channel, edges in found.items()}


def _waste(mine: frozenset[str], members: set[str], carried: int) -> int:
    """How many (edge, channel) pairs more arrive in vain: the group's edges get the channel, its takers the rest."""
    return len(members - mine) + len(mine - members) * carried
