"""The report of a network plan: the map of sites and links, their loads, and the cost by term and site."""

from __future__ import annotations

import numpy as np

from narrowcast.model.interest_tables import names_of
from narrowcast.plans.network.cost import TERMS
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.network.wire import wire_loads
from narrowcast.reports.amounts import bits_s, cores, mbit_s
from narrowcast.reports.build import Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.find import Findable
from narrowcast.reports.overlay import DrawnTree, overlay_drawing, tree_choice, tree_keys
from narrowcast.reports.parts import Report, Section, Tile, table
from narrowcast.reports.picture import Picture
from narrowcast.reports.text import number, percent, plural, short
from narrowcast.reports.whatif import Whatif


def report(plan: NetworkPlan, whatif: Whatif | None) -> Report:
    """Where everything goes, what the links carry, what each site costs, and against what."""
    d, made, total = plan.demand, plan.decisions, plan.cost.total
    costs = {name: float(value) for name, value in plan.cost.baselines.items()}
    stitched = costs.get("stitched")
    ways = ways_section(
        costs,
        total,
        label="Cost per hour",
        lead="The whole cost in an hour, at the prices below: links, filtering, copies, filters, groups. Stitched is "
        "each piece planned alone.",
    )
    below = f"{percent(1 - total / stitched)} below each piece planned alone" if stitched and total < stitched else ""
    lone = sum(int(its.alone.sum()) for its in made.sites) / max(d.interest.n_pairs, 1)
    return assemble(
        plan,
        whatif,
        headline=[f"{plural(d.n_sites, 'site')} served for {number(total)} an hour", below],
        summary=f"{plural(d.interest.n_flows, 'flow')} to {plural(d.interest.n_users, 'subscriber')} in "
        f"{plural(d.n_sites, 'site')} over {plural(d.topology.n_links, 'link')}.",
        tiles=[
            Tile("Cost per hour", number(total), f"each piece planned alone: {number(stitched)}" if stitched else ""),
            Tile("Channels", str(len(made.trees)), f"{plural(len(made.filters), 'filter')} on the backbone"),
            Tile("By unicast", percent(lone), f"of {d.interest.n_pairs:,} wishes, the others by multicast"),
        ],
        ways=ways,
        yardstick=Yardstick(total, total / stitched if stitched else None, "each piece planned alone", "cost per hour"),
        sections=[_map(plan), _links(plan), _terms(plan), _sites(plan), *_queries(plan)],
        find=_findable(plan),
    )


def _map(plan: NetworkPlan) -> Section:
    lead = "Sites, brokers and links; thick links carry much. Pick a channel to see its tree by itself."
    return Section("map", "The network", tree_choice(backbone_trees(plan)) + picture(plan).markup, lead)


def _findable(plan: NetworkPlan) -> list[Findable]:
    d, made = plan.demand, plan.decisions
    n, alone = d.interest, np.zeros(d.interest.n_pairs, np.bool_)
    for site, its in zip(plan.problem.sites, made.sites, strict=True):
        alone[site.pairs] = its.alone
    lone, wants = (np.bincount(n.users[of], minlength=n.n_users) for of in (alone, np.ones_like(alone)))
    users = names_of(n.user_names, range(n.n_users)).to_pylist()
    flows = names_of(n.flow_names, range(n.n_flows)).to_pylist()
    where = d.host_site[d.host]
    people = [
        (users[u], short(d.sites[where[u]]), d.hosts[d.host[u]], f"{wants[u]:,}", f"{lone[u]:,}")
        for u in range(n.n_users)
    ]
    rows = [
        (flows[k], bits_s(float(d.bytes_s[k])), short(d.sites[d.source[k]]),
         f"channel {made.channel_of[k]}" if made.channel_of[k] >= 0 else "stays in its site, or straight",
         f"{n.audience_sizes[k]:,}")
        for k in range(n.n_flows)
    ]  # fmt: skip
    return [
        Findable("subscriber", ("site", "host", "flows wanted", "of them by unicast"), people),
        Findable("flow", ("rate", "enters at", "on the backbone", "subscribers"), rows),
    ]


def _links(plan: NetworkPlan) -> Section:
    names, d = broker_names(plan), plan.demand
    rows = []
    for (u, v), load, wire, price, most in zip(
        d.topology.edges.tolist(), plan.loads, wire_loads(plan), plan.problem.link_price, d.capacity, strict=True
    ):
        name = f"{short(names[u], 20)} to {short(names[v], 20)}"
        carries, limit = mbit_s(float(load)), number(mbit_s(float(most))) if np.isfinite(most) else "none"
        at_most = number(mbit_s(float(wire)))
        rows.append(Load(name, carries, (name, number(carries), at_most, limit, number(float(load * price)))))
    heads = ("link", "Mbit/s", "with headers, Mbit/s", "capacity, Mbit/s", "cost per hour")
    lead = "Mbit/s of messages on each link, the busiest first; with headers if each message is sent at once."
    return Section("links", "Load per link", load_chart(rows, heads, what="link"), lead)


