"""The data source `narrowcast` for Spark: the log is found by a URL or data folder.

`format("narrowcast")` works wherever narrowcast is installed, since Spark looks for packages named
`pyspark_…`; `register(spark)` does it for a session that was started before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from narrowcast.deliver.processes.backbone import url_of
from narrowcast.deliver.spark.log import Place
from narrowcast.deliver.spark.options import ReadOptions, WriteOptions
from narrowcast.deliver.spark.rows import DEFAULT_SCHEMA
from narrowcast.deliver.spark.sink import LogStreamWriter, LogWriter
from narrowcast.deliver.spark.source import LogReader, LogStreamReader, Scan
from narrowcast.errors import InputError


class NarrowcastSource(DataSource):
    """`format("narrowcast")`: reads and writes the durable log."""

    @classmethod
    def name(cls) -> str:
        return "narrowcast"

    def schema(self) -> str:
        return DEFAULT_SCHEMA

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(self._scan(schema))

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802
        return LogStreamReader(self._scan(schema))

    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:
        _append_only(overwrite)
        options = WriteOptions.of(self.options)
        return LogWriter(self._place(), options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LogStreamWriter:  # noqa: N802
        _append_only(overwrite)
        options = WriteOptions.of(self.options)
        return LogStreamWriter(self._place(), options)

    def _scan(self, schema: StructType) -> Scan:
        options = ReadOptions.of(self.options)
        return Scan(self._place(), schema, options)

    def _place(self) -> Place:
        """The URL as the driver understands it, for workers elsewhere."""
        url = self.options.get("url")
        where = url if url is None or "://" in url else Path(url).absolute()
        return Place(url_of(where), self.options.get("system", "nc"))


def register(spark: Any) -> None:
    """Make `format("narrowcast")` known to a Spark session that does not find it by itself."""
    spark.dataSource.register(NarrowcastSource)


def _append_only(overwrite: bool) -> None:
    if overwrite:
        raise InputError(
            "mode must be append, got overwrite: messages that were sent cannot be taken back",
            name="mode",
            hint='use mode("append")',
        )
