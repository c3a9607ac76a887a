"""The columns that profiles need, found in a table and of a type they can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

import pyarrow as pa

from narrowcast.errors import InputError
from narrowcast.profiles.match.codes import kind_of
from narrowcast.profiles.match.compiled import Use

_HINTS = {
    "number": "cast the column to a number type, or quote the constant",
    "string": "cast the column to string, or write the constant without quotes",
    "boolean": "cast the column to boolean",
    "timestamp": "cast the column to timestamp",
}


def columns_of(
    table: pa.Table | pa.RecordBatch, uses: Mapping[str, Sequence[Use]], missing: Literal["error", "null"]
) -> dict[str, pa.ChunkedArray]:
    """The column of every attribute. A missing one, a name given twice or a wrong type is an error."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise InputError(
            f"messages must be a pyarrow.Table or RecordBatch, got {type(table).__name__}",
            name="table",
            hint="pa.Table.from_pylist or pa.Table.from_pandas makes one",
        )
    if missing not in ("error", "null"):
        raise InputError(f"missing must be 'error' or 'null', got {missing!r}", name="missing", got=missing)
    columns = {}
    for name, used in uses.items():
        places = table.schema.get_all_field_indices(name)
        if len(places) > 1:
            raise InputError(
                f"the table has {len(places)} columns named {name!r}", name=name, hint="rename all but one"
            )
        if places:
            columns[name] = table.column(places[0])
            _check_type(name, columns[name].type, used)
        elif missing == "null":
            columns[name] = pa.chunked_array([pa.nulls(table.num_rows)])
        else:
            raise _absent(name, table.column_names)
    return columns


def _absent(name: str, present: list[str]) -> InputError:
    close = get_close_matches(name, present, n=3, cutoff=0.5)
    folded = [other for other in present if other.casefold() == name.casefold()]
    return InputError(
        f"the table has no column {name!r}, which profiles use",
        name=name,
        allowed=present,
        hint=f"did you mean {' or '.join(map(repr, folded or close))}?"
        if folded or close
        else "missing='null' takes it as null",
    )


def _check_type(name: str, type_: pa.DataType, uses: Sequence[Use]) -> None:
    kind = kind_of(type_)
    for use in uses:
        if kind not in (use.kind, "null"):
            text = use.text if len(use.text) <= 120 else use.text[:117] + "..."
            raise InputError(
                f"column {name!r} has type {type_}, but profile {use.profile} compares it with a {use.kind}: {text}",
                name=name,
                got=str(type_),
                allowed=use.kind,
                hint=_HINTS[use.kind],
            )


def _without_views(coded: pa.DictionaryArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(pa.large_string()))


def array_of(column: pa.ChunkedArray) -> pa.Array:
    """A chunked column as one array of a type that Arrow can take from and encode."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
        plain = pa.dictionary(column.type.index_type, pa.large_string())
        column = pa.chunked_array([_without_views(chunk) for chunk in column.chunks], plain)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
