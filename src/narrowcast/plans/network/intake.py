"""A network from the tables of a folder: bad rows are set aside with a reason, broken shapes stop with one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.demand import Demand
from narrowcast.model.folder import fingerprint
from narrowcast.model.intake import codes_of, numbers_in, read_measured, repeats, table_in, texts_in
from narrowcast.model.interest import Interest
from narrowcast.model.network_demand import ALPHA, BETA, NO_LIMIT, SIZE, NetworkDemand
from narrowcast.model.quarantine import Quarantine, Sieve
from narrowcast.model.tables import find_table, read_table
from narrowcast.model.topology import Topology
from narrowcast.plans.network.queries import AskedQueries
from narrowcast.plans.queries.intake import check_bounded, measured_grid, read_queries, shared_attributes
from narrowcast.plans.queries.ranges import range_boxes
from narrowcast.plans.queries.result import QueryDemand
from narrowcast.plans.queries.service.answers import Query
from narrowcast.plans.queries.sizes import Area

TABLES = ("sites", "hosts", "topology", "subscriptions", "sources")
COST = 0.02  # per GB, of a link that has none
ANSWERS = "answers"  # what stands for the table of the queries among the sources


def read_network(
    folder: str | Path, demand: Demand | str | Path | None = None, aside: Quarantine | None = None
) -> NetworkDemand:
    """The network in a folder, and what is wanted in it.

    Parameters
    ----------
    folder : tables sites (site, gateway, groups, sessions, [joins_per_host], [alpha], [beta], [lan_delay]), hosts
        (host, site, [multicast]), topology (u, v, [cost], [delay], [capacity]), subscriptions (subscriber, host,
        [latency_bound]), sources (flow, site), and optionally nodes (node, [can_filter]) and queries (query, client,
        profile, [every]), over a table that is where sources say of the flow `answers`
    demand : who wants what, or a folder with flows and interest, and the grid of the table that queries ask; by
        default they are in the same folder
    aside : where bad rows go

    Raises
    ------
    InputError : a table or column is missing, or a flow or a subscriber that is wanted has no place
    """
    place, aside = Path(folder), aside if aside is not None else Quarantine()
    if not place.is_dir():
        raise InputError(f"{place}: no such folder", name="network", hint="narrowcast generate network writes one")
    wants = demand if isinstance(demand, Demand) else read_measured(demand or place, aside)
    paths = {name: _table(place, name) for name in TABLES}
    names, can_filter = _nodes(place, paths["topology"], aside)
    topology, capacity = _links(paths["topology"], names, aside)
    sites, columns = _sites(paths["sites"], names, aside)
    hosts, host_site, multicast = _hosts(paths["hosts"], sites, aside)
    asked = find_table(place, "queries")
    queries = [] if asked is None else read_queries(asked, aside)
    if asked is not None and not queries:
        raise InputError(f"{asked}: no valid row: {aside.rows[-1][2] if aside.rows else 'the table is empty'}")
    interest, host, bound = _people(paths["subscriptions"], wants, hosts, aside, [query.client for query in queries])
    source = _sources(paths["sources"], interest, sites, aside)
    paths |= {} if asked is None else {"queries": asked}
    inputs = {**wants.inputs, **{name: fingerprint(path) for name, path in paths.items()}}
    return NetworkDemand(
        topology, interest, sites=tuple(sites), hosts=tuple(hosts), host_site=host_site, multicast=multicast, host=host,
        bound=bound, source=source, size=_sizes(wants, interest), capacity=capacity, can_filter=can_filter,
        key=wants.key, inputs=inputs, folder=place, queries=_queries(queries, paths["sources"], wants.folder or place),
        **columns,
    )  # fmt: skip


def _table(folder: Path, name: str) -> Path:
    found = find_table(folder, name)
    if found is None:
        hint = "narrowcast generate network writes one"
        raise InputError(f"{folder}: no {name} table here", name=name, got=str(folder), hint=hint)
    return found


def _place(column: Any, names: list[str], sieve: Sieve, name: str, of: str) -> Ints:
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = texts_in(column)
    sieve.refuse(cells.is_null(), f"{name} is empty")
    found = pc.index_in(cells, value_set=pa.array(names, pa.string())).fill_null(-1)
    at: Ints = found.to_numpy(zero_copy_only=False).astype(np.int64)
    sieve.refuse(at < 0, f"{name} is not in the {of} table")
    return np.maximum(at, 0)


def _optional(table: Any, name: str, default: float, sieve: Sieve) -> Floats:
    """A column of numbers that may be absent or have empty cells."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name not in table.column_names or pa.types.is_null(table[name].type):
        return np.full(table.num_rows, default)
    cells = texts_in(table[name])
    none = cells.is_null().to_numpy(zero_copy_only=False)
    values = numbers_in(pa.chunked_array([pc.if_else(cells.is_null(), "1", cells)]), sieve, name)
    return np.where(none, default, values)


