"""Bad rows beside a plan, as plans made without Spark have them: file, row and reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from narrowcast.data.ingest.take_in import Ingested, quarantined
from narrowcast.data.spark.output import pieces, write_pieces
from narrowcast.model.quarantine import SCHEMA


def write_set_aside(tables: Mapping[str, Ingested], path: Path) -> int:
    """All bad rows of these tables in one Parquet file, by file and row; how many. No file for none."""
    if not any(table.n_quarantined for table in tables.values()):
        return 0
    spark = next(iter(tables.values())).rows.sparkSession
    rows = quarantined(tables, spark).select(*SCHEMA)
    return write_pieces(pieces(rows, ["file", "row"]), path)
