"""`narrowcast publish`: messages from a file or from standard input."""

from __future__ import annotations

import json as json_lines
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from narrowcast.cli.deliver.running import HERE, SystemAt
from narrowcast.cli.output import AsJson, output, print_json
from narrowcast.errors import InputError
from narrowcast.model.tables import ending, read_table
from narrowcast.model.text_files import OPENERS, check_text

STEP = 1000
LINES = (".jsonl", ".json", ".ndjson")
Typed = Mapping[str, tuple[str, Callable[[Any], Any]]]


def publish(
    messages: Annotated[
        str, typer.Argument(help="The messages: Parquet, CSV or JSON lines; - reads JSON lines from standard input.")
    ] = "-",
    system: SystemAt = HERE,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Messages per second. Default: as fast as possible.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many messages.")] = None,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", help="Types of attributes: NAME=TYPE, as ts=timestamp. Default: those of the file."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Publish messages. When it returns, all of them are in the durable log.

    Values have the types of the Parquet file, those that a CSV column looks like, or those of JSON, whether lines
    come from a file or from standard input; and what --type says in any case.

    Examples:

        narrowcast publish market/messages.parquet --rate 500

        echo '{"symbol": "IBM", "price": 101}' | narrowcast publish
    """
    from narrowcast.deliver.client.connect import connect

    rows = islice(message_rows(messages, type), limit)
    step = STEP if rate is None else max(1, min(STEP, int(rate / 20)))
    sent, begun = 0, time.perf_counter()
    with connect(system) as connection:
        while chunk := list(islice(rows, step)):
            sent += connection.publish(chunk)
            if rate is not None:
                time.sleep(max(0.0, begun + sent / rate - time.perf_counter()))
    seconds = time.perf_counter() - begun
    if json:
        print_json({"messages": sent, "seconds": seconds})
    else:
        output.print(f"{sent:,} messages in the log after {seconds:.2f} s")


def message_rows(source: str, types: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The messages of a file, or with `-` of standard input; `types` are NAME=TYPE pairs."""
    return _typed(_rows(source), _types(types))


def _rows(source: str) -> Iterator[dict[str, Any]]:
    if source == "-":
        return _lines(sys.stdin, "standard input")
    path = Path(source)
    if path.is_file() and ending(path.name).startswith(LINES):
        return _file_lines(path)
    return _table_rows(path)


def _table_rows(path: Path) -> Iterator[dict[str, Any]]:
    for batch in read_table(path, name="messages").to_batches(max_chunksize=STEP):
        try:
            rows = batch.to_pylist()
        except (ValueError, OverflowError) as error:  # Arrow has moments that Python has not
            raise InputError(f"{path}: a value of the messages table: {error}", name="messages") from None
        for row in rows:
            yield {name: value for name, value in row.items() if value is not None}


def _file_lines(path: Path) -> Iterator[dict[str, Any]]:
    check_text(path, "messages")
    try:
        with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as lines:  # type: ignore[operator]
            yield from _lines(lines, str(path))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a readable file of JSON lines: {error}", name="messages") from None


def _lines(lines: Iterable[str], source: str) -> Iterator[dict[str, Any]]:
    """Each line as JSON has it: the same wherever it comes from."""
    for number, line in enumerate(_decoded(lines, source), 1):
        text = line.strip().removeprefix("\ufeff")
        if text:
            try:
                row = json_lines.loads(text)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{source}, line {number}: not JSON: {error}", name="messages") from None
            if not isinstance(row, dict):
                raise InputError(f"{source}, line {number}: must be a JSON object", name="messages", got=line)
            yield row


def _decoded(lines: Iterable[str], source: str) -> Iterator[str]:
    try:
        yield from lines
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: must be UTF-8, got {error}", name="messages") from None


def _types(given: list[str] | None) -> Typed:
    from narrowcast.cli.spark import types

    return {name: (kind, _TYPES[kind]) for name, kind in (types(given) or {}).items()}


def _typed(rows: Iterator[dict[str, Any]], types: Typed) -> Iterator[dict[str, Any]]:
    """Rows with the types that were asked for."""
    if not types:
        yield from rows
        return
    for number, row in enumerate(rows, 1):
        for name, (kind, convert) in types.items():
            value = row.get(name)
            if value is not None:
                try:
                    row[name] = convert(value)
                except (ValueError, TypeError, OverflowError):
                    raise InputError(
                        f"message {number}: {name} must be a {kind}, got {value!r}", name=name, got=value
                    ) from None
        yield row


def _moment(value: Any) -> datetime:
    """From text of ISO 8601, in UTC unless it says otherwise; or from seconds since 1970."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)
    found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _whole(value: Any) -> int:
    if int(value) != value and not isinstance(value, str):
        raise ValueError
    return int(value)


def _truth(value: Any) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError
    return str(value).lower() == "true"


_TYPES: dict[str, Callable[[Any], Any]] = {
    "bigint": _whole,
    "double": float,
    "string": str,
    "boolean": _truth,
    "timestamp": _moment,
    "date": _moment,
}
