"""Documents on Spark: XPath profiles are measured as any others, and `xpath_boolean` means what it means there."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from naive import random_xml
from narrowcast.data.measure import measure
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.text import to_sql

pytestmark = pytest.mark.spark


def test_documents_are_measured_and_spark_finds_in_them_what_we_find(spark: Any) -> None:
    rng = Random(3)
    rows = [{"topic": f"t{n % 4}", "xml": random_xml.document(rng, 10), "ts": n} for n in range(80)]
    wishes = [random_xml.xpath(rng, steps=2) for _ in range(12)] + ["topic = 't1' AND xpath_boolean(xml, '//a')"]
    profiles = [Profile.parse(text) for text in wishes]
    subscriptions = pa.table({"subscriber": [f"s{k}" for k in range(len(wishes))], "profile": wishes})
    found = measure(pa.Table.from_pylist(rows), subscriptions, key="topic", spark=spark).interest
    wanted = {(row["topic"], f"s{k}") for row in rows for k, profile in enumerate(profiles) if profile.matches(row)}
    names = [(found.flow_names[f], found.user_names[u]) for f, u in zip(found.flow_of_pair, found.users, strict=True)]
    assert set(names) == wanted
    frame = spark.createDataFrame([(row["topic"], row["xml"]) for row in rows], "topic string, xml string")
    tests = [f"({to_sql(profile.expression, 'spark')}) IS TRUE AS p{k}" for k, profile in enumerate(profiles)]
    said = [tuple(row) for row in frame.selectExpr(*tests).collect()]
    assert said == [tuple(profile.matches(row) for profile in profiles) for row in rows]
