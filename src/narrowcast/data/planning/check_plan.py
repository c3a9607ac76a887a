"""A channels plan judged from its tables by Spark: who is left out, what it costs. For plans too large for `evaluate`.

Nothing here comes from the clustering: the tables are joined as the network would obey them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812


def plan_faults(tables: Mapping[str, DataFrame]) -> list[str]:
    """Every kind of fault with how often it occurs; an empty list is a sound plan."""
    placed = tables["flow_session"].join(tables["session_group"], "session", "left")
    joins = tables["subscriber_group"]
    got = tables["interest"].select("flow", "subscriber").join(placed, "flow", "left")
    reached = got.join(joins.withColumn("_joined", F.lit(True)), ["subscriber", "group"], "left")
    needless = joins.join(got.select("subscriber", "group").distinct(), ["subscriber", "group"], "left_anti")
    flows = tables["flow_session"]
    unused = tables["session_group"].join(flows.select("session").distinct(), "session", "left_anti")
    unwanted = flows.join(tables["interest"].select("flow").distinct(), "flow", "left_anti")
    counts = {
        "wanted flows do not reach their subscriber": reached.where(F.col("_joined").isNull()),
        "flows are in two sessions": _repeated(flows, "flow"),
        "sessions are in two groups": _repeated(tables["session_group"], "session"),
        "joins stand twice": _repeated(joins, "subscriber", "group"),
        "joins serve nobody": needless,
        "sessions are empty": unused,
        "flows that nobody wants are sent": unwanted,
    }
    # One job for all: each kind is one row of a union.
    rows = None
    for what, frame in counts.items():
        row = frame.agg(F.count("*").alias("n")).select(F.lit(what).alias("what"), "n")
        rows = row if rows is None else rows.unionByName(row)
    assert rows is not None
    return [f"{row['n']} {row['what']}" for row in rows.collect() if row["n"]]


def _repeated(frame: DataFrame, *key: str) -> DataFrame:
    return frame.groupBy(*key).agg(F.count("*").alias("_n")).where("_n > 1")


def plan_cost(tables: Mapping[str, DataFrame], alpha: float, beta: float) -> dict[str, float]:
    """C1, C2, useful and excess from their definitions (the spec's), flow by flow and join by join."""
    placed = tables["flow_session"].join(tables["flows"].select("flow", "rate"), "flow")
    session = placed.groupBy("session").agg(F.sum("rate").alias("theta"))
    group = session.join(tables["session_group"], "session").groupBy("group").agg(F.sum("theta").alias("Theta"))
    wants = tables["interest"].select("flow", "subscriber")
    passed = wants.join(tables["flow_session"], "flow").select("subscriber", "session").distinct()
    parts = {
        "c1": tables["subscriber_group"].join(group, "group").agg(F.sum("Theta").alias("n")),
        "c2": passed.join(session, "session").agg(F.sum("theta").alias("n")),
        "useful": wants.join(tables["flows"].select("flow", "rate"), "flow").agg(F.sum("rate").alias("n")),
    }
    found = {name: float(frame.collect()[0]["n"] or 0.0) for name, frame in parts.items()}
    c1, c2 = alpha * found["c1"], beta * found["c2"]
    return {"c1": c1, "c2": c2, "useful": found["useful"], "excess": c1 + c2 - (alpha + beta) * found["useful"]}
