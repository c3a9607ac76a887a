"""The report of a semantic plan: channels on an overlay of brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from narrowcast.plans.semantic.channel import Channel
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.tables.words import told
from narrowcast.reports.build import OURS, Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.find import Findable
from narrowcast.reports.overlay import DrawnTree, overlay_drawing, tree_choice, tree_keys
from narrowcast.reports.parts import Report, Section, Tile, table
from narrowcast.reports.picture import Picture
from narrowcast.reports.text import number, percent, plural, short
from narrowcast.reports.whatif import Whatif

WORST = 10
SCHEMES = {"spt": "shortest path trees"}


def report(plan: SemanticPlan, whatif: Whatif | None) -> Report:
    """What each channel carries, over which links, to which gateways."""
    read = _read(plan)
    total = plan.window_cost
    costs = {SCHEMES.get(name, name): cost.total for name, cost in plan.cost.baselines.items()}
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
            f"{plural(len(read.channels), 'channel')} reach {plural(len(read.gets), 'gateway')}",
            _next_best(costs, total),
            f"{read.clean:,} of {plural(len(read.gets), 'gateway')} get nothing in vain" if read.clean else "",
        ],
        summary=f"An overlay of {plural(len(read.brokers), 'broker')}; a message goes to the rendezvous of its "
        "channels and down their trees.",
        tiles=[
            Tile(
                "Cost",
                number(total),
                f"link crossings; {SCHEMES['spt']} {number(trees)}" if trees else "link crossings",
            ),
            Tile("Channels", f"{len(read.channels):,}", f"for {plural(len(read.gets), 'gateway')}"),
            _busiest(read),
        ],
        ways=ways,
        yardstick=Yardstick(total, total / trees if trees else None, f"the cost of {SCHEMES['spt']}", "cost"),
        sections=[_overlay(plan), _channels(read), _worst(read), _links(read)],
        find=_findable(read),
    )


@dataclass(frozen=True)
class _Read:
    """Channels by number, what each is called and the names of its gateways; what links carry.

    `gets` has, per gateway, how many messages of the window arrive and how
    many of them somebody there wants; `brings` how many a channel brings to a gateway in vain.
    """

    channels: Mapping[int, Channel]
    content: Mapping[int, str]
    root: Mapping[int, str]
    brokers: Sequence[str]
    load: Mapping[tuple[str, str], float]
    gets: Mapping[str, tuple[float, float]]
    brings: Mapping[tuple[str, int], float]

    @property
    def clean(self) -> int:
        return sum(arrive <= wanted * (1 + 1e-9) for arrive, wanted in self.gets.values())


def _read(plan: SemanticPlan) -> _Read:
    names = np.array(plan.broker_names, object)
    return _Read(
        {channel.number: channel for channel in plan.channels},
        dict(zip((channel.number for channel in plan.channels), told(plan, names), strict=True)),
        {channel.number: names[channel.rendezvous] for channel in plan.channels},
        plan.broker_names,
        overlay_loads(plan),
        *_arrivals(plan),
    )


def _arrivals(plan: SemanticPlan) -> tuple[dict[str, tuple[float, float]], dict[tuple[str, int], float]]:
    """What the window's messages do at each gateway: a copy per channel arrives, one of them can be wanted."""
    names, seen = plan.broker_names, plan.sent.seen
    wanted = dict(zip(plan.system.gateways.tolist(), seen.audience.T, strict=True))
    nobody = np.zeros(seen.weight.size, np.bool_)
    arrive: dict[int, float] = dict.fromkeys(sorted({g for c in plan.channels for g in c.gateways}), 0.0)
    brings: dict[tuple[str, int], float] = {}
    for c, channel in enumerate(plan.channels):
        mine = plan.sent.rows[plan.sent.cols == c]
        weight = seen.weight[mine]
        for g in channel.gateways:
            arrive[g] += float(weight.sum())
            vain = float(weight[~wanted.get(g, nobody)[mine]].sum())
            if vain:
                brings[names[g], channel.number] = vain
    gets = {names[g]: (all_, float(seen.weight[wanted.get(g, nobody)].sum())) for g, all_ in arrive.items()}
    return dict(sorted(gets.items())), brings


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
    share = percent(read.load[link] / (sum(read.load.values()) or 1.0))
    ends = " – ".join(short(end, 16) for end in link)
    return Tile("Busiest link", number(read.load[link]), f"{share} of all crossings, {ends}")


