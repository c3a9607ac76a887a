"""A log added up for a replay: what each flow is, and how much of it each subscriber wants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.take_in import Ingested
from narrowcast.data.statistics.match import Holders, flow_name, partials
from narrowcast.data.statistics.partials import BYTE
from narrowcast.data.statistics.tables import pair_sums
from narrowcast.errors import InputError

AMOUNTS = ("messages", "bytes")


def flow_sums(messages: DataFrame, key: Sequence[str]) -> DataFrame:
    """Messages and bytes of each flow of a log; bytes in whole 1/1024."""
    for name in key:
        if name not in messages.columns:
            raise InputError(f"the messages have no column {name!r} to make flows of", name="key", got=name)
    size = F.coalesce(F.col("size"), F.lit(0.0)) if "size" in messages.columns else F.lit(0.0)
    rows = messages.select(flow_name(key).alias("flow"), F.rint(size * BYTE).cast("bigint").alias("bytes"))
    return rows.groupBy("flow").agg(F.count("*").alias("messages"), F.sum("bytes").alias("bytes"))


def wanted_sums(spark: SparkSession, messages: DataFrame, subscriptions: Ingested, key: Sequence[str]) -> DataFrame:
    """How much of each flow each subscriber's profiles match: flow, subscriber, messages, bytes."""
    from narrowcast.profiles import Matcher

    pairs = subscriptions.rows.select("subscriber", "profile").collect()
    if not pairs:
        raise InputError("subscriptions must have at least one valid row, got none", name="subscriptions")
    people, texts = sorted({r["subscriber"] for r in pairs}), sorted({r["profile"] for r in pairs})
    person, text = {s: i for i, s in enumerate(people)}, {t: i for i, t in enumerate(texts)}
    profile = np.array([text[r["profile"]] for r in pairs], np.int64)
    subscriber = np.array([person[r["subscriber"]] for r in pairs], np.int64)
    holders = Holders.from_pairs(profile, subscriber, len(texts), len(people))
    sums = partials(messages, Matcher(texts), key=key, overlap=False, holders=holders)
    # With holders, the numbers of profiles are those of subscribers.
    names = spark.createDataFrame(list(enumerate(people)), "profile bigint, subscriber string")
    return pair_sums(sums).join(names, "profile").select("flow", "subscriber", *AMOUNTS)
