"""Spark loads packages of this name by itself: with it `format("narrowcast")` needs no registration."""

from narrowcast.runtime.spark_log import NarrowcastSource as DefaultSource

__all__ = ["DefaultSource"]
