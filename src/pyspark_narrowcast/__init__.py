"""Spark loads packages of this name by itself: with it `format("narrowcast")` needs no registration."""

from narrowcast.deliver.spark.log import NarrowcastSource as DefaultSource

__all__ = ["DefaultSource"]
