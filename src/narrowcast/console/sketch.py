"""Which boxes and lines the map of a system has: its sources, what carries messages, and who receives them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Multicast, Overlay, Unicast
from narrowcast.reports.system_map import Leg, Station

MOST = 14  # boxes of a column; the others are one box
UNICAST, LOG, OTHERS = "unicast", "log", "others"


def asks(what: str, name: object) -> str:
    """What the address of a link says that asks about something.

    >>> asks("flow", "a b")
    'flow:a%20b'
    """
    return f"{what}:{quote(str(name), safe='')}"


def sketched(
    routing: Routing,
    subscriptions: Mapping[str, Mapping[str, Any]],
    sources: Sequence[str],
    edges: Sequence[str],
    busiest: Mapping[int, float],
    filters: Collection[str],
) -> tuple[list[tuple[str, list[Station]]], list[Leg]]:
    """Columns and lines. `edges` come most important first, `busiest` are the groups with their rates.

    `filters` are the brokers that filter now.
    """
    shown = list(edges[:MOST])
    ways: dict[str, set[str]] = {edge: set() for edge in shown}  # the boxes that each edge gets messages from
    for name, record in subscriptions.items():
        if record["edge"] in ways:
            ways[record["edge"]] |= _ways(routing, name, record)
    addresses = [*routing.addresses.values()]
    groups = _few({a.group for a in addresses if isinstance(a, Multicast)}, busiest)
    carriers = [Station(f"group:{g}", f"group {g}", "group", asks("group", g)) for g in groups]
    trees = [a for a in addresses if isinstance(a, Overlay)]
    hidden = {f"group:{a.group}" for a in addresses if isinstance(a, Multicast)} - {c.key for c in carriers}
    if hidden:
        carriers.append(Station("group:others", f"{len(hidden)} more groups", "more"))
    if any(isinstance(a, Unicast) for a in addresses):
        carriers.append(Station(UNICAST, "unicast", "unicast"))
    if not routing.addresses or any(LOG in each for each in ways.values()):
        carriers.append(Station(LOG, "from the log", "log"))
    columns = [("Sources", [Station(f"source:{name}", name, "source") for name in sources])]
    if carriers:
        columns.append(("Groups" if groups else "Carriers", carriers))
    legs = [Leg(s.key, c.key, c.key) for s in columns[0][1] for c in carriers]
    for heading, brokers in _levels(trees, filters):
        columns.append((heading, brokers))
    drawn = {station.key for _, stations in columns for station in stations}
    fed = {v for tree in trees for _, v in tree.links}
    roots = {f"broker:{tree.root}" for tree in trees if tree.links or tree.root not in fed}
    links = sorted({link for tree in trees for link in tree.links})
    legs += [Leg(s.key, root, root) for s in columns[0][1] for root in sorted(roots)]
    legs += [Leg(f"broker:{u}", f"broker:{v}", f"broker:{v}") for u, v in links]
    called = labels(subscriptions)
    receivers = [Station(f"edge:{e}", called.get(e, e), "edge", asks("subscriber", called.get(e, e))) for e in shown]
    if len(edges) > len(shown):
        receivers.append(Station("edge:others", f"{len(edges) - len(shown)} more", "more"))
    columns.append(("Subscribers", receivers))
    for edge, boxes in ways.items():
        seen = {"group:others" if box in hidden else box for box in boxes} & drawn
        legs += [Leg(box, f"edge:{edge}", box if box.startswith("group:") else f"edge:{edge}") for box in sorted(seen)]
    return columns, legs


def labels(subscriptions: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What to call each edge: by the name of its one subscription, which people chose, or by its own."""
    found: dict[str, str] = {}
    for name, record in subscriptions.items():
        edge = record["edge"]
        found[edge] = edge if edge in found else name
    return found


def planned_at_gateways(found: dict[str, Any], subscriptions: Mapping[str, Mapping[str, Any]]) -> None:
    """Give an edge that is alone behind a gateway what the plan says of that gateway."""
    behind: dict[str, set[str]] = {}
    for record in subscriptions.values():
        behind.setdefault(record.get("gateway") or "", set()).add(record["edge"])
    alone = {next(iter(edges)): gateway for gateway, edges in behind.items() if len(edges) == 1}
    for edge in found["edges"]:
        edge["predicted"] = found["gateways"].get(alone.get(edge["name"]), {}) | edge["predicted"]


def _ways(routing: Routing, name: str, record: Mapping[str, Any]) -> set[str]:
    gateway = f"broker:{record.get('gateway') or ''}"
    if name not in routing.taken:
        return {gateway} if routing.climbs and record.get("gateway") else {LOG}
    found = set()
    for channel in routing.taken[name]:
        address = routing.addresses[channel]
        if isinstance(address, Multicast):
            found.add(f"group:{address.group}")
        elif isinstance(address, Unicast):
            found.add(UNICAST)
        else:
            found.add(gateway)
    return found


def _few(groups: Iterable[int], busiest: Mapping[int, float]) -> list[int]:
    """The busiest, in the order of their numbers."""
    return sorted(sorted(groups, key=lambda g: (-busiest.get(g, 0.0), g))[:MOST])


def _levels(trees: Sequence[Overlay], filters: Collection[str]) -> list[tuple[str, list[Station]]]:
    """Brokers by their hops from where most messages enter, the root of the largest tree; a column each."""
    near: dict[str, set[str]] = {tree.root: set() for tree in trees}
    for tree in trees:
        for u, v in tree.links:
            near.setdefault(u, set()).add(v)
            near.setdefault(v, set()).add(u)
    found, seen = list[tuple[str, list[Station]]](), set[str]()
    level = {tree.root for tree in sorted(trees, key=lambda tree: (-len(tree.links), tree.root))[:1]}
    level |= _elsewhere(near, level)
    while level:
        seen |= level
        order = sorted(level)
        stations = [
            Station(f"broker:{name}", name, "filter" if name in filters else "broker", asks("node", name))
            for name in order[:MOST]
        ]
        if len(order) > MOST:
            stations.append(Station(f"broker:others-{len(found)}", f"{len(order) - MOST} more", "more"))
        found.append(("Brokers" if not found else f"{len(found)} hop{'s' if len(found) > 1 else ''}", stations))
        level = {v for u in level for v in near[u]} - seen
    return found


def _elsewhere(near: Mapping[str, set[str]], begin: set[str]) -> set[str]:
    """One broker of every part that cannot be reached from these."""
    found, left, reached = set[str](), sorted(near), set[str]()
    for start in [*begin, *left]:
        if start in reached:
            continue
        if start not in begin:
            found.add(start)
        front = {start}
        while front:
            reached |= front
            front = {v for u in front for v in near[u]} - reached
    return found
