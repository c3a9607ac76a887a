"""A bank's network as tables: its sites, hosts and links, who is where, and what they want."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from narrowcast.model.network_demand import NetworkDemand
from narrowcast.workloads.network import network
from narrowcast.workloads.tables import faults, schemas
from narrowcast.workloads.tables.common import by_rate, interest_sources, message_source, shares, times
from narrowcast.workloads.tables.lists import blocks, quoted
from narrowcast.workloads.tables.source import TableSource, batch_rng, pick, row_batches, table_source

SITES = pa.schema(
    [("site", pa.string()), ("gateway", pa.string()), ("groups", pa.int64()), ("sessions", pa.int64()),
     ("alpha", pa.float64()), ("beta", pa.float64()), ("lan_delay", pa.float64())]
)  # fmt: skip
HOSTS = pa.schema([("host", pa.string()), ("site", pa.string()), ("multicast", pa.bool_())])
NODES = pa.schema([("node", pa.string()), ("role", pa.string()), ("can_filter", pa.bool_())])
SOURCES = pa.schema([("flow", pa.string()), ("site", pa.string())])
SUBSCRIPTIONS = pa.schema(
    [("subscriber", pa.string()), ("profile", pa.string()), ("host", pa.string()), ("latency_bound", pa.float64())]
)
MESSAGES = pa.schema(
    [("ts", schemas.TIME), ("source", pa.string()), ("symbol", pa.string()), ("price", pa.float64()),
     ("quantity", pa.int64()), ("size", pa.int64())]
)  # fmt: skip


def network_tables(
    *,
    messages: int = 10_000,
    users: int = 500,
    seed: int = 0,
    sites: int = 10,
    symbols: int = 20_000,
    markets: int = 10,
    wanted: int = 60,
    locality: float = 0.6,
    groups: int = 20,
    sessions: int = 100,
    unicast_hosts: float = 0.05,
    model: str = "sndlib/cost266",
) -> list[TableSource]:
    """The tables of `workloads.network`, with a profile per subscriber and a log of trades."""
    made = network(sites, users, symbols, markets, wanted, locality, groups, sessions, unicast_hosts, model, seed)
    names, host, site = made.topology.names or (), np.array(made.hosts, object), np.array(made.sites, object)
    brokers = np.array(names, object)
    u, v = made.topology.edges.T
    roles = np.full(len(names), "interior", object)
    roles[made.gateway] = "gateway"
    held = {
        "site": site, "gateway": brokers[made.gateway], "groups": made.groups, "sessions": made.sessions,
        "alpha": made.alpha, "beta": made.beta, "lan_delay": made.lan_delay,
    }  # fmt: skip
    links = {"u": brokers[u], "v": brokers[v], "cost": made.topology.cost, "delay": made.topology.delay}
    flows = np.array(made.interest.flow_names, object)
    bad_host = faults.subscription_faults(with_node=False, with_bound=True)
    return [
        table_source("sites", held, SITES, {"unknown gateway": faults.setting(site="bad{n}", gateway="nowhere{n}")}),
        table_source("hosts", {"host": host, "site": site[made.host_site], "multicast": made.multicast}, HOSTS,
                     {"unknown site": faults.setting(host="bad{n}", site="nowhere{n}")}),
        table_source("topology", links, schemas.TOPOLOGY, {"unknown node": faults.setting(v="nowhere{n}")}),
        table_source("nodes", {"node": brokers, "role": roles, "can_filter": made.can_filter}, NODES,
                     {"missing node": faults.setting(node=None)}),
        table_source("sources", {"flow": flows, "site": site[made.source]}, SOURCES,
                     {"unknown site": faults.setting(flow="bad{n}", site="nowhere{n}")}),
        TableSource("subscriptions", SUBSCRIPTIONS, None,
                    lambda: row_batches(SUBSCRIPTIONS, _subscriptions(made)), bad_host),
        message_source(MESSAGES, messages, _Trades(made, seed).columns),
        *interest_sources(made.interest, made.size, rate=float(made.interest.rates.sum()), key="symbol"),
    ]  # fmt: skip


def _subscriptions(made: NetworkDemand) -> Any:
    """Each subscriber's symbols in as many profiles as the language needs for them."""
    users, bound = made.interest.user_names or (), made.bound
    one = np.zeros(made.interest.n_flows, np.int64)
    for block in blocks(made.interest, quoted(made.interest.flow_names), one):
        for user, _, text in block.texts("symbol"):
            late = float(bound[user]) if np.isfinite(bound[user]) else None
            yield users[user], text, made.hosts[made.host[user]], late


class _Trades:
    """Messages in batches: a symbol by its rate, from the site where it enters."""

    def __init__(self, made: NetworkDemand, seed: int) -> None:
        self.seed, self.cumulative = seed, shares(made.interest.rates)
        self.rate = float(made.interest.rates.sum())
        self.names, self.sites = pa.array(made.interest.flow_names), pa.array(made.sites)
        self.source, self.size = made.source, made.size
        self.price = np.round(np.exp(batch_rng(seed, 2, 0).normal(np.log(60.0), 0.9, made.interest.n_flows)), 2)

    def columns(self, batch: int, rows: int) -> list[Any]:
        rng = batch_rng(self.seed, 3, batch)
        symbol = by_rate(rng, self.cumulative, rows)
        return [
            times(rng, batch, rows, self.rate),
            pick(self.sites, self.source[symbol]),
            pick(self.names, symbol),
            np.round(self.price[symbol] * (1 + 0.02 * rng.standard_normal(rows)), 2),
            np.ceil(np.exp(rng.normal(5.0, 1.6, rows))).astype(np.int64),
            self.size[symbol].astype(np.int64),
        ]