def _terms(plan: NetworkPlan) -> Section:
    bounds, terms = plan.lower_bounds, plan.cost.terms
    inside = sum(terms[name] for name in ("session_filtering", "flow_filtering", "sending"))
    own = {"links": terms["links"], "sites": inside}
    rows = [
        (name.replace("_", " "), number(terms[name]), percent(terms[name] / (plan.cost.total or 1))) for name in TERMS
    ]
    gaps = [
        ("links" if name == "links" else "filtering and sending in the sites", number(bound), number(own[name]),
         percent(1 - bound / own[name]) if own[name] else "–")
        for name, bound in bounds.items()
    ]  # fmt: skip
    body = table(("term", "cost per hour", "share"), rows, numbers=("cost per hour", "share"))
    if price := plan.problem.prices.price_cpu:
        used = sum(terms[name] for name in ("session_filtering", "flow_filtering")) / price
        body += f"<p>Filtering at subscribers takes {cores(used)}, at {number(price)} for each hour of one.</p>"
    heads = ("of", "no plan below", "this plan", "gap at most")
    body += "<h3>How much lower it could be</h3>" + table(heads, gaps, numbers=heads[1:], stack=True)
    return Section("terms", "The cost by term", body, "Each term by itself, and what no plan can go below.")


def _sites(plan: NetworkPlan) -> Section:
    rows = []
    d, costs = plan.demand, plan.site_costs
    for s in np.argsort(-costs.sum(axis=1), kind="stable").tolist():
        site, its = plan.problem.sites[s], plan.decisions.sites[s]
        lone = percent(float(its.alone.mean())) if its.alone.size else "–"
        used = f"{np.unique(its.group_of).size} of {site.groups}"
        cells = [number(float(value)) for value in (*costs[s], costs[s].sum())]
        rows.append((short(d.sites[s], 24), f"{site.users.size:,}", f"{site.flows.size:,}", used, lone, *cells))
    heads = ("site", "subscribers", "flows", "groups", "unicast", "session filtering", "flow filtering", "sending",
             "group price", "in all")  # fmt: skip
    return Section("sites", "The cost by site", table(heads, rows, numbers=heads[1:], stack=True), "Per hour.")


def _queries(plan: NetworkPlan) -> list[Section]:
    """The sets of merged queries; what they do on their way stands with the other flows."""
    queries, d = plan.demand.queries, plan.demand
    if queries is None:
        return []
    rows = []
    for at, members in enumerate(queries.sets):
        k = d.interest.n_flows - len(queries.sets) + at
        names = ", ".join(short(queries.asked.full_names[q], 24) for q in members[:4]) + (
            " …" if len(members) > 4 else ""
        )
        thrown = float(queries.thrown(members).sum()) / (queries.flow(members).rows_s * len(members) or 1)
        rows.append((f"answers {at}", names, f"{len(members):,}", bits_s(float(d.bytes_s[k])), percent(thrown)))
    heads = ("flow", "of", "queries", "rate", "thrown away by clients")
    lead = f"Each set is answered at {queries.site} by one query and sent as a flow to those who asked."
    return [Section("queries", "Merged queries", table(heads, rows, numbers=heads[2:], stack=True), lead)]


def picture(plan: NetworkPlan) -> Picture:
    """The backbone with its sites; the busiest channels in colour."""
    names, d = broker_names(plan), plan.demand
    load = {(names[u], names[v]): float(w) for (u, v), w in zip(d.topology.edges.tolist(), plan.loads, strict=True)}
    gateways, filters = {names[g] for g in d.gateway}, {names[v] for v in plan.decisions.filters}
    label = f"{plural(d.n_sites, 'site')} and the links between them, thick where they carry much."
    trees = backbone_trees(plan)
    keys = [("gateway", "site"), ("rendezvous", "broker that filters"), ("other", "link, as thick as its load")]
    title = f"{plural(d.n_sites, 'site')} on {plural(d.topology.n_links, 'link')}"
    return Picture(title, overlay_drawing(load, gateways, filters, label, trees), (*keys, *tree_keys(trees)))


def broker_names(plan: NetworkPlan) -> list[str]:
    """What brokers are called, numbers for those without names."""
    topology = plan.demand.topology
    return list(topology.names or map(str, range(topology.n_brokers)))


def backbone_trees(plan: NetworkPlan) -> list[DrawnTree]:
    """The backbone channels with their links, the one that loads them most first."""
    names, made, edges = broker_names(plan), plan.decisions, plan.demand.topology.edges.tolist()
    there = made.channel_of >= 0
    rate = np.bincount(made.channel_of[there], plan.demand.bytes_s[there], minlength=len(made.trees))
    order = sorted(range(len(made.trees)), key=lambda c: (-rate[c] * len(made.trees[c]), c))
    return [
        DrawnTree(
            f"channel {c}: {bits_s(float(rate[c]))} over {plural(len(made.trees[c]), 'link')}",
            [(names[edges[k][0]], names[edges[k][1]]) for k in made.trees[c].tolist()],
        )
        for c in order
        if len(made.trees[c])
    ]
