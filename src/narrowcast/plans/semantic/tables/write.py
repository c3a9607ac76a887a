"""A semantic plan as the tables of a plan folder: what was decided, and all that it was decided for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.model.arrays import Ints
from narrowcast.model.plan import Tables
from narrowcast.plans.semantic.content import Both, Content, Either, Less, Wants, bottom_up
from narrowcast.plans.semantic.routers.audience import AudienceRouter
from narrowcast.plans.semantic.tables.words import told

if TYPE_CHECKING:
    from narrowcast.plans.semantic.result import SemanticPlan

#: So many messages of the window are kept with the plan, evenly spread, for the judge to try.
SAMPLE = 200


def tables_of(plan: SemanticPlan) -> Tables:
    """The plan in the form that is written and checked, its rates those of its window.

    `contents` holds the channels' formulas, a part per row: `any` of some profiles, or `all`, `any of` and
    `less` over parts before it. Under the rule of `search` a channel has no formula: it is told by its
    members, of which `core` marks those that every audience it was made for has. The column `expression` is for
    people: it leaves out what would be too long. `window` has a row for messages that matched the same
    profiles and came from the same broker, and where they go.

    >>> import pyarrow as pa
    >>> from narrowcast.model import Topology
    >>> from narrowcast.plans.semantic.api import plan
    >>> line, window = Topology([(0, 1), (1, 2)]), pa.table({"x": [1, 2]})
    >>> found = tables_of(plan(line, ["x > 1"], [(0, 2)], window, sources=0, method="semcast"))
    >>> found.tables["channels"].to_pylist()[0]["expression"], found.cost["total"]
    ('x > 1', 2.0)
    """
    names = np.array([*plan.broker_names, None], object)
    cost = plan.sent.cost
    content, parts = _contents(plan)
    return Tables(
        kind=plan.kind,
        tables={
            "channels": _channels(plan, names, content),
            "contents": parts,
            "window": _window(plan, names),
            "sample": _sample(plan, names),
            **_trees(plan, names),
            **_overlay(plan, names),
            **_wishes(plan, names),
        },
        cost={"total": cost.terms.get("full", cost.total), **cost.terms},
        parameters=plan.parameters,
        baselines={name: found.total for name, found in cost.baselines.items()},
        inputs=plan.inputs,
        checks=plan.checks,
        seed=plan.seed,
        key=plan.key,
    )


def _channels(plan: SemanticPlan, names: NDArray[Any], content: list[int | None]) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "channel": pa.array([c.number for c in plan.channels], pa.int64()),
            "expression": pa.array(told(plan, names), pa.string()),
            "rendezvous": pa.array([names[c.rendezvous] for c in plan.channels], pa.string()),
            "rate": plan.sent.rates,
            "kind": pa.array([c.kind for c in plan.channels], pa.string()),
            "content": pa.array(content, pa.int64()),
        }
    )


def _contents(plan: SemanticPlan) -> tuple[list[int | None], Any]:
    """The part that each channel carries, and all parts, each after those it is made of."""
    import pyarrow as pa

    number: dict[int, int] = {}
    rows: list[tuple[str, list[int]]] = []
    wanted: list[int | None] = []
    kept: list[Content] = []  # identities stay taken while they are keys
    for channel in plan.channels:
        if isinstance(plan.router, AudienceRouter):
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


def _by_message(plan: SemanticPlan, n: int, rows: Ints, cols: Ints) -> list[list[int]]:
    """The numbers of the channels that each message goes to."""
    number = np.array([channel.number for channel in plan.channels], np.int64)
    return [some.tolist() for some in np.split(number[cols], np.searchsorted(rows, np.arange(1, n)))]


def _window(plan: SemanticPlan, names: NDArray[Any]) -> Any:
    """Messages that matched anything anybody holds, alike ones as one row."""
    import pyarrow as pa

    seen = plan.sent.seen
    found: dict[tuple[Any, ...], float] = {}
    matched = seen.matched.tocsr()
    matched.sort_indices()
    n = matched.shape[0]
    brokers = seen.sources[seen.source] if seen.sources.size else np.full(n, -1)
    sent = _by_message(plan, n, plan.sent.rows, plan.sent.cols)
    for i in range(n):
        profiles = matched.indices[matched.indptr[i] : matched.indptr[i + 1]]
        if profiles.size:
            key = (tuple(profiles.tolist()), int(brokers[i]), tuple(sent[i]))
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


def _sample(plan: SemanticPlan, names: NDArray[Any]) -> Any:
    """Messages as they are, with their broker and the channels they go to; of measured ones none is left."""
    import pyarrow as pa

    kept, brokers = plan.sample()
    if kept is None:
        return pa.table({"_broker": pa.array([], pa.string()), "_channels": pa.array([], pa.list_(pa.int64()))})
    for name in ("_broker", "_channels"):
        if name in kept.column_names:
            raise InputError(
                f"columns of messages must not be named {name!r}, which a plan uses itself", name=name, hint="rename it"
            )
    n = kept.num_rows
    sent = _by_message(plan, n, *plan.route(kept, brokers)) if n else []
    at = [None] * n if brokers is None else names[brokers].tolist()
    kept = kept.append_column("_broker", pa.array(at, pa.string()))
    return kept.append_column("_channels", pa.array(sent, pa.list_(pa.int64())))


def _trees(plan: SemanticPlan, names: NDArray[Any]) -> dict[str, Any]:
    """Who is at the end of each channel's tree, and its links."""
    import pyarrow as pa

    members, core, links = [], [], []
    for c, channel in enumerate(plan.channels):
        members += [(channel.number, names[g]) for g in channel.gateways]
        links += [(channel.number, names[u], names[v]) for u, v in channel.edges.tolist()]
        inside = _core(plan, c)
        core += [g in inside for g in channel.gateways]
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
    }


def _core(plan: SemanticPlan, channel: int) -> set[int]:
    """The gateways that every audience a channel was made for has."""
    router = plan.router
    if not isinstance(router, AudienceRouter) or channel >= len(router.core):
        return set()
    return set(plan.system.gateways[router.core[channel]].tolist())


def _overlay(plan: SemanticPlan, names: NDArray[Any]) -> dict[str, Any]:
    import pyarrow as pa

    topology = plan.system.topology
    ends, roles = topology.edges, topology.roles or [None] * topology.n_brokers
    return {
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


def _wishes(plan: SemanticPlan, names: NDArray[Any]) -> dict[str, Any]:
    import pyarrow as pa

    system = plan.system
    bounds = np.full(len(system.clients), np.inf) if plan.demand.bounds is None else np.asarray(plan.demand.bounds)
    return {
        "profiles": pa.table(
            {
                "profile": pa.array(range(len(system.profiles)), pa.int64()),
                "text": pa.array([str(profile) for profile in system.profiles], pa.string()),
            }
        ),
        "clients": pa.table(
            {
                "client": pa.array(plan.client_names, pa.string()),
                "profile": pa.array(system.clients[:, 0], pa.int64()),
                "gateway": pa.array(names[system.clients[:, 1]].tolist(), pa.string()),
                "latency_bound": pa.array([float(b) if np.isfinite(b) else None for b in bounds], pa.float64()),
            }
        ),
    }
