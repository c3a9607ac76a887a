"""The flow key: which attributes of a message make its flow. Chosen and checked before Spark starts."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from narrowcast.errors import InputError
from narrowcast.model.tables import key_beside


def chosen_key(asked: Sequence[str] | None, messages: str | Path | None) -> tuple[str, ...]:
    """The key as asked; for None what the manifest beside the messages says; () stands for content classes."""
    said = key_beside(messages) if asked is None and messages is not None else asked
    key = tuple(said or ())
    columns = None if messages is None else known_columns(messages)
    if columns is not None:
        check_key(key, columns)
    return key


def check_key(key: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a key that names something else than columns of the messages.

    >>> check_key(["symbl"], ["symbol", "price"])
    Traceback (most recent call last):
    narrowcast.errors.InputError: key must be columns of the messages, got 'symbl'; they have symbol, price (did you \
mean 'symbol'?)
    """
    for name in key:
        if name not in columns:
            near = get_close_matches(name, columns, n=1)
            raise InputError(
                f"key must be columns of the messages, got {name!r}; they have {', '.join(columns)}",
                name="key",
                allowed=tuple(columns),
                got=name,
                hint=f"did you mean {near[0]!r}?" if near else None,
            )


def known_columns(source: str | Path) -> tuple[str, ...] | None:
    """The columns of a local Parquet or CSV table; None where only reading all of it tells, or it cannot be read."""
    path = Path(source)
    if path.is_dir():
        parts = sorted(part for part in path.iterdir() if not part.name.startswith((".", "_")))
        if not parts or any(part.is_dir() for part in parts):  # Spark takes columns from names of folders
            return None
        path = parts[0]
    reader = {".parquet": _parquet_columns, ".csv": _csv_columns}.get(path.suffix)
    try:
        return None if reader is None else reader(path)
    except (OSError, ValueError, StopIteration):  # whoever reads it says what is wrong
        return None


def _parquet_columns(path: Path) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    return tuple(pq.read_schema(path).names)


def _csv_columns(path: Path) -> tuple[str, ...]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return tuple(next(csv.reader(lines)))
