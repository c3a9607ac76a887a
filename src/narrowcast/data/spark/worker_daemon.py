"""Forks the Python workers of a command's own session: what they all need is imported once, before the first.

Spark starts it in place of `pyspark.daemon` (`spark.python.daemon.module`). Arrow imports pandas at its first array,
if there is one, only to know its types; no worker of a command ever sees one, so here there is none.
"""

from __future__ import annotations

import sys
from typing import Any


class NoPandas:
    """Finds no pandas, wherever it is."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("workers of narrowcast's commands do without pandas", name=name)


if __name__ == "__main__":
    sys.meta_path.insert(0, NoPandas())

    import pyarrow.compute  # noqa: F401
    from pyspark.daemon import manager

    import narrowcast.data.statistics.match
    import narrowcast.profiles.match.matcher  # noqa: F401

    manager()
