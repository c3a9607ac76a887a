"""The report of a semantic plan: channels on an overlay of brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from narrowcast.model.plan import Plan
from narrowcast.reports.build import OURS, Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.overlay import overlay_drawing
from narrowcast.reports.parts import Report, Section, Tile, figure, legend, table
from narrowcast.reports.text import number, percent, plural, short
from narrowcast.reports.whatif import Whatif

WORST = 10
SCHEMES = {"spt": "shortest path trees"}


def semantic_report(plan: Plan, whatif: Whatif | None) -> Report:
    """What each channel carries, over which links, to which gateways."""
    read = _read(plan)
    total = float(plan.cost.get("total", plan.cost.get("cost", sum(read.load.values()))))
    costs = {SCHEMES.get(n, n): float(value) for n, value in plan.baselines.items() if isinstance(value, int | float)}
    ways = ways_section(
        costs,
        total,
        label="Cost by scheme",
        lead="Messages times the links they cross.",
        note=lambda name, value: f"{percent(value / total)} of this plan" if total and name != OURS else "",
    )
    trees = costs.get(SCHEMES["spt"])
    return assemble(
        plan,
        whatif,
        headline=[
            f"{plural(len(read.channels), 'channel')} reach {plural(len(read.everyone), 'gateway')}",
            _next_best(costs, total),
            f"{read.clean:,} of {plural(len(read.gets), 'gateway')} get nothing in vain" if read.clean else "",
        ],
        summary=f"An overlay of {plural(len(read.brokers), 'broker')}; a message goes to the rendezvous of its "
        "channels and down their trees.",
        tiles=[
            Tile("Cost", number(total), "link crossings in the window"),
            Tile("Channels", f"{len(read.channels):,}", f"over {plural(len(read.load), 'link')}"),
            _busiest(read),
        ],
        ways=ways,
        yardstick=Yardstick(total, total / trees if trees else None, f"the cost of {SCHEMES['spt']}", "cost"),
        sections=[_overlay(read), _channels(read), _worst(read), _links(read)],
    )


@dataclass(frozen=True)
class _Read:
    """Channels by number with their rows, gateways, number of links and cost per message; what links carry.

    `topology` holds the cost of every link of the overlay. `gets` has, per gateway, how many messages of the window
    arrive and how many of them somebody there wants; `brings` how many a channel brings to a gateway in vain.
    """

    channels: dict[Any, dict[str, Any]]
    gateways: dict[Any, list[str]]
    links: dict[Any, int]
    way: dict[Any, float]
    topology: dict[tuple[str, str], float]
    load: dict[tuple[str, str], float]
    gets: dict[str, list[float]]
    brings: dict[tuple[str, Any], float]

    @property
    def everyone(self) -> set[str]:
        return {gateway for members in self.gateways.values() for gateway in members}

    @property
    def roots(self) -> set[str]:
        return {str(row["rendezvous"]) for row in self.channels.values()}

    @property
    def brokers(self) -> set[str]:
        return {end for link in self.topology for end in link} | self.roots | self.everyone

    @property
    def clean(self) -> int:
        return sum(arrive <= wanted * (1 + 1e-9) for arrive, wanted in self.gets.values())

    def rate(self, channel: Any) -> float:
        return float(self.channels[channel]["rate"])


def _read(plan: Plan) -> _Read:
    rows = {name: plan.tables[name].to_pylist() for name in ("channels", "channel_members", "trees", "topology")}
    channels = {row["channel"]: row for row in rows["channels"]}
    topology = {_link(row): float(row["cost"]) for row in rows["topology"]}
    none, nothing = dict.fromkeys(channels, 0), dict.fromkeys(channels, 0.0)
    found = _Read(channels, {c: [] for c in channels}, none, nothing, topology, {}, {}, {})
    for row in rows["channel_members"]:
        found.gateways[row["channel"]].append(str(row["gateway"]))
    for row in rows["trees"]:
        channel, link = row["channel"], _link(row)
        found.load[link] = found.load.get(link, 0.0) + found.rate(channel)
        found.links[channel] += 1
        found.way[channel] += topology.get(link, 1.0)
    _arrivals(plan, found)
    return found


def _link(row: dict[str, Any]) -> tuple[str, str]:
    u, v = sorted((str(row["u"]), str(row["v"])))
    return u, v


def _arrivals(plan: Plan, found: _Read) -> None:
    """What the window's messages do at each gateway: a copy per channel arrives, one of them can be wanted."""
    at: dict[Any, set[str]] = {}
    for row in plan.tables["clients"].to_pylist():
        at.setdefault(row["profile"], set()).add(str(row["gateway"]))
    found.gets.update({gateway: [0.0, 0.0] for gateway in sorted(found.everyone)})
    for row in plan.tables["window"].to_pylist():
        weight = float(row["weight"])
        wanted = {gateway for profile in row["profiles"] for gateway in at.get(profile, ())}
        for gateway in wanted & found.gets.keys():
            found.gets[gateway][1] += weight
        for channel in row["channels"]:
            for gateway in found.gateways.get(channel, ()):
                found.gets[gateway][0] += weight
                if gateway not in wanted:
                    found.brings[gateway, channel] = found.brings.get((gateway, channel), 0.0) + weight


