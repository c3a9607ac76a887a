"""The flow key: which attributes of a message make its flow. Chosen and checked before Spark starts."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TextIO

from narrowcast.errors import InputError
from narrowcast.model.stores import is_url, key_beside_url
from narrowcast.model.tables import ending, key_beside

# JSON lines beyond this many bytes are left to Spark: only reading all of them tells the columns.
MOST_JSON = 16 << 20


def chosen_key(asked: Sequence[str] | None, messages: str | Path | None) -> tuple[str, ...]:
    """The key as asked; for None what the manifest beside the messages says; () stands for content classes."""
    said = asked
    if asked is None and messages is not None:
        # A name of a table in Spark has nothing beside it.
        said = key_beside_url(messages) if is_url(messages) else key_beside(messages) if Path(messages).exists() else ()
    key = tuple(said or ())
    check_known(key, messages, "key")
    return key


def check_known(names: Iterable[str], messages: str | Path | None, what: str) -> None:
    """Refuse names that are no columns of the messages, where these can be known without Spark."""
    asked = list(names)
    columns = known_columns(messages) if messages is not None and asked else None
    if columns is not None:
        check_names(asked, columns, what)


def check_key(key: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a key that names something else than columns of the messages.

    >>> check_key(["symbl"], ["symbol", "price"])
    Traceback (most recent call last):
    narrowcast.errors.InputError: key must be columns of the messages, got 'symbl'; they have symbol, price (did you \
mean 'symbol'?)
    """
    check_names(key, columns, "key")


def check_names(names: Iterable[str], columns: Sequence[str], what: str) -> None:
    """Refuse names that are no columns, as `what` they were given for."""
    for name in names:
        if name not in columns:
            few = ", ".join(columns[:20]) + (f" and {len(columns) - 20:,} more" if len(columns) > 20 else "")
            near = nearest(name, columns)
            raise InputError(
                f"{what} must be columns of the messages, got {name!r}; they have {few}",
                name=what,
                allowed=tuple(columns),
                got=name,
                hint=f"did you mean {near!r}?" if near else None,
            )


def nearest(name: str, columns: Sequence[str]) -> str | None:
    """The column that was probably meant: the same in another case, else one spelt much alike.

    >>> nearest("SYMBOL", ["symbol", "price"]), nearest("prise", ["symbol", "price"]), nearest("x", ["symbol"])
    ('symbol', 'price', None)
    """
    folded = [column for column in columns if column.casefold() == name.casefold()]
    return next(iter(folded or get_close_matches(name, columns, n=1)), None)


def known_columns(source: str | Path) -> tuple[str, ...] | None:
    """The columns of a local table; None where only reading all of a large one tells, or it cannot be read."""
    path = Path(source)
    if path.is_dir():
        parts = sorted(part for part in path.iterdir() if not part.name.startswith((".", "_")))
        if not parts or any(part.is_dir() for part in parts):  # Spark takes columns from names of folders
            return None
        path = parts[0]
        if ".json" in ending(path.name):  # each part may have others
            return None
    form = ending(path.name)[1:].split(".")[0]
    reader = _READERS.get(form)
    try:
        return None if reader is None else reader(path)
    except (OSError, EOFError, ValueError, StopIteration):  # whoever reads it says what is wrong
        return None


def _parquet_columns(path: Path) -> tuple[str, ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def names(field: pa.Field) -> Iterable[str]:
        if not pa.types.is_struct(field.type):
            return (field.name,)
        return (f"{field.name}.{inner}" for each in field.type for inner in names(each))

    return tuple(dict.fromkeys(name for field in pq.read_schema(path) for name in names(field)))


def _csv_columns(path: Path) -> tuple[str, ...]:
    with _text(path, "utf-8-sig") as lines:
        return tuple(next(csv.reader(lines)))


def _json_columns(path: Path) -> tuple[str, ...] | None:
    """The keys of all lines that are objects, in the order they are first seen."""
    if path.stat().st_size > MOST_JSON or path.suffix in _OPENERS:
        return None
    found: dict[str, None] = {}
    with _text(path, "utf-8") as lines:
        if path.suffix == ".json" and lines.read(1) == "[":
            lines.seek(0)
            for row in json.load(lines):
                found |= dict.fromkeys(_names(row))
            return tuple(found) or None
        lines.seek(0)
        for line in lines:
            found |= dict.fromkeys(_keys(line))
    return tuple(found) or None


def _keys(line: str) -> Iterable[str]:
    try:
        return _names(json.loads(line))
    except ValueError:
        return ()


def _names(row: object) -> Iterable[str]:
    """The keys of an object, those of objects inside with dots between."""
    if not isinstance(row, dict):
        return ()
    return [
        name
        for key, value in row.items()
        for name in ([f"{key}.{inner}" for inner in _names(value)] if isinstance(value, dict) else [key])
    ]


def _text(path: Path, encoding: str) -> TextIO:
    opener: Callable[..., TextIO] = _OPENERS.get(path.suffix, open)  # type: ignore[assignment]
    return opener(path, "rt", encoding=encoding, newline="")


_OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
_READERS: dict[str, Callable[[Path], tuple[str, ...] | None]] = {
    "parquet": _parquet_columns,
    "csv": _csv_columns,
    **dict.fromkeys(("json", "jsonl", "ndjson"), _json_columns),
}
