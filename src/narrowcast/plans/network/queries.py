"""Queries over a table as content of a network: the merged answer of a set of queries is a flow that its clients want.

A set is answered by its bounding box, sent whole to each of its clients, who throw away what they did not ask for.
Queries of one set have one frequency, so that a set is always answered whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints, indices
from narrowcast.model.interest import Interest
from narrowcast.model.interest_tables import names_of
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.model.plan import Tables
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.problem import BoxProblem, Set, check_cover
from narrowcast.plans.queries.procedures import Rectangle
from narrowcast.plans.queries.result import MOST_POINTS, QueriesPlan, QueryDemand, merged_plan
from narrowcast.plans.queries.service.messages import PART_BYTES, stamped
from narrowcast.plans.queries.sizes import Area, Given, PointCounts, Sizes
from narrowcast.profiles.flow_key import flow_name

PERIOD_S, ROW_BYTES = 60.0, 100.0


class AnswerFlow(NamedTuple):
    """A set's answer as a flow: messages a second, bytes of each, and rows a second."""

    rate: float
    size: float
    rows_s: float


@dataclass(frozen=True, eq=False)
class AskedQueries:
    """Range queries over a table that is at a site, each answered every so many periods.

    `asked` are their boxes, with clients who are subscribers of the network; `size` says how many rows a box holds.
    `sets` are the queries that are answered together; there are none before that is decided.

    >>> asked = QueryDemand([[[0, 4000]], [[2000, 6000]]], ("price",), names=("p", "q"), clients=("ann", "bob"))
    >>> AskedQueries(asked, "London", period_s=10.0).flow((0, 1))
    AnswerFlow(rate=1.3, size=46153.846153846156, rows_s=600.0)
    """

    asked: QueryDemand
    site: str
    every: Ints = 1  # type: ignore[assignment]
    size: Sizes = field(default_factory=Area)
    period_s: float = PERIOD_S
    row_bytes: float = ROW_BYTES
    sets: tuple[Set, ...] = ()

    def __post_init__(self) -> None:
        n, often = len(self.asked.boxes), np.asarray(self.every)
        if self.asked.clients is None:
            raise InputError("queries must have clients, who are subscribers of the network", name="clients")
        if isinstance(self.size, Given) or (isinstance(self.size, PointCounts) and len(self.size.points) > MOST_POINTS):
            told = f"size must be an area, a GridHistogram or up to {MOST_POINTS:,} points, which a plan can hold"
            raise InputError(told, name="size", got=self.size.name)
        if isinstance(self.size, Area) and not np.isfinite(self.asked.boxes).all():
            raise InputError("queries must have ends on every side, or sizes counted in data", name="size")
        for name, value in (("period_s", self.period_s), ("row_bytes", self.row_bytes)):
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"{name} must be above 0, got {value}", name=name, got=value)
        every = indices("every", np.full(n, often) if often.ndim == 0 else often, low=1)
        if every.size != n:
            raise InputError(f"every must have {n} entries, got {every.size}", name="every", got=every.size)
        object.__setattr__(self, "every", every)
        object.__setattr__(self, "sets", check_cover(self.sets, n) if self.sets else ())

    @cached_property
    def problem(self) -> BoxProblem:
        """The sizes of answers; its constants play no part."""
        return BoxProblem(self.asked.boxes, Constants(), Rectangle(), self.size)

    def flow(self, members: Set) -> AnswerFlow:
        """The answer of some queries together: parts of it are messages, as the service sends them."""
        rows, often = self.problem.sent(members).size, 1 / (self.period_s * int(self.every[members[0]]))
        parts = max(1, ceil(rows * self.row_bytes / PART_BYTES - 1e-9))
        return AnswerFlow(often * parts, rows * self.row_bytes / parts, often * rows)

    def thrown(self, members: Set) -> Floats:
        """Rows a second that the client of each query gets with its set and throws away."""
        own: Floats = self.problem.alone[list(members)] / (self.period_s * self.every[list(members)])
        return self.flow(members).rows_s - own

    def by_frequency(self, sets: Iterable[Sequence[int]]) -> tuple[Set, ...]:
        """The sets with queries of different frequency apart."""
        held = [sorted(members, key=lambda q: (self.every[q], q)) for members in sets]
        return tuple(sorted(tuple(same) for each in held for _, same in groupby(each, lambda q: int(self.every[q]))))

    def site_in(self, demand: NetworkDemand) -> int:
        """Which site of the network the table is at."""
        if self.site not in demand.sites:
            raise InputError(f"site {self.site} of the queries must be a site of the network", name="site")
        return demand.sites.index(self.site)

    def clients_in(self, demand: NetworkDemand) -> Ints:
        """Which subscriber of the network the client of each query is."""
        names = names_of(demand.interest.user_names, range(demand.interest.n_users)).to_pylist()
        place = {name: at for at, name in enumerate(names)}
        for client in self.asked.clients or ():
            if client not in place:
                raise InputError(f"client {client} must be a subscriber of the network with a host", name="client")
        return np.array([place[client] for client in self.asked.clients or ()], np.int64)

    @property
    def merged(self) -> QueriesPlan:
        """The sets as a queries plan with a channel for each, which the query service follows."""
        made = merged_plan(self.asked, self.problem, self.sets, "directed")
        parameters = {**made.parameters, "channels": len(self.sets)}
        return replace(made, physical=tuple(range(len(self.sets))), parameters=parameters)


