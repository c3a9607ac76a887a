"""The report of a network plan: the map of sites and links, their loads, and the cost by term and site."""

from __future__ import annotations

import numpy as np

from narrowcast.plans.network.cost import TERMS
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.reports.build import Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.overlay import overlay_drawing
from narrowcast.reports.parts import Report, Section, Tile, figure, legend, table
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
        lead="The whole cost in an hour: links, filtering, copies, filters, groups.",
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
            Tile("Cost per hour", number(total), f"stitched: {number(stitched)}" if stitched else ""),
            Tile("Channels", str(len(made.trees)), f"{plural(len(made.filters), 'filter')} on the backbone"),
            Tile("By unicast", percent(lone), f"of {d.interest.n_pairs:,} wishes"),
        ],
        ways=ways,
        yardstick=Yardstick(total, total / stitched if stitched else None, "each piece planned alone", "cost per hour"),
        sections=[_map(plan), _links(plan), _terms(plan), _sites(plan)],
    )


def _names(plan: NetworkPlan) -> list[str]:
    topology = plan.demand.topology
    return list(topology.names or map(str, range(topology.n_brokers)))


def _map(plan: NetworkPlan) -> Section:
    names, d = _names(plan), plan.demand
    load = {(names[u], names[v]): float(w) for (u, v), w in zip(d.topology.edges.tolist(), plan.loads, strict=True)}
    gateways, filters = {names[g] for g in d.gateway}, {names[v] for v in plan.decisions.filters}
    label = f"{plural(d.n_sites, 'site')} and the links between them, thick where they carry much."
    keys = legend([("gateway", "site"), ("rendezvous", "broker that filters"), ("other", "link, as thick as its load")])
    drawing = overlay_drawing(load, gateways, filters, label)
    return Section("map", "The network", keys + figure(drawing), "Sites, brokers and links; thick links carry much.")


def _links(plan: NetworkPlan) -> Section:
    names, d = _names(plan), plan.demand
    rows = []
    for (u, v), load, price, most in zip(
        d.topology.edges.tolist(), plan.loads, plan.problem.link_price, d.capacity, strict=True
    ):
        name = f"{short(names[u], 20)} to {short(names[v], 20)}"
        limit = number(float(most)) if np.isfinite(most) else "none"
        rows.append(Load(name, float(load), (name, number(float(load)), limit, number(float(load * price)))))
    chart = load_chart(rows, ("link", "bytes/s", "capacity", "cost per hour"), what="link")
    return Section("links", "Load per link", chart, "What each link carries in a second, the busiest first.")


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
    heads = ("of", "no plan below", "this plan", "gap at most")
    body += "<h3>How much lower it could be</h3>" + table(heads, gaps, numbers=heads[1:])
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
