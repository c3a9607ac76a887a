"""Small tables without a fault, taken in at the driver with Arrow: no job, no worker, the same rows.

Only what Spark's way would accept as it stands is taken in here. A doubtful cell, a second row of a key, text that
is not written plainly: anything but a clean table of a few megabytes is left to Spark (`take_in`), which says what
is wrong with which row. So both ways agree by having one of them judge.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrowcast.data.ingest.read import BROKEN, FILE, ROW
from narrowcast.data.ingest.tables import SPECS, Column, TableSpec
from narrowcast.errors import InputError
from narrowcast.model.tables import ending

if TYPE_CHECKING:
    import pyarrow as pa

    from narrowcast.profiles import Profile

# Bytes of a file, and of its columns unpacked; rows.
MOST_BYTES, MOST_UNPACKED, MOST_ROWS = 32 << 20, 256 << 20, 2_000_000
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,20})?([eE][+-]?\d{1,2})?")
_CELL = re.compile(r'(?:"((?:[^"]|"")+)"|([^",\n]*))(,|\n|\Z)')
_PLAIN_NAME = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, eq=False)
class CleanTable:
    """A table with its columns typed, every row good; `profiles` are its profiles by their texts."""

    table: pa.Table
    columns: tuple[str, ...]
    profiles: Mapping[str, Profile]

    def numbered(self) -> pa.Table:
        """The table with the place of each row, as Spark's way gives it."""
        import pyarrow as pa

        n = self.table.num_rows
        place = {FILE: pa.repeat("", n), ROW: pa.array(range(1, n + 1), pa.int64())}
        return pa.table({**{name: self.table[name] for name in self.columns}, **place})

    @property
    def uses(self) -> frozenset[tuple[str, str]]:
        """The attributes that profiles name, each with the kind it is compared with, or ""."""
        return frozenset((name, p.kinds.get(name, "")) for p in self.profiles.values() for name in p.attributes)


class _DoubtError(Exception):
    """Spark should look at this table."""


def clean_tables(sources: Mapping[str, str | Path]) -> dict[str, CleanTable]:
    """Those of the tables that are small, on this machine and without a fault; never messages."""
    taken: dict[str, CleanTable] = {}
    for name, described in SPECS.items():
        if name in sources and not described.free:
            try:
                taken[name] = _clean(Path(sources[name]), described, sources, taken)
            except (_DoubtError, InputError, OSError, ValueError, NotImplementedError, RecursionError):
                continue
    return taken


def _clean(
    path: Path, described: TableSpec, sources: Mapping[str, str | Path], taken: Mapping[str, CleanTable]
) -> CleanTable:
    _sure(path.is_file() and path.stat().st_size <= MOST_BYTES)
    raw = _READERS.get(ending(path.name), _refuse)(path, described)
    _sure(0 < raw.num_rows <= MOST_ROWS)
    names = raw.column_names
    _sure(len({*names}) == len(names) and not {FILE, ROW, BROKEN} & {*names})
    table = _typed(raw, described)
    for column in described.columns:
        if column.name in names:
            _check(table[column.name], column)
    _check_key(table, described)
    _check_known(table, described, sources, taken)
    if described.name == "tree":
        _check_tree(table)
    return CleanTable(table, tuple(names), _profiles(table, described))


def _sure(holds: bool) -> None:
    if not holds:
        raise _DoubtError


def _refuse(path: Path, described: TableSpec) -> pa.Table:
    raise _DoubtError


def _parquet(path: Path, described: TableSpec) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        about = file.metadata
        size = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        _sure(about.num_rows <= MOST_ROWS and size <= MOST_UNPACKED)
        table: pa.Table = file.read().replace_schema_metadata(None)
    table.validate(full=True)
    return table


def _csv(path: Path, described: TableSpec) -> pa.Table:
    """Text of which every cell stands plainly between commas, or in quotes as a whole."""
    import pyarrow as pa

    text = path.read_bytes().decode("utf-8")
    _sure("\x00" not in text and "\r" not in text and not text.startswith("\ufeff"))
    rows: list[list[str | None]] = [[]]
    at, end = 0, len(text.removesuffix("\n"))
    while at <= end:
        cell = _CELL.match(text, at)
        if cell is None:
            raise _DoubtError
        quoted, plain, after = cell.groups()
        rows[-1].append(quoted.replace('""', '"') if quoted else plain or None)
        at = cell.end()
        if not after or (after == "\n" and at > end):
            break
        if after == "\n":
            rows.append([])
    names = [name or "" for name in rows[0]]
    _sure(all(len(row) == len(names) > 1 for row in rows) and len({*names}) == len(names))
    _sure(all(name.strip() and "`" not in name for name in names))
    cells: Iterable[Any] = zip(*rows[1:], strict=True) if rows[1:] else ([] for _ in names)
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, cells, strict=True)})


class _Number(str):
    """A number as JSON has it."""


