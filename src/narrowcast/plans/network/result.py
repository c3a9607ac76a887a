"""A network plan: channels on the backbone, filters, direct ways, and what each site does; also as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.cost import Compared, Cost
from narrowcast.model.interest import Interest
from narrowcast.model.interest_tables import names_of
from narrowcast.model.network_demand import NO_LIMIT, NetworkDemand
from narrowcast.model.plan import Plan, Tables
from narrowcast.model.topology import Topology
from narrowcast.plans.network.cost import TERMS, PricedNetwork, direct_ways, priced, site_costs
from narrowcast.plans.network.decisions import Decisions, NetworkProblem, SitePlan
from narrowcast.plans.network.prices import UNITS, NetworkPrices
from narrowcast.plans.network.queries import queries_in, queries_tables

MOST_NUMBERS = 1 << 16  # of channels, sessions and groups; those of a damaged plan may be any


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkPlan(Plan):
    """What every flow does on its way: its channel or straight from its source, its session and group in each site.

    The cost is per hour; `cost.terms` are links, session_filtering, flow_filtering, sending, filters and groups.
    """

    kind: ClassVar[str] = "network"
    demand: NetworkDemand = field(repr=False)
    decisions: Decisions = field(repr=False)

    @cached_property
    def problem(self) -> NetworkProblem:
        """The demand with the prices and budgets that the plan was made with."""
        return problem_of(self.demand, self.parameters)

    @cached_property
    def priced(self) -> PricedNetwork:
        return priced(self.problem, self.decisions)

    @property
    def loads(self) -> Floats:
        """Bytes a second on every link of the topology."""
        return self.priced.loads

    @cached_property
    def site_costs(self) -> Floats:
        """Sites × (session filtering, flow filtering, sending, groups), per hour."""
        return site_costs(self.problem, self.decisions)

    @property
    def machine_groups(self) -> int:
        """Multicast groups where all sites run on one machine: each site's, and one for what it does not know."""
        return sum(max(int(its.group_of.max(initial=0)), 0) + 2 for its in self.decisions.sites)

    @property
    def relay_gateways(self) -> tuple[str, ...]:
        """The gateways of the sites, where relays run."""
        return tuple(_brokers(self.demand).take(self.demand.gateway).to_pylist())

    @property
    def every_broker(self) -> tuple[str, ...]:
        """The brokers of the topology: a later plan may have trees over any of them."""
        return tuple(_brokers(self.demand).to_pylist())

    def answer_of(self, flow: int) -> int:
        """Which set of merged queries a flow is the answer of; −1 for none."""
        queries = self.demand.queries
        return max(flow - self.demand.interest.n_flows + len(queries.sets), -1) if queries is not None else -1

    @property
    def lower_bounds(self) -> Mapping[str, float]:
        """What no plan can go below: of the links, and of the sites with their sending."""
        return dict(self.parameters.get("lower_bounds", {}))

    def _to_tables(self) -> Tables:
        asked, about = queries_tables(self.demand.queries)
        return Tables(
            kind=self.kind,
            tables=_demand_tables(self.demand) | _decision_tables(self.problem, self.decisions) | asked,
            cost={"total": self.cost.total, **{name: self.cost.terms[name] for name in TERMS}},
            parameters={**self.parameters, **about},
            baselines={name: float(found) for name, found in self.cost.baselines.items()},
            inputs=self.inputs,
            checks=self.checks,
            lower_bound=self.cost.lower_bound,
            gap=self.cost.gap,
            seed=self.seed,
            key=self.key,
        )

    @classmethod
    def from_tables(cls, tables: Tables) -> NetworkPlan:
        demand = _demand_in(tables)
        baselines = {name: Cost(float(found)) for name, found in tables.baselines.items()}
        terms = {name: float(tables.cost[name]) for name in TERMS}
        return cls(
            demand=demand,
            cost=Cost(float(tables.cost["total"]), terms, Compared(baselines, tables.lower_bound, tables.gap)),
            parameters=tables.parameters,
            seed=tables.seed,
            inputs=tables.inputs,
            checks=tables.checks,
            written=tables,
            decisions=_decisions_in(problem_of(demand, tables.parameters), tables),
        )


RESULT = NetworkPlan


def problem_of(demand: NetworkDemand, parameters: Mapping[str, Any]) -> NetworkProblem:
    """The problem that some parameters pose."""
    return NetworkProblem(
        demand,
        NetworkPrices(**{name: float(parameters[name]) for name in UNITS}),
        int(parameters["channels"]),
        int(parameters["filters"]),
        float(parameters["filter_delay"]),
    )


def _brokers(demand: NetworkDemand) -> Any:
    return names_of(demand.topology.names, range(demand.topology.n_brokers))


