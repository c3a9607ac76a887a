"""The data source `narrowcast` for Spark. The runtime says how the log is found and opened."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from narrowcast.deliver.spark.options import ReadOptions, WriteOptions
from narrowcast.deliver.spark.port import LogPort, Place
from narrowcast.deliver.spark.rows import DEFAULT_SCHEMA
from narrowcast.deliver.spark.sink import LogStreamWriter, LogWriter
from narrowcast.deliver.spark.source import LogReader, LogStreamReader, Scan
from narrowcast.errors import InputError


class LogDataSource(DataSource):
    """Reads and writes the durable log. A subclass says how it is found and opened."""

    @staticmethod
    def locate(url: str | None) -> str:
        """The URL for the option `url`, as the driver understands it, for workers elsewhere."""
        raise NotImplementedError

    @staticmethod
    def open(place: Place) -> LogPort:
        raise NotImplementedError

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
        return LogWriter(self._place(), type(self).open, options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LogStreamWriter:  # noqa: N802
        _append_only(overwrite)
        options = WriteOptions.of(self.options)
        return LogStreamWriter(self._place(), type(self).open, options)

    def _scan(self, schema: StructType) -> Scan:
        options = ReadOptions.of(self.options)
        return Scan(self._place(), type(self).open, schema, options)

    def _place(self) -> Place:
        return Place(type(self).locate(self.options.get("url")), self.options.get("system", "nc"))


def _append_only(overwrite: bool) -> None:
    if overwrite:
        raise InputError("what was sent cannot be taken back", name="mode", hint='use mode("append")')
