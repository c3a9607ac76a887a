"""Reading the input tables on one machine, without Spark. Spark's own reader is in `data.ingest`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from narrowcast.errors import InputError

READABLE = (".parquet", ".csv", ".jsonl", ".json", ".ndjson")
MANIFEST = "manifest.json"
#: The flow key in the metadata of a Parquet file: a JSON list of attributes.
KEY = "narrowcast.key"


def as_table(given: Any, *, name: str, columns: Sequence[str] = ()) -> Any:
    """A pyarrow.Table from a path, a pyarrow.Table or a pandas DataFrame, checked as `read_table` checks a file.

    >>> import pyarrow as pa
    >>> as_table(pa.table({"flow": ["IBM"]}), name="flows", columns=("flow",)).num_rows
    1
    """
    import pyarrow as pa

    if isinstance(given, str | Path):
        return read_table(given, name=name, columns=columns)
    if isinstance(given, pa.Table):
        return _with_columns(given, f"{name} (a pyarrow.Table)", name, columns)
    if hasattr(given, "to_parquet") and hasattr(given, "iloc"):
        table = pa.Table.from_pandas(given, preserve_index=False).replace_schema_metadata(None)
        return _with_columns(table, f"{name} (a pandas DataFrame)", name, columns)
    raise InputError(
        f"{name} must be a path, a pyarrow.Table or a pandas DataFrame, got {type(given).__name__}",
        name=name,
        got=type(given).__name__,
    )


def read_table(path: str | Path, *, name: str, columns: Sequence[str] = ()) -> Any:
    """The pyarrow.Table in a Parquet, CSV or JSON-lines file, or in a folder of parts as Spark writes them.

    `name` says what the table is for; `columns` are those it must have. Anything that cannot be
    read is an InputError of one line.
    """
    source = Path(path)
    return _with_columns(_read(source, name), str(source), name, columns)


def _with_columns(table: Any, source: str, name: str, columns: Sequence[str]) -> Any:
    """The table, if it has these columns and none twice."""
    for column in columns:
        if column not in table.column_names:
            close = get_close_matches(column, table.column_names, n=1)
            raise InputError(
                f"{source}: the {name} table has no column {column!r}; it has {', '.join(table.column_names)}",
                name=column,
                allowed=tuple(table.column_names),
                hint=f"rename {close[0]!r} to {column!r}" if close else None,
            )
    if len(set(table.column_names)) != len(table.column_names):
        twice = sorted({c for c in table.column_names if table.column_names.count(c) > 1})
        raise InputError(f"{source}: column {twice[0]!r} appears more than once", name=twice[0])
    return table


def _read(source: Path, name: str) -> Any:
    import pyarrow as pa

    if not source.exists():
        raise InputError(f"{source}: no such file (the {name} table)", name=name, got=str(source))
    if source.is_dir():
        return pa.concat_tables([_read(part, name) for part in _parts(source, name)])
    if source.suffix not in READABLE:
        raise InputError(
            f"{source}: cannot tell the format of the {name} table from {source.suffix or 'no'} ending",
            name=name,
            allowed=READABLE,
            hint=f"name it {', '.join(READABLE[:3])}",
        )
    if source.stat().st_size == 0:
        raise InputError(f"{source}: the file is empty (the {name} table)", name=name, hint="a header is needed")
    try:
        return _READERS[source.suffix](source)
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{source}: not a readable {source.suffix[1:]} file: {reason}", name=name) from None


def _parts(folder: Path, name: str) -> list[Path]:
    """The part files of a folder that Spark wrote; any other folder is not a table."""
    parts = sorted(p for p in folder.iterdir() if p.name.startswith("part-") and p.suffix in READABLE)
    if not parts:
        inside = sorted((p.stem != name, p.name) for p in folder.iterdir() if p.suffix in READABLE)
        hint = f"did you mean {folder / inside[0][1]}?" if inside else None
        raise InputError(f"{folder}: a folder where the {name} file is expected", name=name, got=str(folder), hint=hint)
    return parts


def _parquet(source: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(source, partitioning=None)


def _csv(source: Path) -> Any:
    import pyarrow.csv as csv

    # An unquoted empty cell is null; '' in quotes stays an empty string.
    options = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""])
    return csv.read_csv(source, convert_options=options)


def _jsonl(source: Path) -> Any:
    import pyarrow.json as json

    return json.read_json(source)


_READERS = {".parquet": _parquet, ".csv": _csv, ".jsonl": _jsonl, ".json": _jsonl, ".ndjson": _jsonl}


def find_table(folder: str | Path, name: str) -> Path | None:
    """The table of that name in a folder: `flows.parquet`, `flows.csv`, …, or a folder `flows` of parts."""
    place = Path(folder)
    found = [path for path in (place / name, *(place / f"{name}{end}" for end in READABLE)) if path.exists()]
    if len(found) > 1:
        raise InputError(f"{place}: both {found[0].name} and {found[1].name} are the {name} table", name=name)
    return found[0] if found else None


def with_key(schema: Any, key: Sequence[str]) -> Any:
    """An Arrow schema that says which attributes of a message make its flow."""
    return schema.with_metadata(key_metadata(key))


def key_metadata(key: Sequence[str]) -> Mapping[str, str]:
    """The flow key as metadata of a Parquet file.

    >>> key_metadata(["symbol"])
    {'narrowcast.key': '["symbol"]'}
    """
    return {KEY: json.dumps(list(key))}


def key_in(schema: Any) -> tuple[str, ...] | None:
    """The flow key that an Arrow schema says; None if it says nothing of it."""
    text = (schema.metadata or {}).get(KEY.encode())
    return None if text is None else _key(f'{{"key": {text.decode()}}}', f"the metadata {KEY}")


def key_beside(table: str | Path) -> tuple[str, ...] | None:
    """The flow key that the manifest beside a table says; None if there is none, or it says nothing of it."""
    path = Path(table).parent / MANIFEST
    return _key(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else None


def key_of(table: str | Path) -> tuple[str, ...]:
    """The flow key that a table's file says, in its metadata or in the manifest beside it; () where nobody says."""
    import pyarrow.parquet as pq

    source = Path(table)
    inside = key_in(pq.read_schema(source)) if source.is_file() and source.suffix == ".parquet" else None
    return inside or key_beside(source) or ()


def _key(text: str, source: str) -> tuple[str, ...] | None:
    try:
        key = json.loads(text).get("key")
    except (ValueError, AttributeError) as error:
        raise InputError(f"{source}: not readable as JSON: {error}", name="key", got=source) from None
    if key is None:
        return None
    if not isinstance(key, list) or not all(isinstance(name, str) for name in key):
        raise InputError(f"{source}: key must be a list of attribute names, got {key!r}", name="key", got=key)
    return tuple(key)