def _demand_tables(d: NetworkDemand) -> dict[str, Any]:
    import pyarrow as pa

    brokers, sites, hosts = _brokers(d), pa.array(d.sites, pa.string()), pa.array(d.hosts, pa.string())
    n = d.interest
    finite = np.isfinite
    u, v = d.topology.edges.T
    return {
        "sites": pa.table({
            "site": sites, "gateway": brokers.take(pa.array(d.gateway)), "groups": d.groups, "sessions": d.sessions,
            "joins_per_host": pa.array(d.joins_per_host, mask=d.joins_per_host < 0), "alpha": d.alpha, "beta": d.beta,
            "lan_delay": d.lan_delay,
        }),
        "hosts": pa.table({"host": hosts, "site": sites.take(pa.array(d.host_site)), "multicast": d.multicast}),
        "subscribers": pa.table({
            "subscriber": names_of(n.user_names, range(n.n_users)), "host": hosts.take(pa.array(d.host)),
            "latency_bound": pa.array(d.bound, mask=~finite(d.bound)),
        }),
        "flows": pa.table({
            "flow": names_of(n.flow_names, range(n.n_flows)), "rate": n.rates, "size": d.size,
            "source": sites.take(pa.array(d.source)),
        }),
        "interest": pa.table({
            "flow": names_of(n.flow_names, n.flow_of_pair), "subscriber": names_of(n.user_names, n.users),
        }),
        "links": pa.table({
            "u": brokers.take(pa.array(u)), "v": brokers.take(pa.array(v)), "cost": d.topology.cost,
            "delay": d.topology.delay, "capacity": pa.array(d.capacity, mask=~finite(d.capacity)),
        }),
        "brokers": pa.table({"node": brokers, "can_filter": d.can_filter}),
    }  # fmt: skip


def _decision_tables(problem: NetworkProblem, made: Decisions) -> dict[str, Any]:
    import pyarrow as pa

    d = problem.demand
    n, brokers, sites = d.interest, _brokers(d), pa.array(d.sites, pa.string())
    carried = np.flatnonzero(made.channel_of >= 0)
    links = np.concatenate([np.zeros(0, np.int64), *made.trees])
    channel = np.repeat(np.arange(len(made.trees)), [len(tree) for tree in made.trees])
    ends = d.topology.edges[links]
    flow, to = np.divmod(made.direct, d.n_sites)
    ways: list[tuple[int, int, int, int]] = []
    for (source, site), (_, path, _) in direct_ways(problem, made.direct).items():
        at = int(d.gateway[source])
        for link in path:
            u, v = d.topology.edges[link].tolist()
            ways.append((source, site, at, v if at == u else u))
            at = ways[-1][3]
    steps = np.array(ways, np.int64).reshape(-1, 4)
    columns = ("site", "flow", "session", "of", "number", "group", "pair")
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    for local, plan in zip(problem.sites, made.sites, strict=True):
        sent = np.flatnonzero(plan.session_of >= 0)
        rows["site"].append(np.full(sent.size, local.index))
        rows["flow"].append(local.flows[sent])
        rows["session"].append(plan.session_of[sent])
        rows["of"].append(np.full(plan.group_of.size, local.index))
        rows["number"].append(np.arange(plan.group_of.size))
        rows["group"].append(plan.group_of)
        rows["pair"].append(local.pairs[plan.alone])
    c = {name: np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64) for name, parts in rows.items()}
    pair = np.sort(c["pair"])
    return {
        "flow_channel": pa.table({"flow": names_of(n.flow_names, carried), "channel": made.channel_of[carried]}),
        "trees": pa.table({
            "channel": channel.astype(np.int64), "u": brokers.take(pa.array(ends[:, 0])),
            "v": brokers.take(pa.array(ends[:, 1])),
        }),
        "filters": pa.table({"node": brokers.take(pa.array(made.filters))}),
        "direct": pa.table({"flow": names_of(n.flow_names, flow), "site": sites.take(pa.array(to))}),
        "paths": pa.table({
            "source": sites.take(pa.array(steps[:, 0])), "site": sites.take(pa.array(steps[:, 1])),
            "u": brokers.take(pa.array(steps[:, 2])), "v": brokers.take(pa.array(steps[:, 3])),
        }),
        "flow_session": pa.table({
            "site": sites.take(pa.array(c["site"])), "flow": names_of(n.flow_names, c["flow"]), "session": c["session"],
        }),
        "session_group": pa.table({
            "site": sites.take(pa.array(c["of"])), "session": c["number"], "group": c["group"],
        }),
        "unicast": pa.table({
            "flow": names_of(n.flow_names, n.flow_of_pair[pair]), "subscriber": names_of(n.user_names, n.users[pair]),
        }),
    }  # fmt: skip