def _next_best(costs: dict[str, float], ours: float) -> str:
    others = {name: cost for name, cost in costs.items() if cost > 0}
    if not others:
        return f"cost {number(ours)}"
    best = min(others, key=lambda name: others[name])
    change = 1 - ours / others[best]
    return f"{percent(abs(change))} {'below' if change >= 0 else 'above'} {best}, the next best way"


def _busiest(read: _Read) -> Tile:
    if not read.load:
        return Tile("Busiest link", "0")
    link = max(read.load, key=lambda link: read.load[link])
    return Tile("Busiest link", number(read.load[link]), " – ".join(short(end, 16) for end in link))


def _overlay(read: _Read) -> Section:
    label = f"The overlay with its {plural(len(read.load), 'link')}; thick links carry much."
    drawing = overlay_drawing({**dict.fromkeys(read.topology, 0.0), **read.load}, read.everyone, read.roots, label)
    keys = legend([("gateway", "gateway"), ("rendezvous", "rendezvous"), ("other", "link, as thick as its load")])
    return Section("overlay", "The overlay", keys + figure(drawing), "Brokers near in hops are near on the page.")


def _channels(read: _Read) -> Section:
    columns = ("channel", "rate", "links", "gateways", "rendezvous", "content")
    cost = {c: read.rate(c) * read.way[c] for c in read.channels}
    facts = {c: (c, number(read.rate(c)), read.links[c], len(read.gateways[c])) for c in read.channels}
    chart = load_chart([Load(f"channel {c}", cost[c], facts[c]) for c in cost], columns[:4], what="channel")
    dearest = sorted(cost, key=lambda c: -cost[c])[:WORST]
    rows = [
        (*facts[c], short(str(read.channels[c]["rendezvous"])), short(str(read.channels[c]["expression"]), 160))
        for c in dearest
    ]
    told = table(columns, rows, numbers=columns[1:4], stack=True)
    lead = "What each channel costs: its messages times the cost of its links; and what the ten dearest carry."
    return Section("channels", "Load per channel", f"{chart}<h3>Dearest</h3>{told}", lead)


def _worst(read: _Read) -> Section:
    """The gateways that get most in vain, and the channels that bring it."""
    vain = {gateway: arrive - wanted for gateway, (arrive, wanted) in read.gets.items()}
    order = [gateway for gateway in sorted(vain, key=lambda g: (-vain[g], g))[:WORST] if vain[gateway] > 0]
    if not order:
        return Section("worst", "Worst served", "<p>No gateway gets anything in vain.</p>")
    rows = [(short(g), *map(number, read.gets[g]), number(vain[g]), _culprits(read, g)) for g in order]
    columns = ("gateway", "gets", "wants", "in vain", "most of it by")
    lead = "The gateways at which most messages of the window arrive in vain, and the channels that bring them there."
    return Section("worst", "Worst served", table(columns, rows, numbers=columns[1:4], stack=True), lead)


def _culprits(read: _Read, gateway: str) -> str:
    mine = {channel: amount for (g, channel), amount in read.brings.items() if g == gateway}
    order = sorted(mine, key=lambda channel: (-mine[channel], channel))[:3]
    return ", ".join(f"channel {c} ({number(mine[c])})" for c in order) or "copies on several channels"


def _links(read: _Read) -> Section:
    order = sorted(read.load, key=lambda link: (-read.load[link], link))[:WORST]
    rows = [(short(u), short(v), number(read.load[u, v])) for u, v in order]
    body = table(("from", "to", "messages"), rows, numbers=("messages",)) if rows else "<p>No link is used.</p>"
    return Section("links", "Busiest links", body)
