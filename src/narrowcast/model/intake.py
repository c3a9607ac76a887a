"""From input tables to nouns on one machine: what can be used is used, the rest is set aside with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.model.demand import Demand
from narrowcast.model.folder import fingerprint
from narrowcast.model.interest import Interest
from narrowcast.model.quarantine import Quarantine, Sieve
from narrowcast.model.stores import whole_here
from narrowcast.model.tables import find_table, key_beside, key_in, read_table
from narrowcast.model.tree import Tree


def read_measured(folder: str | Path, quarantine: Quarantine) -> Demand:
    """The demand in a folder that `measure` or `generate` wrote, with its flow key.

    It has the tables flows and interest, as Parquet, CSV or JSON lines; bad rows go to the quarantine. A URL of a
    folder that measure wrote is copied to this machine until the process ends.
    """
    place = whole_here(folder, "demand")
    if not place.is_dir():
        raise InputError(
            f"{place}: no such folder", name="demand", got=str(place), hint="narrowcast measure writes one"
        )
    flows, interest = (table_in(place, name) for name in ("flows", "interest"))
    return replace(read_demand_tables(flows, interest, quarantine), folder=place)


def table_in(folder: Path, name: str) -> Path:
    """The file of a table in a folder; InputError where it has none."""
    found = find_table(folder, name)
    if found is None:
        raise InputError(
            f"{folder}: no {name} table here (no {name}.parquet, {name}.csv or {name}.jsonl)",
            name=name,
            got=str(folder),
            hint="narrowcast measure writes it from messages and subscriptions",
        )
    return found


def read_demand_tables(
    flows: str | Path, interest: str | Path, quarantine: Quarantine, key: Sequence[str] | None = None
) -> Demand:
    """The demand in two tables, flows (flow, rate) and interest (flow, subscriber).

    The flow key is `key`, else what the metadata of the flows file says (Parquet), else what the `manifest.json`
    beside it says, else unknown: ().
    """
    rates = read_table(flows, name="flows", columns=("flow", "rate"))
    said = (tuple(key) if key is not None else None, key_in(rates.schema), key_beside(flows))
    return Demand(
        _interest(rates, flows, interest, quarantine),
        key=next((found for found in said if found is not None), ()),
        inputs={"flows": fingerprint(flows), "interest": fingerprint(interest)},
    )


def _interest(rates: Any, flows: str | Path, interest: str | Path, quarantine: Quarantine) -> Interest:
    import pyarrow.compute as pc

    sieve = Sieve(flows, rates.num_rows, quarantine)
    names = texts_in(rates["flow"])
    sieve.refuse(names.is_null(), "flow is empty")
    rate = numbers_in(rates["rate"], sieve, "rate")
    sieve.refuse(rate < 0, "rate is negative")
    sieve.refuse(repeats(codes_of(names)[0], sieve.good), "flow appears twice")
    flow_names = names.filter(sieve.good)
    pairs = read_table(interest, name="interest", columns=("flow", "subscriber"))
    flow, user = texts_in(pairs["flow"]), texts_in(pairs["subscriber"])
    sieve_pairs = Sieve(interest, pairs.num_rows, quarantine)
    sieve_pairs.refuse(flow.is_null(), "flow is empty")
    sieve_pairs.refuse(user.is_null(), "subscriber is empty")
    index = pc.index_in(flow, value_set=flow_names).fill_null(-1).to_numpy().astype(np.int64)
    sieve_pairs.refuse(index < 0, "flow is not in the flows table")
    users, user_names = codes_of(user)
    sieve_pairs.refuse(repeats(index * (len(user_names) + 1) + users, sieve_pairs.good), "the pair appears twice")
    if not sieve_pairs.good.any():
        raise InputError(f"{interest}: nobody wants any flow, so there is nothing to plan", name="interest")
    users, kept = users[sieve_pairs.good], np.unique(users[sieve_pairs.good])
    return Interest.from_pairs(
        index[sieve_pairs.good],
        np.searchsorted(kept, users),
        rate[sieve.good],
        flow_names=flow_names.to_pylist(),
        user_names=[user_names[i] for i in kept],
    )


def read_tree(path: str | Path) -> Tree:
    """A tree from the table tree (node, parent; empty for the root), with optional columns of Tree.

    Optional: `link_cost`, `can_filter`, `users`. A tree with a broken row is no tree, so faults in
    its shape stop instead of being set aside.
    """
    import pyarrow.compute as pc

    table = read_table(path, name="tree", columns=("node", "parent"))
    sieve = Sieve(path, table.num_rows, Quarantine(strict=True))
    node, parent = texts_in(table["node"]), texts_in(table["parent"])
    sieve.refuse(node.is_null(), "node is empty")
    sieve.refuse(repeats(codes_of(node)[0]), "node appears twice")
    is_root = parent.is_null().to_numpy(zero_copy_only=False)
    parents = pc.index_in(parent, value_set=node, skip_nulls=True).fill_null(-1).to_numpy().astype(np.int64)
    sieve.refuse((parents < 0) & ~is_root, "parent is not a node")
    options: dict[str, Any] = {}
    for column in ("link_cost", "users"):
        if column in table.column_names:
            options[column] = numbers_in(table[column], sieve, column)
    if "can_filter" in table.column_names:
        options["can_filter"] = np.array([bool(v) for v in table["can_filter"].to_pylist()])
    return Tree(parents, names=node.to_pylist(), **options)


def read_demand(path: str | Path, tree: Tree, quarantine: Quarantine) -> tuple[Ints, Ints, Floats]:
    """(leaf, item, size per item) from the table demand (node, item, [size])."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = read_table(path, name="demand", columns=("node", "item"))
    node, item = texts_in(table["node"]), texts_in(table["item"])
    sieve = Sieve(path, table.num_rows, quarantine)
    names = pa.array(tree.names or (), pa.string())
    leaf = pc.index_in(node, value_set=names).fill_null(-1).to_numpy().astype(np.int64)
    sieve.refuse(node.is_null(), "node is empty")
    sieve.refuse(item.is_null(), "item is empty")
    sieve.refuse(leaf < 0, "node is not in the tree")
    sieve.refuse(~tree.is_leaf[np.maximum(leaf, 0)], "node is not a leaf")
    sizes = numbers_in(table["size"], sieve, "size") if "size" in table.column_names else np.ones(table.num_rows)
    sieve.refuse(sizes < 0, "size is negative")
    good = sieve.good
    _, first, index = np.unique(codes_of(item)[0][good], return_index=True, return_inverse=True)
    item_size = sizes[good][first]
    differs = np.flatnonzero(good)[item_size[index] != sizes[good]]
    if differs.size:
        at = int(differs[0])
        raise InputError(f"{path}, row {at + 1}: item {item[at]} has two sizes", name="size", got=float(sizes[at]))
    return leaf[good], np.asarray(index, dtype=np.int64), item_size


