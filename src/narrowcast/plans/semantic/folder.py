"""A semantic plan as the tables of a plan folder: what was decided, and all that it was decided for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import InputError
from narrowcast.model.plan import Plan
from narrowcast.plans.semantic.baseline import SCHEMES
from narrowcast.plans.semantic.content import Both, Content, Either, Less, Wants, bottom_up
from narrowcast.plans.semantic.kernels.price import audience_costs
from narrowcast.plans.semantic.result import SemanticPlan, rates, routed, traversals
from narrowcast.plans.semantic.routers.audience import AudienceRouter
from narrowcast.plans.semantic.statistics import Statistics
from narrowcast.plans.semantic.told import told
from narrowcast.plans.semantic.window import Window, window

#: So many messages of the window are kept with the plan, evenly spread, for the judge to try.
SAMPLE = 200


def as_plan(
    made: SemanticPlan,
    messages: Any,
    sources: ArrayLike | None = None,
    *,
    client_names: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> Plan:
    """The plan in the form that is written and checked, its rates those of `messages`.

    `contents` holds the channels' formulas, a part per row: `any` of some profiles, or `all`, `any of` and
    `less` over parts before it. Under the rule of `search` a channel has no formula: it is told by its
    members, of which `core` marks those that every audience it was made for has. `window` has a row for
    messages that matched the same profiles and came from the same broker, and where they go.

    >>> import pyarrow as pa
    >>> from narrowcast.model import Topology
    >>> from narrowcast.plans.semantic import plan
    >>> line, window = Topology([(0, 1), (1, 2)]), pa.table({"x": [1, 2]})
    >>> found = as_plan(plan(line, ["x > 1"], [(0, 2)], window, sources=0, variant="semcast"), window, 0)
    >>> found.tables["channels"].to_pylist()[0]["expression"], found.cost["total"]
    ('x > 1', 2.0)
    """
    import pyarrow as pa

    system = made.system
    seen = window(system, messages, sources, made.parameters.get("half_life"))
    n = seen.matched.shape[0]
    brokers = seen.sources[seen.source] if seen.sources.size else np.full(n, -1)
    group = made.groups_of(brokers) if seen.sources.size else np.zeros(n, np.int64)
    rows, cols = routed(made.router, seen.matched, seen.audience, group)
    names = np.array([*broker_names(made), None], object)
    rate = rates(made.n_channels, cols, seen.weight[rows])
    sent = np.split(cols, np.searchsorted(rows, np.arange(1, n)))
    tree = float(sum(k * channel.link_cost for k, channel in zip(rate, made.channels, strict=True)))
    cost = {"total": tree, "tree": tree}
    if seen.sources.size:
        full = float((traversals(made, rows, cols, brokers) * seen.weight[rows]).sum())
        cost = {"total": full, "tree": tree, "full": full}
    content, parts = _contents(made)
    tables = {
        "channels": pa.table(
            {
                "channel": pa.array(range(made.n_channels), pa.int64()),
                "expression": pa.array(told(made, names), pa.string()),
                "rendezvous": pa.array([names[c.rendezvous] for c in made.channels], pa.string()),
                "rate": rate,
                "kind": pa.array([c.kind for c in made.channels], pa.string()),
                "content": pa.array(content, pa.int64()),
            }
        ),
        "contents": parts,
        "window": _window(seen, brokers, names, sent),
        "sample": _sample(messages, brokers, names, sent),
        **_network(made, names),
        **_wishes(made, names, client_names),
    }
    rule = "audience" if isinstance(made.router, AudienceRouter) else "content"
    more = {"variant": made.variant, "rule": rule, **made.parameters, **(parameters or {})}
    more.pop("seed", None)
    return Plan(
        kind="semantic",
        tables=tables,
        cost=cost,
        parameters=more,
        baselines=_baselines(made, seen, brokers),
        inputs=inputs or {},
        seed=int(made.parameters.get("seed", 0)),
    )


def broker_names(made: SemanticPlan) -> tuple[str, ...]:
    """The brokers' own names, by default their numbers."""
    topology = made.system.topology
    return topology.names or tuple(str(i) for i in range(topology.n_brokers))


def _baselines(made: SemanticPlan, seen: Window, brokers: NDArray[np.int64]) -> dict[str, float]:
    """The same messages without channels, in full bandwidth; only where sources are known."""
    if not seen.sources.size:
        return {}
    paths, gateways = made.system.paths, made.system.gateways
    cost = {
        scheme: audience_costs(paths.distance, paths.next_hop, brokers, gateways, seen.audience, scheme == "unicast")
        for scheme in SCHEMES
    }
    return {scheme: float(each @ seen.weight) for scheme, each in cost.items()}


def _contents(made: SemanticPlan) -> tuple[list[int | None], Any]:
    """The part that each channel carries, and all parts, each after those it is made of."""
    import pyarrow as pa

    number: dict[int, int] = {}
    rows: list[tuple[str, list[int]]] = []
    wanted: list[int | None] = []
    kept: list[Content] = []  # identities stay taken while they are keys
    for channel in made.channels:
        if isinstance(made.router, AudienceRouter):
            wanted.append(None)
            continue
        whole = channel.content()
        kept.append(whole)
        for part in bottom_up(whole, number):
            rows.append(_row(part, number))
            number[id(part)] = len(rows) - 1
        wanted.append(number[id(whole)])
    columns = {
        "part": pa.array(range(len(rows)), pa.int64()),
        "operation": pa.array([operation for operation, _ in rows], pa.string()),
        "operands": pa.array([operands for _, operands in rows], pa.list_(pa.int64())),
    }
    return wanted, pa.table(columns)