def _flags(table: Any, name: str) -> Any:
    if name not in table.column_names:
        return np.ones(table.num_rows, np.bool_)
    no = {"false", "0", "no", "f", "n"}
    return np.array([cell is None or str(cell).strip().lower() not in no for cell in table[name].to_pylist()], np.bool_)


def _nodes(folder: Path, links: Path, aside: Quarantine) -> tuple[list[str], Any]:
    import pyarrow.compute as pc

    path = find_table(folder, "nodes")
    if path is None:
        table = read_table(links, name="topology", columns=("u", "v"))
        names = sorted({name for end in "uv" for name in pc.drop_null(texts_in(table[end])).to_pylist()})
        return names, np.ones(len(names), np.bool_)
    table = read_table(path, name="nodes", columns=("node",))
    sieve = Sieve(path, table.num_rows, aside)
    node = texts_in(table["node"])
    sieve.refuse(node.is_null(), "node is empty")
    sieve.refuse(repeats(codes_of(node)[0], sieve.good), "node appears twice")
    return node.filter(sieve.good).to_pylist(), _flags(table, "can_filter")[sieve.good]


def _links(path: Path, names: list[str], aside: Quarantine) -> tuple[Topology, Floats]:
    table = read_table(path, name="topology", columns=("u", "v"))
    sieve = Sieve(path, table.num_rows, aside)
    u, v = (_place(table[end], names, sieve, end, "nodes") for end in "uv")
    cost, delay = _optional(table, "cost", COST, sieve), _optional(table, "delay", 0.0, sieve)
    capacity = _optional(table, "capacity", np.inf, sieve)
    sieve.refuse(u == v, "the link joins a node to itself")
    sieve.refuse(cost <= 0, "cost is not above 0")
    sieve.refuse(delay < 0, "delay is negative")
    sieve.refuse(capacity <= 0, "capacity is not above 0")
    low, high = np.minimum(u, v), np.maximum(u, v)
    sieve.refuse(repeats(low * (len(names) + 1) + high, sieve.good), "the link appears twice")
    good = sieve.good
    # Topology sorts its links by their ends; capacities follow.
    order = np.lexsort((high[good], low[good]))
    ends = np.column_stack((low[good], high[good]))
    return Topology(ends, cost[good], delay[good], n_brokers=len(names), names=names), capacity[good][order]


def _sites(path: Path, names: list[str], aside: Quarantine) -> tuple[list[str], dict[str, Any]]:
    table = read_table(path, name="sites", columns=("site", "gateway", "groups", "sessions"))
    sieve = Sieve(path, table.num_rows, aside)
    site = texts_in(table["site"])
    sieve.refuse(site.is_null(), "site is empty")
    gateway = _place(table["gateway"], names, sieve, "gateway", "nodes")
    found: dict[str, Any] = {}
    for name, default in (("groups", 0.0), ("sessions", 0.0), ("joins_per_host", float(NO_LIMIT))):
        found[name] = _optional(table, name, default, sieve)
        low = NO_LIMIT if name == "joins_per_host" else 0
        sieve.refuse((found[name] < low) | (found[name] != np.trunc(found[name])), f"{name} is not a whole number")
        sieve.refuse(found[name] > 10**7, f"{name} is above 10 million")
    for name, default in (("alpha", ALPHA), ("beta", BETA), ("lan_delay", 0.0)):
        found[name] = _optional(table, name, default, sieve)
        sieve.refuse(found[name] < 0, f"{name} is negative")
    sieve.refuse(repeats(codes_of(site)[0], sieve.good), "site appears twice")
    sieve.refuse(repeats(gateway, sieve.good), "the gateway is another site's")
    if not sieve.good.any():
        raise InputError(f"{path}: no valid site: {aside.rows[-1][2] if aside.rows else 'the table is empty'}")
    whole = ("groups", "sessions", "joins_per_host")
    kept = {n: v[sieve.good].astype(np.int64) if n in whole else v[sieve.good] for n, v in found.items()}
    return site.filter(sieve.good).to_pylist(), {**kept, "gateway": gateway[sieve.good]}


def _hosts(path: Path, sites: list[str], aside: Quarantine) -> tuple[list[str], Ints, Any]:
    table = read_table(path, name="hosts", columns=("host", "site"))
    sieve = Sieve(path, table.num_rows, aside)
    host = texts_in(table["host"])
    sieve.refuse(host.is_null(), "host is empty")
    site = _place(table["site"], sites, sieve, "site", "sites")
    sieve.refuse(repeats(codes_of(host)[0], sieve.good), "host appears twice")
    return host.filter(sieve.good).to_pylist(), site[sieve.good], _flags(table, "multicast")[sieve.good]