def _findable(read: _Read) -> list[Findable]:
    reach = {c: {*channel.gateways} for c, channel in read.channels.items()}
    number_of = {name: k for k, name in enumerate(read.brokers)}
    gateways = [
        (g, *(number(amount) for amount in (arrive, wanted, arrive - wanted)),
         ", ".join(f"{c}" for c in sorted(reach) if number_of[g] in reach[c]) or "none")
        for g, (arrive, wanted) in read.gets.items()
    ]  # fmt: skip
    channels = [
        (c, number(each.rate), len(each.edges), len(each.gateways), read.root[c], short(read.content[c], 300))
        for c, each in read.channels.items()
    ]
    return [
        Findable("gateway", ("messages that arrive", "wanted", "in vain", "on channels"), gateways),
        Findable("channel", ("messages", "links", "gateways", "rendezvous", "content"), channels),
    ]


def _overlay(plan: SemanticPlan) -> Section:
    lead = "Brokers near in hops are near on the page. Pick a channel to see its tree by itself."
    return Section("overlay", "The overlay", tree_choice(overlay_trees(plan)) + picture(plan).markup, lead)


def _channels(read: _Read) -> Section:
    columns = ("channel", "rate", "links", "gateways", "rendezvous", "content")
    cost = {c: channel.rate * channel.link_cost for c, channel in read.channels.items()}
    facts = {c: (c, number(each.rate), len(each.edges), len(each.gateways)) for c, each in read.channels.items()}
    chart = load_chart([Load(f"channel {c}", cost[c], facts[c]) for c in cost], columns[:4], what="channel")
    dearest = sorted(cost, key=lambda c: -cost[c])[:WORST]
    rows = [(*facts[c], short(read.root[c]), short(read.content[c], 160)) for c in dearest]
    listed = table(columns, rows, numbers=columns[1:4], stack=True)
    lead = "What each channel costs: its messages times the cost of its links; and what the ten dearest carry."
    return Section("channels", "Load per channel", f"{chart}<h3>Dearest</h3>{listed}", lead)


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


def picture(plan: SemanticPlan, places: Mapping[str, tuple[float, float]] | None = None) -> Picture:
    """Brokers near in hops are near on the page, or stand at `places`; the channels that cost most in colour."""
    names, loads = plan.broker_names, overlay_loads(plan)
    every = {_link(names[u], names[v]): 0.0 for u, v in plan.system.topology.edges.tolist()}
    gateways = {names[g] for channel in plan.channels for g in channel.gateways}
    roots = {names[channel.rendezvous] for channel in plan.channels}
    trees = overlay_trees(plan)
    label = f"The overlay with its {plural(len(loads), 'link')} in use; thick links carry much."
    keys = [("gateway", "gateway"), ("rendezvous", "rendezvous"), ("other", "link, as thick as its load")]
    title = f"{plural(plan.n_channels, 'channel')} on {plural(len(names), 'broker')}"
    drawing = overlay_drawing(every | loads, gateways, roots, label, trees, places)
    return Picture(title, drawing, (*keys, *tree_keys(trees)))


def overlay_loads(plan: SemanticPlan) -> dict[tuple[str, str], float]:
    """The messages of the window that cross each link, by the names of its ends."""
    names, load = plan.broker_names, dict[tuple[str, str], float]()
    for channel in plan.channels:
        for u, v in channel.edges.tolist():
            link = _link(names[u], names[v])
            load[link] = load.get(link, 0.0) + channel.rate
    return load


def overlay_trees(plan: SemanticPlan) -> list[DrawnTree]:
    """The channels in use with their links, the dearest first."""
    names = plan.broker_names
    order = sorted(plan.channels, key=lambda each: (-each.rate * each.link_cost, each.number))
    return [
        DrawnTree(
            f"channel {each.number}: {number(each.rate)} messages to {plural(len(each.gateways), 'gateway')}",
            [_link(names[u], names[v]) for u, v in each.edges.tolist()],
            names[each.rendezvous],
        )
        for each in order
        if each.rate > 0
    ]


def _link(one: str, other: str) -> tuple[str, str]:
    u, v = sorted((one, other))
    return u, v
