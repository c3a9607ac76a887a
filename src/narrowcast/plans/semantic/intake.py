"""Overlay, subscriptions and messages from tables on one machine: bad rows are set aside with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.intake import codes_of, numbers_in, repeats, texts_in
from narrowcast.model.quarantine import Quarantine, Sieve
from narrowcast.model.tables import read_table
from narrowcast.model.topology import ROLES, Topology
from narrowcast.plans.semantic.window import read_profile
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.syntax import XML
from narrowcast.profiles.xpath.document import parse_document


@dataclass(frozen=True, eq=False)
class Clients:
    """Subscriptions taken in: `clients` are (profile index, broker) pairs, from row `rows[i]` of their table."""

    names: tuple[str, ...]
    profiles: tuple[Profile, ...]
    clients: Ints
    bounds: Floats | None
    rows: Ints


def read_overlay(links: str | Path, nodes: str | Path | None, aside: Quarantine) -> Topology:
    """The tables topology (u, v, [cost], [delay]) and nodes (node, role), brokers by name.

    With a table of nodes its order is the brokers', and a link to any other name is set aside.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names, roles = (None, None) if nodes is None else _nodes(nodes, aside)
    table = read_table(links, name="topology", columns=("u", "v"))
    sieve = Sieve(links, table.num_rows, aside)
    u, v = texts_in(table["u"]), texts_in(table["v"])
    sieve.refuse(u.is_null(), "u is empty")
    sieve.refuse(v.is_null(), "v is empty")
    if names is None:
        names = sorted({*pc.drop_null(u).to_pylist(), *pc.drop_null(v).to_pylist()})
    known = pa.array(names, pa.string())
    ends = np.column_stack([pc.index_in(x, value_set=known).fill_null(-1).to_numpy() for x in (u, v)]).astype(np.int64)
    for at, name in enumerate(("u", "v")):
        sieve.refuse(ends[:, at] < 0, f"{name} is not in the nodes table")
    sieve.refuse(ends[:, 0] == ends[:, 1], "the link joins a node to itself")
    amount: dict[str, Any] = {}
    for name in ("cost", "delay"):
        if name in table.column_names:
            amount[name] = numbers_in(table[name], sieve, name)
    sieve.refuse(amount.get("cost", np.ones(table.num_rows)) <= 0, "cost is not above 0")
    sieve.refuse(amount.get("delay", np.ones(table.num_rows)) < 0, "delay is negative")
    low, high = ends.min(axis=1), ends.max(axis=1)
    sieve.refuse(repeats(low * (len(names) + 1) + high, sieve.good), "the link appears twice")
    if not sieve.good.any():
        raise InputError(f"{links}: no valid link: {_first(aside, 'the table is empty')}", name="topology")
    good = {name: values[sieve.good] for name, values in amount.items()}
    return Topology(ends[sieve.good], n_brokers=len(names), names=names, roles=roles, **good)


def _nodes(path: str | Path, aside: Quarantine) -> tuple[list[str], list[str]]:
    table = read_table(path, name="nodes", columns=("node", "role"))
    sieve = Sieve(path, table.num_rows, aside)
    node, role = texts_in(table["node"]), texts_in(table["role"])
    sieve.refuse(node.is_null(), "node is empty")
    told = np.array(role.to_pylist(), object)
    sieve.refuse([each not in ROLES for each in told], f"role must be one of {', '.join(ROLES)}")
    sieve.refuse(repeats(codes_of(node)[0], sieve.good), "node appears twice")
    return node.filter(sieve.good).to_pylist(), told[sieve.good].tolist()


