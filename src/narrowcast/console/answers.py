"""What the running system says of one flow, subscriber, group or broker, beside what the plan says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from narrowcast.console.sketch import asks, labels, planned_at_gateways
from narrowcast.console.state import OVER_S
from narrowcast.console.watch import SystemWatch
from narrowcast.deliver.transport import Address, Multicast, Overlay, Unicast
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.possible import possible
from narrowcast.reports.parts import Section, facts, table
from narrowcast.reports.text import THIN, e, number, percent

MOST = 20
WAYS = {"rest": "the channel for the rest"}
#: Where a message ends, as shares of all that are sent.
LEVELS = {"useful": "useful", "group": "kept away by the network", "session": "dropped by the middleware",
          "flow": "dropped by flow", "profile": "dropped by profile"}  # fmt: skip


def way_of(address: Address) -> str:
    """An address as people call it."""
    if isinstance(address, Multicast):
        return f"session {address.session} of group {address.group}"
    if isinstance(address, Overlay):
        return f"tree from {address.root}"
    return "unicast" if isinstance(address, Unicast) else "straight"


def named_like(watch: SystemWatch, text: str) -> list[dict[str, str]]:
    """What has a name that holds this text: subscribers, groups, brokers, then flows."""
    routing, asked = watch.routing, text.casefold()
    groups = sorted({a.group for a in routing.addresses.values() if isinstance(a, Multicast)})
    brokers = sorted({b for a in routing.addresses.values() if isinstance(a, Overlay) for b in a.brokers})
    named = [("subscriber", name) for name in watch.subscriptions]
    named += [("group", str(group)) for group in groups] + [("node", name) for name in brokers]
    named += [("flow", name) for name, _ in routing.flows]
    hits = ((what, name) for what, name in named if asked in f"{what} {name}".casefold())
    return [
        {"what": what, "name": name, "asks": asks(what, name)}
        for (what, name), _ in zip(hits, range(MOST), strict=False)
    ]


def answer_about(watch: SystemWatch, what: str, name: str) -> str:
    """A piece of a page; one sentence where nothing of the name runs."""
    body = {"flow": _flow, "subscriber": _subscriber, "group": _group, "node": _broker}.get(what, _nothing)(watch, name)
    return body or f"<p>Nothing of this name runs: {e(what)} {e(name)}.</p>"


def live_section(watch: SystemWatch) -> Section:
    """What is measured now beside what the plan in force says: of everybody together, then who gets most unasked."""
    found = watch.overview.measured(OVER_S)
    planned_at_gateways(found, watch.subscriptions)
    edges = sorted(found["edges"], key=lambda edge: (-edge["unasked_s"], edge["name"]))
    called = labels(watch.subscriptions)
    rows = [_shares("everybody", edges)]
    rows += [_shares(called.get(edge["name"], edge["name"]), [edge]) for edge in edges[:MOST]]
    heads = ("who", "useful, planned", "useful, measured", "unasked, planned", "unasked, measured")
    lead = (
        f"Shares of the {_rate(found['messages_s'])} that the sources send now, as each edge sees them; planned shares "
        "where the plan knows them. Everything below is the plan alone."
    )
    return Section("now", "Now, beside the plan", table(heads, rows, numbers=heads[1:], stack=True), lead)


def _shares(name: str, edges: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Means over edges of what is useful, and of what is received and dropped."""
    cells = []
    for names in (("useful",), ("session", "flow", "profile")):
        for kind in ("predicted", "measured"):
            known = [sum(edge[kind].get(part, 0.0) for part in names) for edge in edges if edge[kind]]
            cells.append(percent(sum(known) / len(known)) if known else "–")
    return (name, *cells)


def _nothing(watch: SystemWatch, name: str) -> str:
    return ""


def _rate(value: float) -> str:
    return f"{number(round(value, 1))}{THIN}/s"


def _flow(watch: SystemWatch, name: str) -> str:
    channels = dict(watch.routing.flows).get(name)
    if channels is None:
        return ""
    routing = watch.routing
    rows = []
    for who, taken in sorted(routing.taken.items()):
        if set(taken) & set(channels) and who in watch.subscriptions:
            text = watch.subscriptions[who]["profile"]
            wants = possible(parsed(text).expression, name, routing.key)
            rows.append((who, "may want it" if wants else "unasked", text[:120]))
    rows.sort(key=lambda row: (row[1] == "may want it", row[0]))
    ways = ", ".join(way_of(routing.addresses[c]) for c in channels if c in routing.addresses)
    listed = table(("subscriber", "gets it", "profile"), rows[:MOST], stack=True) if rows else ""
    known = [("goes by", ways or "nothing: nobody wants it"), ("edges that receive it", len(rows))]
    return facts(known) + listed


