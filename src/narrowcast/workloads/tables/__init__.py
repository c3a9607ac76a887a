"""Workloads as tables on disk, of any size, so that a pipeline has real work."""

from narrowcast.workloads.tables.write import FORMATS, TABLES, WrittenTable, write

__all__ = ["FORMATS", "TABLES", "WrittenTable", "write"]
