"""How much each range query returns: exactly, and as a grid from which any box can be estimated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.statistics.match import partials
from narrowcast.data.statistics.partials import BYTE, PROFILE
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.profiles import Matcher


def query_sizes(messages: DataFrame, queries: DataFrame, matcher: Matcher) -> DataFrame:
    """Table `query_sizes`: query, client, messages and bytes that each query returns, exactly.

    `queries` has the columns query, client and profile, the number of its profile in the matcher.
    """
    sums = partials(messages, matcher, key=None, overlap=False, classes=False)
    found = (
        sums.where(F.col("kind") == PROFILE)
        .groupBy("a")
        .agg(F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes"))
    )
    named = queries.select("query", "client", "profile").join(
        found.withColumnRenamed("a", "profile"), "profile", "left"
    )
    filled = named.na.fill(0, ["messages", "bytes"])
    return filled.select("query", "client", "messages", (F.col("bytes") / F.lit(float(BYTE))).alias("bytes"))


def grid(messages: DataFrame, attributes: Sequence[str], *, cells: int = 32) -> DataFrame:
    """Table `grid`: a histogram with `cells` steps along each attribute: messages and bytes per cell.

    Only cells with something in them; `lat_cell`, `lat_low` and `lat_high` say where a cell is along
    lat. Cells hold their low end, the last one both ends. A message that lacks an attribute is in none.
    """
    if cells < 1:
        raise InputError(f"cells must be at least 1, got {cells}", name="cells", got=cells)
    for name in attributes:
        if name not in messages.columns:
            raise InputError(f"grid must be attributes of the messages, got {name!r}", name="grid", got=name)
    finite = [F.col(f"`{a}`").try_cast("double") for a in attributes]
    usable = [c.isNotNull() & ~F.isnan(c) & (F.abs(c) != float("inf")) for c in finite]
    held = messages.where(reduce(lambda a, b: a & b, usable)) if usable else messages
    bounds = held.agg(
        *(f(c).alias(f"{f.__name__}{i}") for i, c in enumerate(finite) for f in (F.min, F.max))
    ).collect()[0]
    size = F.coalesce(F.col("size"), F.lit(0.0)) if "size" in messages.columns else F.lit(0.0)
    chosen, shown = [], []
    for i, (name, value) in enumerate(zip(attributes, finite, strict=True)):
        low, high = bounds[f"min{i}"] or 0.0, bounds[f"max{i}"] or 0.0
        step = (high - low) / cells or 1.0
        at = F.least(F.floor((value - F.lit(low)) / F.lit(step)), F.lit(cells - 1)).alias(f"{name}_cell")
        chosen.append(at)
        shown.append(F.col(f"`{name}_cell`"))
        shown.append((F.lit(low) + F.col(f"`{name}_cell`") * F.lit(step)).alias(f"{name}_low"))
        shown.append((F.lit(low) + (F.col(f"`{name}_cell`") + 1) * F.lit(step)).alias(f"{name}_high"))
    counted = held.select(*chosen, F.rint(size * BYTE).cast("bigint").alias("bytes")).groupBy(
        *(f"`{a}_cell`" for a in attributes)
    )
    sums = counted.agg(F.count("*").alias("messages"), F.sum("bytes").alias("bytes"))
    return sums.select(*shown, "messages", (F.col("bytes") / F.lit(float(BYTE))).alias("bytes"))
