"""A network plan for the middleware of its sites: what a channels plan of each site alone would be exported to.

Relays, trees and filters are narrowcast's own; what other middleware can be told is the multicast of each site. Groups
of different sites have different addresses, whether or not routers keep their multicast apart.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.exports.files import Files, Writer
from narrowcast.exports.options import Options
from narrowcast.model.cost import Cost
from narrowcast.model.demand import Demand
from narrowcast.model.interest import Interest
from narrowcast.model.interest_tables import names_of
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.network.result import NetworkPlan


def per_site(plan: Plan, target: Writer, options: Options) -> Files:
    """The files of a target in a folder for each site that has subscribers; notes say which site they are of."""
    texts: dict[str, str] = {}
    notes: list[str] = []
    assert isinstance(plan, NetworkPlan)
    plans = site_plans(plan)
    more = max(len(plans) - 1, 0).bit_length()
    if options.network.prefixlen + more > 30:
        told = f"base_address must have room for {len(plans)} sites, got {options.base_address}"
        raise InputError(told, name="base_address", hint="239.77.0.0/16")
    for (site, its), network in zip(plans.items(), options.network.subnets(prefixlen_diff=more), strict=False):
        folder = re.sub(r"[^A-Za-z0-9_.-]", "_", site).lstrip(".") or "_"
        if any(name.startswith(f"{folder}/") for name in texts):
            raise UnsupportedError(f"two sites have names that are the folder {folder}: rename {site}")
        made = target(its, replace(options, base_address=str(network)))
        texts |= {f"{folder}/{name}": text for name, text in made.texts.items()}
        notes += [f"{site}: {note}" for note in made.notes]
    return Files(texts, tuple(notes))


def site_plans(plan: NetworkPlan) -> dict[str, ChannelsPlan]:
    """Each site by itself, as a plan of its flows, subscribers, sessions and groups."""
    d = plan.demand
    flows = names_of(d.interest.flow_names, range(d.interest.n_flows)).to_pylist()
    users = names_of(d.interest.user_names, range(d.interest.n_users)).to_pylist()
    found = {}
    for site, its in zip(plan.problem.sites, plan.decisions.sites, strict=True):
        if not site.users.size:
            continue
        interest = Interest.from_pairs(
            site.flow, site.user, site.rates, n_users=site.users.size,
            flow_names=[flows[k] for k in site.flows.tolist()], user_names=[users[u] for u in site.users.tolist()],
        )  # fmt: skip
        alone = np.flatnonzero(its.alone)
        found[d.sites[site.index]] = ChannelsPlan(
            demand=Demand(interest, key=tuple(plan.key)),
            cost=Cost(0.0),
            parameters={"groups": site.groups, "sessions": site.sessions, "weights": (1.0, 1.0, 1.0)},
            session_of_flow=its.session_of,
            group_of_session=its.group_of,
            unicast=(site.flow[alone], site.user[alone]),
        )
    return found