def texts_in(column: Any) -> Any:
    """A column of names as one Arrow array of strings; numbers become their text, empty text null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.cast(column, pa.string())
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text).combine_chunks()


def codes_of(texts: Any) -> tuple[Ints, list[str]]:
    """A number for each text, in the order of the texts, and the texts; null comes after all."""
    import pyarrow.compute as pc

    names = pc.drop_null(texts.unique())
    names = names.take(pc.sort_indices(names))
    codes = pc.index_in(texts, value_set=names).fill_null(len(names)).to_numpy()
    return codes.astype(np.int64), names.to_pylist()


def numbers_in(column: Any, sieve: Sieve, name: str) -> Floats:
    """A column as floats; what is no finite number is refused."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    else:
        values = np.array([_number(value) for value in column.to_pylist()], dtype=np.float64)
    sieve.refuse(~np.isfinite(values), f"{name} is not a number")
    return np.where(np.isfinite(values), values, 0.0)


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str) else np.nan
    except ValueError:
        return np.nan


def repeats(keys: Any, among: Bools | None = None) -> Bools:
    """True where a key stood before, in the order of the rows; rows not `among` are passed over."""
    rows = np.arange(len(keys)) if among is None else np.flatnonzero(among)
    _, first = np.unique(keys[rows], return_index=True)
    result = np.zeros(len(keys), np.bool_)
    result[rows] = True
    result[rows[first]] = False
    return result
