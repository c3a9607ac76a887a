"""`narrowcast publish`: messages from a file or from standard input."""

from __future__ import annotations

import json as json_lines
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from narrowcast.cli.deliver.running import HERE, SystemAt
from narrowcast.cli.output import AsJson, output, print_json

STEP = 1000


def publish(
    messages: Annotated[
        str, typer.Argument(help="The messages: Parquet, CSV or JSON lines; - reads JSON lines from standard input.")
    ] = "-",
    system: SystemAt = HERE,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Messages per second. Default: as fast as possible.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many messages.")] = None,
    json: AsJson = False,
) -> None:
    """Publish messages. When it returns, all of them are in the durable log.

    Examples:

        narrowcast publish market/messages.parquet --rate 500

        echo '{"symbol": "IBM", "price": 101}' | narrowcast publish
    """
    from narrowcast.deliver.client.connect import connect

    rows = islice(_rows(messages), limit)
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


def _rows(source: str) -> Iterator[dict[str, Any]]:
    if source == "-":
        yield from _lines()
        return
    from narrowcast.errors import InputError
    from narrowcast.model.tables import read_table

    for batch in read_table(Path(source), name="messages").to_batches(max_chunksize=STEP):
        try:
            rows = batch.to_pylist()
        except (ValueError, OverflowError) as error:  # Arrow has moments that Python has not
            raise InputError(f"{source}: a value of the messages table: {error}", name="messages") from None
        for row in rows:
            yield {name: value for name, value in row.items() if value is not None}


def _lines() -> Iterator[dict[str, Any]]:
    from narrowcast.errors import InputError

    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            try:
                row = json_lines.loads(line)
            except ValueError as error:
                raise InputError(f"standard input, line {number}: not JSON: {error}", name="messages") from None
            if not isinstance(row, dict):
                raise InputError(f"standard input, line {number}: must be a JSON object", name="messages", got=line)
            yield row
