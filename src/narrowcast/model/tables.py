"""Reading the input tables on one machine, without Spark. Spark's own reader is in `data.ingest`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from narrowcast.errors import InputError
from narrowcast.model.text_files import check_text

READABLE = (".parquet", ".csv", ".jsonl", ".json", ".ndjson")
#: What text files may be packed with: Spark and Arrow unpack them by this ending.
PACKINGS = (".gz", ".bz2")
MANIFEST = "manifest.json"
#: The flow key in the metadata of a Parquet file: a JSON list of attributes.
KEY = "narrowcast.key"


def ending(name: str) -> str:
    """The ending of a file's name that says its format, of packed text too; "" where it says none.

    >>> ending("messages.csv.gz"), ending("flows.parquet"), ending("notes.txt")
    ('.csv.gz', '.parquet', '')
    """
    packing = next((p for p in PACKINGS if name.endswith(p)), "")
    form = Path(name.removesuffix(packing)).suffix
    return form + packing if form in READABLE and (form != ".parquet" or not packing) else ""


def local_path(given: str | Path, name: str) -> Path:
    """A place on this machine, also as file:///…; any other URL is an InputError.

    >>> local_path("file:///tmp/measured", "out").as_posix()
    '/tmp/measured'
    >>> local_path("s3a://bucket/measured", "out")
    Traceback (most recent call last):
    narrowcast.errors.InputError: out must be a folder on this machine, got s3a://bucket/measured (copy it from or to \
s3a with that store's own tools)
    """
    # A Path has made one slash of two.
    url = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", str(given))
    if url is None:
        return Path(given)
    scheme, rest = url.groups()
    if scheme.lower() == "file":
        return Path(f"/{unquote(rest)}")
    whole = f"{scheme}://{rest}"
    raise InputError(
        f"{name} must be a folder on this machine, got {whole}",
        name=name,
        got=whole,
        hint=f"copy it from or to {scheme} with that store's own tools",
    )


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
    counts = Counter(table.column_names)
    if len(counts) != table.num_columns:
        twice = min(column for column, count in counts.items() if count > 1)
        raise InputError(f"{source}: column {twice!r} appears more than once", name=twice)
    return table


def _read(source: Path, name: str) -> Any:
    import pyarrow as pa

    if not source.exists():
        raise InputError(f"{source}: no such file (the {name} table)", name=name, got=str(source))
    if source.is_dir():
        return _joined([_read(part, name) for part in _parts(source, name)], source, name)
    form = ending(source.name)
    if not form:
        raise InputError(
            f"{source}: cannot tell the format of the {name} table from the file extension {source.suffix!r}",
            name=name,
            allowed=READABLE,
            hint=f"name it {', '.join(READABLE[:3])}",
        )
    if source.stat().st_size == 0:
        raise InputError(f"{source}: the file is empty (the {name} table)", name=name, hint="a header is needed")
    check_text(source, name)
    try:
        return _READERS[Path(form).stem if form.endswith(PACKINGS) else form](source)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{source}: not a readable {form[1:]} file: {reason}", name=name) from None


def _parts(folder: Path, name: str) -> list[Path]:
    """The numbered files of a folder: part-00000-….parquet of Spark, data_0.parquet of DuckDB, and the like.

    Anything else in it is refused rather than passed over, but for names from . and _, which are no data.
    """
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    tables = [path for path in inside if path.is_file() and ending(path.name)]
    if not any(_is_part(path) for path in tables):
        named = sorted((path.name.removesuffix(ending(path.name)) != name, path.name) for path in tables)
        hint = f"did you mean {folder / named[0][1]}?" if named else None
        raise InputError(f"{folder}: a folder where the {name} file is expected", name=name, got=str(folder), hint=hint)
    if other := [path for path in inside if path not in tables or not _is_part(path)]:
        raise InputError(
            f"{folder}: {other[0].name} is no numbered part of the {name} table",
            name=name,
            got=other[0].name,
            hint="a folder of parts holds nothing else; partitioned ones are read by measure, on Spark",
        )
    return tables


def _is_part(path: Path) -> bool:
    return path.name.startswith("part-") or re.search(r"\d", path.name.removesuffix(ending(path.name))) is not None


def _joined(parts: list[Any], source: Path, name: str) -> Any:
    import pyarrow as pa

    try:
        return pa.concat_tables(parts)
    except pa.ArrowInvalid:
        raise InputError(f"{source}: the parts of the {name} table have different columns", name=name) from None


def _parquet(source: Path) -> Any:
    import pyarrow.parquet as pq

    table = pq.read_table(source, partitioning=None)
    table.column_names  # noqa: B018  names that are no text cannot be read either
    table.validate(full=True)  # what is not text, or lies beyond its buffer, would be found much later, or never
    return table


def _csv(source: Path) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _csv_cells(source, quoted_nulls=False)
    empty = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_string(column.type) and pc.any(pc.equal(column, "")).as_py()
    ]
    if not empty or len(set(table.column_names)) < table.num_columns:
        return table
    # A quoted empty cell is an empty text; but in a column of numbers or times it is null.
    again = _csv_cells(source, quoted_nulls=True, only=empty)
    for name in empty:
        if not pa.types.is_string(again[name].type) and not pa.types.is_null(again[name].type):
            table = table.set_column(table.column_names.index(name), name, again[name])
    return table


def _csv_cells(source: Path, *, quoted_nulls: bool, only: Sequence[str] = ()) -> Any:
    import pyarrow.csv as csv

    options = csv.ConvertOptions(
        strings_can_be_null=True, quoted_strings_can_be_null=quoted_nulls, null_values=[""], include_columns=list(only)
    )
    return csv.read_csv(source, convert_options=options)


def _jsonl(source: Path) -> Any:
    import pyarrow.json as json

    return json.read_json(source)


_READERS = {".parquet": _parquet, ".csv": _csv, ".jsonl": _jsonl, ".json": _jsonl, ".ndjson": _jsonl}


def find_table(folder: str | Path, name: str) -> Path | None:
    """The table of that name in a folder: `flows.parquet`, `flows.csv`, …, or a folder `flows` of parts."""
    place = Path(folder)
    endings = ("", *READABLE, *(f"{end}{packing}" for end in READABLE[1:] for packing in PACKINGS))
    found = [path for path in (place / f"{name}{end}" for end in endings) if path.exists()]
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
    return None if text is None else key_said(f'{{"key": {text.decode()}}}', f"the metadata {KEY}")


def key_beside(table: str | Path) -> tuple[str, ...] | None:
    """The flow key that the manifest beside a table says; None if there is none, or it says nothing of it."""
    path = Path(table).parent / MANIFEST
    return key_said(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else None


def key_of(table: str | Path) -> tuple[str, ...]:
    """The flow key that a table's file says, in its metadata or in the manifest beside it; () where nobody says."""
    import pyarrow.parquet as pq

    source = Path(table)
    inside = key_in(pq.read_schema(source)) if source.is_file() and source.suffix == ".parquet" else None
    return inside or key_beside(source) or ()


def key_said(text: str, source: str) -> tuple[str, ...] | None:
    """The flow key in the text of a manifest; None where it says nothing of it."""
    try:
        key = json.loads(text).get("key")
    except (ValueError, AttributeError) as error:
        raise InputError(f"{source}: not readable as JSON: {error}", name="key", got=source) from None
    if key is None:
        return None
    if not isinstance(key, list) or not all(isinstance(name, str) for name in key):
        raise InputError(f"{source}: key must be a list of attribute names, got {key!r}", name="key", got=key)
    return tuple(key)
