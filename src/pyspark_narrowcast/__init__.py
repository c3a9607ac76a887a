"""Spark loads packages of this name by itself: with it `format("narrowcast")` needs no registration."""

from narrowcast.deliver.spark.data_source import NarrowcastSource as DefaultSource

__all__ = ["DefaultSource"]
