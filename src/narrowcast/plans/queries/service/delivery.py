"""Answers as files: a folder with, for each channel, its rows as Parquet and its header as JSON beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from narrowcast.errors import InputError
from narrowcast.plans.queries.service.answers import Answer, Header

MANIFEST = "manifest.json"


def channel_rows(folder: Path, channel: int) -> Path:
    """Where the rows of a channel are: a folder of Parquet parts."""
    return folder / f"channel-{channel:05d}.parquet"


def channel_header(folder: Path, channel: int) -> Path:
    """Where the header of a channel is."""
    return folder / f"channel-{channel:05d}.json"


def read_answers(folder: str | Path, client: str | None = None) -> Iterator[Answer]:
    """Every channel of a folder that `narrowcast answer` wrote, or those for one client, in order.

    What a client does with them, and no Spark is needed for it:

        me = Client("ann")
        for got in read_answers("answers", "ann"):
            me.receive(got)
        me.answers["q1"]
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = Path(folder)
    if not (place / MANIFEST).is_file():
        raise InputError(f"{place}: no complete answers here (no {MANIFEST} in it)", name="folder", got=str(place))
    for path in sorted(place.glob("channel-*.json")):
        header = Header.from_json(path.read_text(encoding="utf-8"))
        if client is None or client in header.clients:
            parts = sorted(channel_rows(place, header.channel).glob("part-*.parquet"))
            tables = [pq.read_table(part, partitioning=None).replace_schema_metadata(None) for part in parts]
            yield Answer(header, pa.concat_tables(tables))
