"""Reading the input tables on one machine, without Spark. Spark's own reader is in `pipeline`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from narrowcast.errors import InputError

READABLE = (".parquet", ".csv", ".jsonl", ".json", ".ndjson")


def read_table(path: str | Path, *, name: str, columns: Sequence[str] = ()) -> Any:
    """The pyarrow.Table in a Parquet, CSV or JSON-lines file, or in a folder of parts as Spark writes them.

    `name` says what the table is for; `columns` are those it must have. Anything that cannot be
    read is an InputError of one line.
    """
    source = Path(path)
    table = _read(source, name)
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
