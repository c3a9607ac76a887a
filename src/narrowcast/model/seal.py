"""A plan's content in a few digests, so that a plan that was checked can be told from one changed since.

The digests in `plan.json` are of files and change with them when a plan is written again. The seal is of the
content: it is set once, when the plan was found sound, and stays what it was.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from narrowcast.model.folder import plain
from narrowcast.model.plan import Tables

HEAD = ("kind", "seed", "parameters", "inputs", "cost", "baselines", "lower_bound", "gap")
SINCE_2 = ("key",)  # plans of format 1 have none, and were sealed without


def seal(plan: Tables) -> dict[str, str]:
    """A SHA-256 of each table's content and, under `plan`, of all that stands in `plan.json`. O(cells).

    >>> import pyarrow as pa
    >>> plan = Tables("filters", {"trees": pa.table({c: ["w"] for c in ("node", "parent", "flow", "load")}),
    ...                           "filters": pa.table({"node": ["w"]})}, cost={})
    >>> sorted(seal(plan))
    ['filters', 'plan', 'trees']
    """
    head = {name: getattr(plan, name) for name in HEAD}
    head |= {name: list(getattr(plan, name)) for name in SINCE_2 if getattr(plan, name)}
    text = json.dumps(head, sort_keys=True, default=plain)
    digests = {name: _of_table(table) for name, table in plan.tables.items()}
    return digests | {"plan": hashlib.sha256(text.encode()).hexdigest()}


def changed_since_sealed(plan: Tables) -> list[str]:
    """The tables (and `plan` for its head) that are not those that were sealed; empty without a seal."""
    sealed = plan.checks.get("seal")
    if not isinstance(sealed, dict):
        return []
    found = seal(plan)
    return sorted(name for name in found.keys() | sealed.keys() if found.get(name) != sealed.get(name))


def _of_table(table: Any) -> str:
    """Columns in the order of their names; each by its type, its nulls and its values."""
    digest = hashlib.sha256()
    for name in sorted(table.column_names):
        column = table[name]
        digest.update(f"{name}\0{_kind(column.type)}\0{len(column)}\0".encode())
        digest.update(column.is_null().combine_chunks().to_numpy(zero_copy_only=False).tobytes())
        digest.update(_values(column))
    return digest.hexdigest()


def _kind(kind: Any) -> str:
    """A type's name; what a list calls its items changes on the way through a file."""
    import pyarrow as pa

    return f"list of {_kind(kind.value_type)}" if pa.types.is_list(kind) else str(kind)


def _values(column: Any) -> bytes:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        result: bytes = column.fill_null(0).to_numpy().tobytes()
        return result
    # Lengths keep apart what would run together.
    parts = [str(value).encode() for value in column.to_pylist() if value is not None]
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])