def _json(path: Path, described: TableSpec) -> pa.Table:
    import pyarrow as pa

    text = path.read_bytes().decode("utf-8")
    _sure("\x00" not in text and "\r" not in text)
    decode = json.JSONDecoder(
        object_pairs_hook=_once, parse_int=_Number, parse_float=_Number, parse_constant=_constant
    ).decode
    rows = [decode(line) for line in text.split("\n") if line.strip(" ")]
    _sure(all(isinstance(row, dict) for row in rows))
    names = sorted({name for row in rows for name in row})
    amounts = {column.name for column in described.columns if column.type == "amount"}
    columns = {}
    for name in names:
        kind = _Number if name in amounts else str
        cells = [row.get(name) for row in rows]
        _sure(_PLAIN_NAME.fullmatch(name) is not None and all(type(cell) in (kind, type(None)) for cell in cells))
        columns[name] = pa.array(cells, pa.string())
    return pa.table(columns)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    _sure(len(found) == len(pairs))
    return found


def _constant(_: str) -> Any:
    raise _DoubtError


_READERS: dict[str, Callable[[Path, TableSpec], Any]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), _json),
}


def _typed(raw: pa.Table, described: TableSpec) -> pa.Table:
    """Names as text and amounts as numbers; columns without a meaning stay if Spark has the same type."""
    import pyarrow as pa
    import pyarrow.types as t

    mine = {column.name: column for column in described.columns}
    _sure(all(column.name in raw.column_names for column in described.columns if column.required))
    columns = {}
    for name in raw.column_names:
        cells, column = raw[name], mine.get(name)
        if t.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        kind = cells.type
        if t.is_large_string(kind):
            cells, kind = cells.cast(pa.string()), pa.string()
        if column is None:
            _sure(t.is_string(kind) or kind in (pa.int32(), pa.int64(), pa.float64(), pa.bool_()))
        elif column.type == "amount":
            _sure(t.is_string(kind) or t.is_signed_integer(kind) or kind == pa.float64())
            cells = _amounts(cells) if t.is_string(kind) else cells.cast(pa.float64(), safe=False)
        else:
            _sure(t.is_string(kind) or t.is_signed_integer(kind))
            cells = cells.cast(pa.string())
        columns[name] = cells
    return pa.table(columns)


def _amounts(cells: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    texts = cells.to_pylist()
    _sure(all(text is None or _NUMBER.fullmatch(text) for text in texts))
    return pa.array([None if text is None else float(text) for text in texts], pa.float64())


def _check(cells: pa.ChunkedArray, column: Column) -> None:
    import pyarrow.compute as pc

    _sure(column.may_be_null or cells.null_count == 0)
    if column.type == "amount":
        ends = pc.min_max(cells).as_py()
        low, high = ends["min"], ends["max"]
        if low is None:
            return
        _sure(pc.all(pc.is_finite(cells)).as_py() and math.isfinite(low) and math.isfinite(high))
        _sure(column.least is None or low >= column.least)
        _sure(column.above is None or low > column.above)
        return
    if not column.may_be_null:
        _sure(not pc.any(pc.equal(pc.utf8_trim_whitespace(cells), "")).as_py())
    if column.one_of is not None:
        _sure({*cells.unique().to_pylist()} <= {*column.one_of})


def _check_key(table: pa.Table, described: TableSpec) -> None:
    if described.name == "topology":
        _sure(all(u != v for u, v in zip(table["u"].to_pylist(), table["v"].to_pylist(), strict=True)))
    keys: Iterable[Any] = zip(*(table[name].to_pylist() for name in described.key), strict=True)
    if described.unordered_key:
        keys = (tuple(sorted(key)) for key in keys)
    _sure(len({*keys}) == table.num_rows)


def _check_known(
    table: pa.Table, described: TableSpec, sources: Mapping[str, str | Path], taken: Mapping[str, CleanTable]
) -> None:
    for column, other, names in described.known:
        if column in table.column_names and other in sources:
            _sure(other in taken)
            known = {*taken[other].table[names].to_pylist(), None}
            _sure({*table[column].unique().to_pylist()} <= known)
    if described.name == "demand" and "tree" in sources:
        inner = {*taken["tree"].table["parent"].to_pylist()}
        _sure(inner.isdisjoint(table["node"].unique().to_pylist()))


def _check_tree(table: pa.Table) -> None:
    """One root, to which every node leads."""
    nodes, parents = (table[name].to_pylist() for name in ("node", "parent"))
    above = {node: parent for node, parent in zip(nodes, parents, strict=True) if parent and parent.strip()}
    _sure(len(above) == len(nodes) - 1)
    reached = {node for node in nodes if node not in above}
    for node in nodes:
        way = set()
        while node not in reached:
            way.add(node)
            _sure(node in above and above[node] not in way)
            node = above[node]
        reached |= way


def _profiles(table: pa.Table, described: TableSpec) -> dict[str, Profile]:
    from narrowcast.profiles import Profile

    if not any(column.type == "profile" for column in described.columns):
        return {}
    parsed = {text: Profile.parse(text) for text in table["profile"].unique().to_pylist()}
    if described.name == "queries":
        from narrowcast.plans.queries.intake import check_range

        for profile in parsed.values():
            check_range(profile)
    return parsed