def _people(
    path: Path, wants: Demand, hosts: list[str], aside: Quarantine, clients: Sequence[str]
) -> tuple[Interest, Ints, Floats]:
    """The interest with clients of queries among its users, the host of each, and the tightest bound."""
    table = read_table(path, name="subscriptions", columns=("subscriber", "host"))
    sieve = Sieve(path, table.num_rows, aside)
    who = texts_in(table["subscriber"])
    sieve.refuse(who.is_null(), "subscriber is empty")
    host = _place(table["host"], hosts, sieve, "host", "hosts")
    bound = _optional(table, "latency_bound", np.inf, sieve)
    sieve.refuse(bound <= 0, "latency_bound is not above 0")
    place: dict[str, int] = {}
    least: dict[str, float] = {}
    for at in np.flatnonzero(sieve.good).tolist():
        name = who[at].as_py()
        if place.setdefault(name, int(host[at])) != host[at]:
            aside.add(path, [at], "subscriber is on another host too")
            continue
        least[name] = min(least.get(name, np.inf), float(bound[at]))
    interest = wants.interest
    names = tuple(dict.fromkeys([*(interest.user_names or map(str, range(interest.n_users))), *clients]))
    lost = [name for name in names if name not in place]
    if lost:
        raise InputError(
            f"{path}: {len(lost)} subscribers who want something have no valid host, the first is {lost[0]}",
            name="host",
            hint="every subscriber of the interest table needs a row with a host of the hosts table",
        )
    if len(names) > interest.n_users:
        interest = replace(interest, n_users=len(names), user_names=names)
    return interest, np.array([place[name] for name in names], np.int64), np.array([least[name] for name in names])


def _sources(path: Path, interest: Interest, sites: list[str], aside: Quarantine) -> Ints:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = read_table(path, name="sources", columns=("flow", "site"))
    sieve = Sieve(path, table.num_rows, aside)
    flow = texts_in(table["flow"])
    sieve.refuse(flow.is_null(), "flow is empty")
    site = _place(table["site"], sites, sieve, "site", "sites")
    sieve.refuse(repeats(codes_of(flow)[0], sieve.good), "the flow enters at another site too: name its parts apart")
    names = pa.array(interest.flow_names or tuple(map(str, range(interest.n_flows))), pa.string())
    at = pc.index_in(names, value_set=flow.filter(sieve.good)).fill_null(-1).to_numpy(zero_copy_only=False)
    missing = np.flatnonzero((at < 0) & (interest.audience_sizes > 0))
    if missing.size:
        raise InputError(
            f"{path}: {missing.size} flows that somebody wants have no site where they enter, the first is "
            f"{names[int(missing[0])]}",
            name="sources",
        )
    return np.where(at >= 0, np.append(site[sieve.good], 0)[at], 0).astype(np.int64)


def _queries(queries: list[Query], sources: Path, measured: Path) -> AskedQueries | None:
    """The queries as boxes, their sizes from the grid that measure counted, else by area."""
    if not queries:
        return None
    along = shared_attributes(queries)
    boxes = range_boxes([query.profile for query in queries], along)
    grid = (measured / "grid.parquet").is_file()
    if not grid:
        check_bounded(queries, boxes, along)
    table = read_table(sources, name="sources", columns=("flow", "site"))
    rows = zip(texts_in(table["flow"]).to_pylist(), texts_in(table["site"]).to_pylist(), strict=True)
    site = next((site for flow, site in rows if flow == ANSWERS and site is not None), None)
    if site is None:
        hint = f"add a row with flow {ANSWERS} and the site of the table"
        raise InputError(f"{sources}: no site where the table is that queries ask", name="sources", hint=hint)
    asked = QueryDemand(boxes, along, tuple(q.query for q in queries), tuple(q.client for q in queries))
    size = measured_grid(measured, along) if grid else Area()
    return AskedQueries(asked, site, np.array([query.every for query in queries], np.int64), size)


def _sizes(wants: Demand, interest: Interest) -> Floats:
    """Bytes of a message of each flow, from the flows table if it says."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if wants.folder is None or interest.flow_names is None:
        return np.full(interest.n_flows, SIZE)
    path = table_in(wants.folder, "flows")
    table = read_table(path, name="flows", columns=("flow",))
    size = _optional(table, "size", SIZE, Sieve(path, table.num_rows, Quarantine()))
    at = pc.index_in(pa.array(interest.flow_names, pa.string()), value_set=texts_in(table["flow"]))
    found = size[at.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)]
    return np.where(np.isfinite(found) & (found >= 0), found, SIZE)