def _at(values: Any, names: Any) -> Ints:
    """Where each name stands; one that is not there is a ValueError."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.cast(pa.string()).combine_chunks() if len(values) else pa.array([], pa.string())
    found = pc.index_in(texts, value_set=names)
    if found.null_count:
        raise ValueError(f"{texts.filter(found.is_null())[0]} is not among the names of the plan")
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def _texts(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.string()).combine_chunks() if len(column) else pa.array([], pa.string())


def _numbers(column: Any, missing: float) -> Floats:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64()).fill_null(missing).to_numpy(), np.float64)


def _demand_in(tables: Tables) -> NetworkDemand:
    t = tables.tables
    brokers, sites, hosts = (_texts(t[name][column]) for name, column in
                             (("brokers", "node"), ("sites", "site"), ("hosts", "host")))  # fmt: skip
    flows, users = _texts(t["flows"]["flow"]), _texts(t["subscribers"]["subscriber"])
    links = t["links"]
    topology = Topology(
        np.column_stack((_at(links["u"], brokers), _at(links["v"], brokers))), _numbers(links["cost"], np.nan),
        _numbers(links["delay"], np.nan), n_brokers=len(brokers), names=brokers.to_pylist(),
    )  # fmt: skip
    interest = Interest.from_pairs(
        _at(t["interest"]["flow"], flows), _at(t["interest"]["subscriber"], users),
        _numbers(t["flows"]["rate"], np.nan),
        flow_names=flows.to_pylist(), user_names=users.to_pylist(),
    )  # fmt: skip
    s = t["sites"]
    return NetworkDemand(
        topology, interest, sites=tuple(sites.to_pylist()), gateway=_at(s["gateway"], brokers),
        groups=s["groups"].to_numpy(), sessions=s["sessions"].to_numpy(), hosts=tuple(hosts.to_pylist()),
        host_site=_at(t["hosts"]["site"], sites), host=_at(t["subscribers"]["host"], hosts),
        source=_at(t["flows"]["source"], sites), multicast=t["hosts"]["multicast"].to_numpy(zero_copy_only=False),
        size=_numbers(t["flows"]["size"], np.nan), bound=_numbers(t["subscribers"]["latency_bound"], np.inf),
        joins_per_host=_numbers(s["joins_per_host"], NO_LIMIT).astype(np.int64), alpha=_numbers(s["alpha"], np.nan),
        beta=_numbers(s["beta"], np.nan), lan_delay=_numbers(s["lan_delay"], np.nan),
        capacity=_numbers(links["capacity"], np.inf),
        can_filter=t["brokers"]["can_filter"].to_numpy(zero_copy_only=False), key=tables.key, inputs=tables.inputs,
        queries=queries_in(tables),
    )  # fmt: skip


def _decisions_in(problem: NetworkProblem, tables: Tables) -> Decisions:
    t, d = tables.tables, problem.demand
    brokers, flows = _texts(t["brokers"]["node"]), _texts(t["flows"]["flow"])
    users, sites = _texts(t["subscribers"]["subscriber"]), _texts(t["sites"]["site"])
    channel_of = np.full(d.interest.n_flows, -1)
    channel_of[_at(t["flow_channel"]["flow"], flows)] = t["flow_channel"]["channel"].to_numpy()
    channel, link_of = t["trees"]["channel"].to_numpy(), problem.link_of
    u, v = _at(t["trees"]["u"], brokers).tolist(), _at(t["trees"]["v"], brokers).tolist()
    links = np.array([link_of[pair] for pair in zip(u, v, strict=True)], np.int64)
    n_channels = int(max(channel.max(initial=-1), channel_of.max(initial=-1))) + 1
    direct = _at(t["direct"]["flow"], flows) * d.n_sites + _at(t["direct"]["site"], sites)
    alone = np.zeros(d.interest.n_pairs, np.bool_)
    code = d.interest.flow_of_pair * max(d.interest.n_users, 1) + d.interest.users
    told = _at(t["unicast"]["flow"], flows) * max(d.interest.n_users, 1) + _at(t["unicast"]["subscriber"], users)
    alone[np.searchsorted(code, told)] = True
    at_site, flow = _at(t["flow_session"]["site"], sites), _at(t["flow_session"]["flow"], flows)
    session, of = t["flow_session"]["session"].to_numpy(), _at(t["session_group"]["site"], sites)
    number, group = t["session_group"]["session"].to_numpy(), t["session_group"]["group"].to_numpy()
    for name, last in (
        ("channel", n_channels - 1),
        ("session", max(number.max(initial=-1), session.max(initial=-1))),
        ("group", group.max(initial=-1)),
    ):
        if last >= MOST_NUMBERS:
            raise InputError(f"{name} must be below {MOST_NUMBERS:,}, got {last:,}", name=name, got=int(last))
    plans = []
    for site in problem.sites:
        mine, its = at_site == site.index, of == site.index
        session_of = np.full(site.flows.size, -1)
        session_of[np.searchsorted(site.flows, flow[mine])] = session[mine]
        group_of = np.zeros(int(number[its].max(initial=-1)) + 1, np.int64)
        group_of[number[its]] = group[its]
        plans.append(SitePlan(session_of, group_of, alone[site.pairs]))
    return Decisions(
        channel_of, tuple(np.sort(links[channel == c]) for c in range(n_channels)),
        np.sort(_at(t["filters"]["node"], brokers)), np.sort(direct), tuple(plans),
    )  # fmt: skip
