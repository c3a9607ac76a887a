"""A plan as a migration sees it: what must be in place for each wish, and where each content goes.

A *need* is one thing that somebody has to do beforehand: join a group, take a session in, send a unicast
copy, ask a merged query, forward a link. A wish is met while all its needs are in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from narrowcast.errors import PlanError
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.judge.delivery import delivery
from narrowcast.plans.queries.judge import QueryTables


class Need(NamedTuple):
    """`verb` says what has to be done, by `who`, to `what`."""

    verb: str
    who: str
    what: str


# What the network must be told of, one message each: these keep to the join rate.
SIGNALLED = frozenset({"join", "forward"})


@dataclass(frozen=True, slots=True)
class Ways:
    """For each content where it goes (as people call it), and for each wish (receiver, content) its needs.

    `filters` are the nodes that filter. They only take away what nobody below wants, so no wish needs one.
    """

    place: Mapping[str, str]
    wishes: Mapping[tuple[str, str], frozenset[Need]]
    filters: Mapping[str, float] = field(default_factory=dict)
    weight: Mapping[str, float] = field(default_factory=dict)  # of each content, to show the largest first

    @property
    def needs(self) -> frozenset[Need]:
        """All that is in place while the plan is in force."""
        return frozenset().union(*self.wishes.values()) if self.wishes else frozenset()


def ways_of(plan: Plan) -> Ways:
    """The plan's ways. O(wishes)."""
    known = WAYS.get(plan.kind)
    if known is None:
        raise PlanError(f"a {plan.kind} plan has no ways to move from or to")
    return known(plan)


def _channels(plan: Plan) -> Ways:
    read = delivery(plan)
    if read.unknown:
        raise PlanError(f"the plan is unsound: {read.unknown[0]}")
    place: dict[str, str] = {}
    wishes = {}
    groups, sessions = read.groups.tolist(), read.sessions.tolist()
    for k, name in enumerate(read.flow_names):
        l, g = int(read.session_of_flow[k]), int(read.group_of_flow[k])
        if read.audience_sizes[k]:
            place[name] = f"session {sessions[l]} of group {groups[g]}" if l >= 0 else "unicast"
    pairs = zip(read.want_flow.tolist(), read.want_user.tolist(), read.by_unicast.tolist(), strict=True)
    for k, u, alone in pairs:
        user, flow = read.user_names[u], read.flow_names[k]
        if alone or read.group_of_flow[k] < 0:
            needs = [Need("copy", user, f"flow {flow}")]
        else:
            g, l = groups[read.group_of_flow[k]], sessions[read.session_of_flow[k]]
            needs = [Need("join", user, f"group {g}"), Need("take", user, f"session {l}")]
        wishes[user, flow] = frozenset(needs)
    return Ways(place, wishes, weight=dict(zip(read.flow_names, read.rates.tolist(), strict=True)))


def _queries(plan: Plan) -> Ways:
    read = QueryTables(plan)
    if read.broken:
        raise PlanError(f"the plan is unsound: {read.broken[0]}")
    place, wishes, weight = {}, {}, {}
    for at, members in read.members.items():
        pieces = sorted(_box(piece) for piece in read.pieces[at].values())
        for name in members:
            # A query that asks something else now is another one; its name stays in front.
            query = f"{' of '.join(map(str, name))} {_box(read.queries[name])}"
            receiver = str(name[-1])
            place[query] = f"set {at}"
            weight[query] = 0.0
            asked = Need("ask", f"set {at}", " or ".join(pieces))
            wishes[receiver, query] = frozenset({Need("join", receiver, f"set {at}"), asked})
    return Ways(place, wishes, weight=weight)


def _box(box: Any) -> str:
    return " x ".join(f"[{low:.17g}, {high:.17g}]" for low, high in box.tolist())


def _filters(plan: Plan) -> Ways:
    rows = plan.tables["trees"].to_pylist()
    parent = {row["node"]: row["parent"] for row in rows}
    leaves = set(parent) - set(parent.values())
    place, wishes = {}, {}
    for leaf in leaves:
        way: list[Need] = []
        node = leaf
        while parent[node] is not None and len(way) <= len(parent):
            way.append(Need("forward", str(parent[node]), f"to {node}"))
            node = parent[node]
        content = f"all for {leaf}"
        place[content] = f"under {parent[leaf]}"
        wishes[str(leaf), content] = frozenset(way)
    flow = {str(row["node"]): float(row["flow"]) for row in rows}
    filters = {str(node): flow[str(node)] for node in plan.tables["filters"]["node"].to_pylist()}
    return Ways(place, wishes, filters, weight={f"all for {leaf}": flow[str(leaf)] for leaf in leaves})


def _semantic(plan: Plan) -> Ways:
    """A gateway's wish needs every link of every channel that it is a member of: any message may come over any."""
    children: dict[int, dict[str, str]] = {}
    for row in plan.tables["trees"].to_pylist():
        children.setdefault(row["channel"], {})[row["v"]] = row["u"]
    taken: dict[str, list[int]] = {}
    for row in plan.tables["channel_members"].to_pylist():
        taken.setdefault(row["gateway"], []).append(row["channel"])
    place, wishes = {}, {}
    for gateway in dict.fromkeys(plan.tables["clients"]["gateway"].to_pylist()):
        needs = set()
        for channel in taken.get(gateway, []):
            above, node = children.get(channel, {}), gateway
            needs.add(Need("join", gateway, f"channel {channel}"))
            while node in above and len(needs) <= 1 << 20:
                needs.add(Need("forward", above[node], f"channel {channel} to {node}"))
                node = above[node]
        content = f"all for {gateway}"
        place[content] = f"channels {', '.join(map(str, sorted(taken.get(gateway, []))))}"
        wishes[gateway, content] = frozenset(needs)
    return Ways(place, wishes)


WAYS: dict[str, Callable[[Plan], Ways]] = {
    "channels": _channels,
    "hybrid": _channels,
    "queries": _queries,
    "filters": _filters,
    "semantic": _semantic,
}