def read_messages(
    path: str | Path, topology: Topology, aside: Quarantine, wanted: Sequence[Profile]
) -> tuple[Any, Ints | None]:
    """The messages and the broker each comes from; None if the table has no column source.

    A text column that profiles compare with numbers is read as numbers. Documents that XPath profiles
    cannot read are set aside.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = read_table(path, name="messages")
    sieve = Sieve(path, table.num_rows, aside)
    sources = None
    if "source" in table.column_names:
        sources = _places(table["source"], topology, sieve, "source")
    if "size" in table.column_names and not pa.types.is_string(table["size"].type):
        sieve.refuse(pc.less(table["size"], 0).fill_null(False).to_numpy(), "size is negative")
    table = _as_numbers(table, wanted, sieve)
    if XML in table.column_names and any(XML in each.attributes for each in wanted):
        for at, document in enumerate(table[XML].to_pylist()):
            reason = _unreadable(document) if sieve.good[at] else None
            if reason is not None:
                aside.add(path, [at], f"{XML}: {reason}")
                sieve.good[at] = False
    kept = table.filter(sieve.good)
    return kept, None if sources is None else sources[sieve.good]


def _unreadable(document: Any) -> str | None:
    if document is None:
        return None
    try:
        parse_document(document)
    except InputError as error:
        return " ".join(str(error).split())
    return None


def _as_numbers(table: Any, wanted: Sequence[Profile], sieve: Sieve) -> Any:
    import pyarrow as pa

    numbers = sorted({name for each in wanted for name, kind in each.kinds.items() if kind == "number"})
    for name in numbers:
        if name not in table.column_names or not pa.types.is_string(table[name].type):
            continue
        given = table[name].to_pylist()
        values = [_number(value) for value in given]
        bad = [cell is not None and value is None for cell, value in zip(given, values, strict=True)]
        if not all(bad):
            sieve.refuse(bad, f"{name} is not a number")
            table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.float64()))
    return table


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def read_clients(path: str | Path, topology: Topology, aside: Quarantine) -> Clients:
    """The table subscriptions (subscriber, profile, node, [latency_bound]); XPaths start with a slash."""
    table = read_table(path, name="subscriptions", columns=("subscriber", "profile", "node"))
    sieve = Sieve(path, table.num_rows, aside)
    who, text = texts_in(table["subscriber"]), texts_in(table["profile"])
    sieve.refuse(who.is_null(), "subscriber is empty")
    sieve.refuse(text.is_null(), "profile is empty")
    broker = _places(table["node"], topology, sieve, "node")
    bounds = _bounds(table, sieve) if "latency_bound" in table.column_names else None
    codes, texts = codes_of(text)
    found: list[Profile | None] = []
    for code, each in enumerate(texts):
        try:
            found.append(read_profile(each))
        except InputError as error:
            found.append(None)
            sieve.refuse(codes == code, "profile: " + " ".join(str(error).split()))
    names = who.to_pylist()
    pairs = codes * (len(names) + 1) + codes_of(who)[0]
    sieve.refuse(repeats(pairs, sieve.good), "subscriber and profile appear twice")
    rows = np.flatnonzero(sieve.good)
    if not rows.size:
        raise InputError(f"{path}: no valid row: {_first(aside, 'the table is empty')}", name="subscriptions")
    used, profile = np.unique(codes[rows], return_inverse=True)
    profiles = tuple(each for each in (found[code] for code in used) if each is not None)
    kept = None if bounds is None or np.isinf(bounds[rows]).all() else bounds[rows]
    return Clients(tuple(names[i] for i in rows), profiles, np.column_stack((profile, broker[rows])), kept, rows)


def answerable(given: Clients, messages: Any, path: str | Path, aside: Quarantine) -> Clients:
    """The clients whose profiles these messages can answer; others speak of columns that are not there."""
    from narrowcast.profiles import Matcher

    none = messages.slice(0, 0)
    reasons: dict[int, str] = {}
    for i, profile in enumerate(given.profiles):
        if not set(profile.attributes) <= set(messages.column_names):
            missing = sorted(set(profile.attributes) - set(messages.column_names))
            reasons[i] = f"the messages have no column {missing[0]!r}"
    plain = [i for i, each in enumerate(given.profiles) if i not in reasons]
    try:
        Matcher([given.profiles[i] for i in plain]).match(none)
    except InputError:
        for i in plain:
            try:
                Matcher([given.profiles[i]]).match(none)
            except InputError as error:
                reasons[i] = " ".join(str(error).split())
    if not reasons:
        return given
    good = np.array([int(profile) not in reasons for profile in given.clients[:, 0]])
    for row, profile in zip(given.rows[~good].tolist(), given.clients[~good, 0].tolist(), strict=True):
        aside.add(path, [row], f"profile: {reasons[profile]}")
    if not good.any():
        raise InputError(f"{path}: no valid row: {next(iter(reasons.values()))}", name="subscriptions")
    used, index = np.unique(given.clients[good, 0], return_inverse=True)
    return Clients(
        tuple(name for name, fine in zip(given.names, good, strict=True) if fine),
        tuple(given.profiles[i] for i in used),
        np.column_stack((index, given.clients[good, 1])),
        None if given.bounds is None else given.bounds[good],
        given.rows[good],
    )


def _places(column: Any, topology: Topology, sieve: Sieve, name: str) -> Ints:
    """The broker that each cell names."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = texts_in(column)
    sieve.refuse(cells.is_null(), f"{name} is empty")
    place = pc.index_in(cells, value_set=pa.array(topology.names or (), pa.string())).fill_null(-1)
    broker: Ints = place.to_numpy().astype(np.int64)
    sieve.refuse(broker < 0, f"{name} is not a node of the overlay")
    return broker


def _bounds(table: Any, sieve: Sieve) -> Floats:
    """Latency bounds; an empty cell is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table["latency_bound"]
    if pa.types.is_null(column.type):
        return np.full(table.num_rows, np.inf)
    none = texts_in(column).is_null().to_numpy(zero_copy_only=False)
    filled = pc.if_else(pc.is_null(texts_in(column)), "0", texts_in(column))
    values = numbers_in(pa.chunked_array([filled]), sieve, "latency_bound")
    sieve.refuse(~none & (values <= 0), "latency_bound is not above 0")
    return np.where(none, np.inf, values)


def _first(aside: Quarantine, otherwise: str) -> str:
    return aside.rows[0][2] if aside.rows else otherwise
