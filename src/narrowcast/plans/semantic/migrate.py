"""From one semantic plan to another: the trees that each gateway needs, and channels numbered as the older plan's."""

from __future__ import annotations

from typing import Any

from narrowcast.errors import PlanError
from narrowcast.evaluate.matching import with_numbers
from narrowcast.evaluate.ways import Need, Ways
from narrowcast.model.plan import Tables
from narrowcast.plans.semantic.judge.reader import ReadOverlay


def ways(plan: Tables) -> Ways:
    """A gateway's wish needs every link of every channel that it is a member of: any message may come over any."""
    read = _read(plan)
    above = {c: {v: u for u, v in links} for c, links in read.tree.items()}
    place, wishes = {}, {}
    for gateway in dict.fromkeys(gateway for _, _, gateway, _ in read.clients):
        taken = sorted(c for c, members in read.members.items() if gateway in members)
        needs = {need for c in taken for need in _needs(gateway, c, above[c])}
        content = f"all for {gateway}"
        place[content] = f"channels {', '.join(map(str, taken))}"
        wishes[gateway, content] = frozenset(needs)
    return Ways(place, wishes)


def _needs(gateway: str, channel: int, above: dict[str, str]) -> list[Need]:
    """The join, and every link on the way up; a walk that comes to a node again is in no tree and ends there."""
    needs, node, seen = [Need("join", gateway, f"channel {channel}")], gateway, {gateway}
    while node in above:
        needs.append(Need("forward", above[node], f"channel {channel} to {node}"))
        node = above[node]
        if node in seen:
            break
        seen.add(node)
    return needs


def renumbered(new: Tables, old: Tables) -> Tables:
    """The new plan with the old one's numbers wherever they fit: the same plan to everybody.

    A channel keeps a number only where its whole tree stays: brokers know channels by number alone, and two trees
    under one number would send messages twice. The verdict in `checks` goes, since it was on the other numbers.
    """
    shapes = [_shapes(_read(plan)) for plan in (new, old)]
    free: dict[Any, list[int]] = {}
    for number, shape in sorted(shapes[1].items(), reverse=True):
        free.setdefault(shape, []).append(number)
    found = {n: free[shape].pop() for n, shape in sorted(shapes[0].items()) if free.get(shape)}
    fresh = iter(range(max(shapes[1], default=-1) + 1, max(shapes[1], default=-1) + 2 + len(shapes[0])))
    numbers = {n: found[n] if n in found else next(fresh) for n in sorted(shapes[0])}
    single = {"channel": numbers}
    plan = with_numbers(new, {"channels": single, "channel_members": single, "trees": single})
    return with_numbers(plan, {"window": {"channels": numbers}, "sample": {"_channels": numbers}})


def _read(plan: Tables) -> ReadOverlay:
    read = ReadOverlay(plan)
    if read.broken:
        raise PlanError(f"the plan is unsound: {read.broken[0]}")
    return read


def _shapes(read: ReadOverlay) -> dict[int, Any]:
    return {c: (root, frozenset(read.tree[c]), frozenset(read.members[c])) for c, root in read.rendezvous.items()}