def with_answers(demand: NetworkDemand, sets: Iterable[Sequence[int]]) -> NetworkDemand:
    """The demand with a flow for each set of its queries, after the other flows."""
    base, queries = without_answers(demand), demand.queries
    assert queries is not None
    queries = replace(queries, sets=tuple(map(tuple, sets)))
    n, client = base.interest, queries.clients_in(base)
    names = names_of(n.flow_names, range(n.n_flows)).to_pylist()
    key = base.key or ("flow",)
    new = [flow_name(stamped({}, number, key), key) for number in range(len(queries.sets))]
    for name in set(new).intersection(names):
        raise InputError(f"flow {name} must have another name: answers of queries have it", name="flow", got=name)
    flows = [queries.flow(members) for members in queries.sets]
    takers = [(n.n_flows + at, int(client[q])) for at, members in enumerate(queries.sets) for q in members]
    flow, user = np.array(takers, np.int64).reshape(-1, 2).T
    interest = Interest.from_pairs(
        np.append(n.flow_of_pair, flow), np.append(n.users, user), np.append(n.rates, [f.rate for f in flows]),
        n_users=n.n_users, flow_names=[*names, *new], user_names=n.user_names,
    )  # fmt: skip
    return replace(
        base, interest=interest, source=np.append(base.source, [queries.site_in(base)] * len(flows)),
        size=np.append(base.size, [f.size for f in flows]), queries=queries,
    )  # fmt: skip


def without_answers(demand: NetworkDemand) -> NetworkDemand:
    """The demand with its flows alone, its queries still to be merged."""
    queries, n = demand.queries, demand.interest
    if queries is None or not queries.sets:
        return demand
    kept = n.n_flows - len(queries.sets)
    pairs = n.flow_of_pair < kept
    interest = Interest.from_pairs(
        n.flow_of_pair[pairs], n.users[pairs], n.rates[:kept], n_users=n.n_users,
        flow_names=None if n.flow_names is None else n.flow_names[:kept], user_names=n.user_names,
    )  # fmt: skip
    return replace(
        demand, interest=interest, source=demand.source[:kept], size=demand.size[:kept],
        queries=replace(queries, sets=()),
    )  # fmt: skip


def thrown_away(demand: NetworkDemand) -> Floats:
    """Rows a second that the clients of each site throw away of merged answers."""
    found, queries = np.zeros(demand.n_sites), demand.queries
    if queries is not None and queries.sets:
        site = demand.site_of[queries.clients_in(demand)]
        for members in queries.sets:
            np.add.at(found, site[list(members)], queries.thrown(members))
    return found


def queries_tables(queries: AskedQueries | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables that hold the queries, their sets and sizes in a plan's folder, and the parameters beside them."""
    import pyarrow as pa

    if queries is None:
        return {}, {}
    made, asked = replace(queries.merged, physical=None), queries.asked
    often = pa.table({
        "query": pa.array(asked.query_names, pa.string()), "client": pa.array(asked.clients, pa.string()),
        "every": queries.every,
    })  # fmt: skip
    about = {name: made.parameters[name] for name in ("procedure", "size", "attributes")}
    about |= {name: getattr(queries, name) for name in ("site", "period_s", "row_bytes")}
    return {**made.to_tables().tables, "frequency": often}, {"queries": about}


def queries_in(tables: Tables) -> AskedQueries | None:
    """The queries that a plan's folder holds, with their sets."""
    about = tables.parameters.get("queries")
    if about is None:
        return None
    held = tables.tables
    names = ("queries", "merges", "channels", "grid", "grid_edges", "points")
    own = {name: held[name] for name in names if name in held}
    read = QueriesPlan.from_tables(Tables("queries", own, {"total": 0.0}, about, key=tables.key))
    rows = zip(*(held["frequency"][name].to_pylist() for name in ("query", "client", "every")), strict=True)
    often = {(query, client): every for query, client, every in rows}
    who = zip(read.demand.query_names, read.demand.clients or (), strict=True)
    if read.size is None:
        raise InputError("the plan must hold what the sizes of its answers were counted in", name="size")
    return AskedQueries(
        read.demand, about["site"], np.array([often[name] for name in who], np.int64), read.size,
        float(about["period_s"]), float(about["row_bytes"]), read.sets,
    )  # fmt: skip