def _subscriber(watch: SystemWatch, name: str) -> str:
    edge = watch.subscriptions[name]["edge"] if name in watch.subscriptions else name
    mine = {sub: record for sub, record in watch.subscriptions.items() if record["edge"] == edge}
    found = watch.overview.measured(OVER_S)
    planned_at_gateways(found, watch.subscriptions)
    live = next((e for e in found["edges"] if e["name"] == edge), None)
    if not mine and live is None:
        return ""
    gateway = next((record.get("gateway") for record in mine.values()), None)
    known: list[tuple[str, Any]] = [("edge", edge), ("behind broker", gateway)]
    if live is not None:
        known += [("useful", _rate(live["useful_s"])), ("unasked", _rate(live["unasked_s"]))]
        counts = {"lag, in log entries": live["lag"], "repaired from the log": live["repaired"], "gaps": live["gaps"]}
        counts |= {f"came by {WAYS.get(how, how)}": n for how, n in live["ways"].items() if how != "log"}
        known += [(what, number(n)) for what, n in counts.items()]
        measured, predicted = live["measured"], live["predicted"]
        known += [
            (f"{words}, measured / predicted", f"{percent(measured[level])} / {percent(predicted[level])}")
            for level, words in LEVELS.items()
            if level in predicted and level in measured
        ]
    routing = watch.routing
    rows = []
    for sub, record in sorted(mine.items()):
        channels = routing.taken.get(sub)
        served = {way_of(routing.addresses[c]) for c in channels or ()}
        if channels is None:
            served = {"the tree" if routing.climbs and record.get("gateway") else "the log, until it is planned for"}
        ways = sorted(served)
        rows.append((sub, record["profile"][:300], ", ".join(ways[:6]) + (" …" if len(ways) > 6 else "")))
    return facts([(k, v) for k, v in known if v is not None]) + table(
        ("subscription", "profile", "served by"), rows[:MOST], stack=True
    )


def _group(watch: SystemWatch, name: str) -> str:
    routing = watch.routing
    mine = {c for c, a in routing.addresses.items() if isinstance(a, Multicast) and str(a.group) == name}
    if not mine:
        return ""
    measured = watch.overview.measured(OVER_S)
    live = next((g for g in measured["groups"] if str(g["group"]) == name), None)
    flows = [flow for flow, channels in routing.flows if mine.intersection(channels)]
    takers = sorted(sub for sub, taken in routing.taken.items() if mine.intersection(taken))
    known: list[tuple[str, Any]] = [
        ("sessions", len(mine)),
        ("flows", f"{len(flows):,}"),
        ("subscriptions", len(takers)),
    ]
    if live is not None:
        known += [("sent now", _rate(live["messages_s"])), ("edges that joined", live["members"])]
        shares = [percent(live[k]) if live[k] is not None else "–" for k in ("share", "predicted")]
        known.append(("share of all traffic, measured / predicted", " / ".join(shares)))
    rows = [(flow,) for flow in flows[:MOST]]
    return facts(known) + (table((f"flows ({len(rows):,} of {len(flows):,})",), rows) if rows else "")


def _broker(watch: SystemWatch, name: str) -> str:
    trees = [a for a in watch.routing.addresses.values() if isinstance(a, Overlay) and name in a.brokers]
    if not trees:
        return ""
    live = next((flow for flow in watch.overview.flows(OVER_S) if flow[0] == name), None)
    behind = sorted(sub for sub, record in watch.subscriptions.items() if record.get("gateway") == name)
    known: list[tuple[str, Any]] = [
        ("trees through it", len(trees)),
        ("passes on to", ", ".join(sorted({c for tree in trees for c in tree.children(name)})) or "edges only"),
        ("filters", "yes" if name in watch.filtering else "no"),
        ("subscriptions behind it", len(behind)),
    ]
    if live is not None:
        known += [("messages in", _rate(live[3])), ("messages out", _rate(live[2]))]
    return facts(known) + (table(("subscription",), [(sub,) for sub in behind[:MOST]]) if behind else "")
