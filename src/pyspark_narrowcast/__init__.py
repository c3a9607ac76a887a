"""Spark loads packages of this name by itself: with it `format("narrowcast")` needs no registration."""

import pyspark

NEEDED = (4, 3)  # earlier versions lack Arrow writers and admission control for Python data sources

if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < NEEDED:
    raise ImportError(f"the format narrowcast needs PySpark 4.3 or newer, got {pyspark.__version__}")

from narrowcast.deliver.spark.data_source import NarrowcastSource as DefaultSource  # noqa: E402

__all__ = ["DefaultSource"]
