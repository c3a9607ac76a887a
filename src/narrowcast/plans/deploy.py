"""A plan from its folder as a routing: what each kind of plan means on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from narrowcast.deliver.routing.routes import Subscribers, by_audience, by_content, by_flows, by_tree
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.shared_groups import in_groups
from narrowcast.deliver.transport import Address, Multicast, Overlay
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model.plan import Plan
from narrowcast.plans.semantic.route import audiences_of
from narrowcast.profiles import Profile
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.sql.syntax import Between, Compare, Expression, In, conjunction


def routing_of(plan: Plan, subscribers: Subscribers, *, key: Sequence[str] = (), groups: int | None = None) -> Routing:
    """The routing of a plan of any kind, for the subscriptions there are now.

    `key` names the attributes that make a flow, as when the plan was made; only channels and hybrid plans
    need it. `groups` is how many multicast groups there are; a queries plan, which asks for one per set, makes
    do with these. Sound for whoever subscribes: what the plan does not cover is served from the log.
    """
    found = _KINDS[plan.kind](plan, subscribers, tuple(key))
    return in_groups(found, groups) if plan.kind == "queries" and groups is not None else found


def profiles_of(plan: Plan, *, key: Sequence[str] = ()) -> dict[str, str]:
    """Profiles of the subscribers a plan was made for, as text, where its folder holds their wishes.

    From the interest of channels and hybrid plans (whole flows of one key attribute) or the boxes of
    queries. Empty for plans that keep none.
    """
    if plan.kind in ("channels", "hybrid") and len(key) == 1:
        wished: dict[str, list[str]] = {}
        for flow, name in zip(*_columns(plan, "interest", "flow", "subscriber"), strict=True):
            wished.setdefault(str(name), []).append(str(flow))
        return {name: Profile.from_expression(In(key[0], tuple(sorted(flows)))).text for name, flows in wished.items()}
    if plan.kind == "queries":
        return {name: _box(sides).text for name, sides in _sides(plan, "queries", "query").items()}
    return {}


def _by_sessions(plan: Plan, subscribers: Subscribers, key: tuple[str, ...]) -> Routing:
    if not key:
        raise InputError(
            f"a {plan.kind} plan sends flows, and nothing says which attributes make a flow",
            name="key",
            hint="give the key it was measured with, such as --key symbol",
        )
    sessions = {str(f): int(l) for f, l in zip(*_columns(plan, "flow_session", "flow", "session"), strict=True)}
    groups = {int(l): int(g) for l, g in zip(*_columns(plan, "session_group", "session", "group"), strict=True)}
    pairs: list[tuple[str, str]] = []
    if plan.kind == "hybrid":
        pairs = [(str(f), str(s)) for f, s in zip(*_columns(plan, "unicast", "flow", "subscriber"), strict=True)]
    return by_flows(key, sessions, groups, subscribers, unicast=pairs)


def _by_expression(plan: Plan, subscribers: Subscribers, key: tuple[str, ...]) -> Routing:
    names, texts, roots = _columns(plan, "channels", "channel", "expression", "rendezvous")
    links: dict[Any, list[tuple[str, str]]] = {}
    for name, u, v in zip(*_columns(plan, "trees", "channel", "u", "v"), strict=True):
        links.setdefault(name, []).append((str(u), str(v)))
    trees = {
        channel: Overlay(str(root), tuple(links.get(name, ())))
        for channel, (name, root) in enumerate(zip(names, roots, strict=True))
    }
    if plan.parameters.get("rule") == "audience":
        return by_audience(audiences_of(plan, trees), trees, subscribers)
    contents = {channel: parsed(text) for channel, text in enumerate(texts)}
    return by_content(contents, trees, subscribers)


def _by_merged_query(plan: Plan, subscribers: Subscribers, key: tuple[str, ...]) -> Routing:
    pieces = _sides(plan, "channels", "set", "piece")
    contents: dict[int, list[Profile]] = {}
    for (number, _), sides in pieces.items():
        contents.setdefault(int(number), []).append(_box(sides))
    addresses: dict[int, Address] = {channel: Multicast(channel, channel) for channel in contents}
    merged = {channel: Profile.any_of(boxes) for channel, boxes in contents.items()}
    return by_content(merged, addresses, subscribers)


def _by_filters(plan: Plan, subscribers: Subscribers, key: tuple[str, ...]) -> Routing:
    nodes, parents = _columns(plan, "trees", "node", "parent")
    roots = [str(node) for node, parent in zip(nodes, parents, strict=True) if parent in (None, "")]
    if len(roots) != 1:
        raise UnsupportedError(f"a filtered tree has one root; this plan has {len(roots)}", works=("one tree",))
    links = tuple((str(p), str(n)) for n, p in zip(nodes, parents, strict=True) if p not in (None, ""))
    (filters,) = _columns(plan, "filters", "node")
    return by_tree(Overlay(roots[0], links), [str(node) for node in filters], subscribers)


_KINDS: dict[str, Callable[[Plan, Subscribers, tuple[str, ...]], Routing]] = {
    "channels": _by_sessions,
    "hybrid": _by_sessions,
    "semantic": _by_expression,
    "queries": _by_merged_query,
    "filters": _by_filters,
}


def _columns(plan: Plan, table: str, *names: str) -> tuple[list[Any], ...]:
    return tuple(plan.tables[table][name].to_pylist() for name in names)


def _sides(plan: Plan, table: str, *names: str) -> Mapping[Any, list[tuple[str, float, float]]]:
    """Ranges by dimension, under the columns that name their box."""
    found: dict[Any, list[tuple[str, float, float]]] = {}
    *keys, dimensions, lows, highs = _columns(plan, table, *names, "dimension", "low", "high")
    for *which, dimension, low, high in zip(*keys, dimensions, lows, highs, strict=True):
        found.setdefault(tuple(which) if len(which) > 1 else which[0], []).append((dimension, low, high))
    return found


def _box(sides: Sequence[tuple[str, float, float]]) -> Profile:
    """A closed box; an endless side asks nothing, not even for a value."""
    infinite = float("inf")
    parts: list[Expression] = []
    for name, low, high in sides:
        if low > -infinite and high < infinite:
            parts.append(Between(name, low, high))
        elif low > -infinite:
            parts.append(Compare(name, ">=", low))
        elif high < infinite:
            parts.append(Compare(name, "<=", high))
    return Profile.from_expression(conjunction(parts))