def _row(part: Content, number: Mapping[int, int]) -> tuple[str, list[int]]:
    match part:
        case Wants():
            return "any", list(part.profiles)
        case Both():
            return "all", [number[id(inner)] for inner in part.parts]
        case Either():
            return "any of", [number[id(inner)] for inner in part.parts]
        case Less():
            return "less", [number[id(part.whole)], number[id(part.without)]]


def _window(seen: Window, brokers: NDArray[np.int64], names: NDArray[Any], sent: list[Any]) -> Any:
    """Messages that matched anything anybody holds, alike ones as one row."""
    import pyarrow as pa

    found: dict[tuple[Any, ...], float] = {}
    matched = seen.matched.tocsr()
    matched.sort_indices()
    for i in range(matched.shape[0]):
        profiles = matched.indices[matched.indptr[i] : matched.indptr[i + 1]]
        if profiles.size:
            key = (tuple(profiles.tolist()), int(brokers[i]), tuple(sent[i].tolist()))
            found[key] = found.get(key, 0.0) + float(seen.weight[i])
    lists = pa.list_(pa.int64())
    return pa.table(
        {
            "profiles": pa.array([list(key[0]) for key in found], lists),
            "source": pa.array([names[key[1]] for key in found], pa.string()),
            "weight": pa.array(list(found.values()), pa.float64()),
            "channels": pa.array([list(key[2]) for key in found], lists),
        }
    )


def _sample(messages: Any, brokers: NDArray[np.int64], names: NDArray[Any], sent: list[Any]) -> Any:
    """Messages as they are, with their broker and the channels they go to; of measured ones none is left."""
    import pyarrow as pa

    if isinstance(messages, Statistics):
        return pa.table({"_broker": pa.array([], pa.string()), "_channels": pa.array([], pa.list_(pa.int64()))})
    for name in ("_broker", "_channels"):
        if name in messages.column_names:
            raise InputError(f"messages has a column {name!r}, which a plan uses itself", name=name, hint="rename it")
    some = np.unique(np.linspace(0, messages.num_rows - 1, min(SAMPLE, messages.num_rows)).astype(np.int64))
    kept = messages.take(pa.array(some, pa.int64()))
    kept = kept.append_column("_broker", pa.array([names[brokers[i]] for i in some], pa.string()))
    return kept.append_column("_channels", pa.array([sent[i].tolist() for i in some], pa.list_(pa.int64())))


def _network(made: SemanticPlan, names: NDArray[Any]) -> dict[str, Any]:
    import pyarrow as pa

    topology = made.system.topology
    members, core, links = [], [], []
    router = made.router
    for c, channel in enumerate(made.channels):
        members += [(c, names[g]) for g in channel.gateways]
        links += [(c, names[u], names[v]) for u, v in channel.edges.tolist()]
        whole = isinstance(router, AudienceRouter) and c < len(router.core)
        inside = set(made.system.gateways[router.core[c]].tolist()) if whole else set()  # type: ignore[attr-defined]
        core += [g in inside for g in channel.gateways]
    ends = topology.edges
    roles = topology.roles or [None] * topology.n_brokers
    return {
        "channel_members": pa.table(
            {
                "channel": pa.array([c for c, _ in members], pa.int64()),
                "gateway": pa.array([g for _, g in members], pa.string()),
                "core": pa.array(core, pa.bool_()),
            }
        ),
        "trees": pa.table(
            {
                "channel": pa.array([c for c, _, _ in links], pa.int64()),
                "u": pa.array([u for _, u, _ in links], pa.string()),
                "v": pa.array([v for _, _, v in links], pa.string()),
            }
        ),
        "topology": pa.table(
            {
                "u": pa.array(names[ends[:, 0]].tolist(), pa.string()),
                "v": pa.array(names[ends[:, 1]].tolist(), pa.string()),
                "cost": topology.cost,
                "delay": topology.delay,
            }
        ),
        "nodes": pa.table(
            {"node": pa.array(names[:-1].tolist(), pa.string()), "role": pa.array(list(roles), pa.string())}
        ),
    }


def _wishes(made: SemanticPlan, names: NDArray[Any], client_names: Sequence[str] | None) -> dict[str, Any]:
    import pyarrow as pa

    system = made.system
    n = len(system.clients)
    if client_names is not None and len(client_names) != n:
        raise InputError(f"client_names has {len(client_names)} names for {n} clients", name="client_names")
    bound = [None] * n if made.bounds is None else [None if np.isinf(b) else float(b) for b in made.bounds]
    return {
        "profiles": pa.table(
            {
                "profile": pa.array(range(len(system.profiles)), pa.int64()),
                "text": pa.array([str(profile) for profile in system.profiles], pa.string()),
            }
        ),
        "clients": pa.table(
            {
                "client": pa.array(client_names or [str(i) for i in range(n)], pa.string()),
                "profile": pa.array(system.clients[:, 0], pa.int64()),
                "gateway": pa.array(names[system.clients[:, 1]].tolist(), pa.string()),
                "latency_bound": pa.array(bound, pa.float64()),
            }
        ),
    }
