"""Topics of Kafka as tables: by Spark's own connector, their values as JSON objects, each record in its place.

A frame that the connector made is known by its columns; `kafka://host:port/topic` reads all that a topic has now.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType

from narrowcast.errors import InputError

#: What a batch of Spark's connector has (Structured Streaming and Kafka Integration Guide).
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"


def is_topic(frame: DataFrame) -> bool:
    """Whether a frame is one that Spark's connector makes of a topic."""
    return set(COLUMNS) <= set(frame.columns) and isinstance(frame.schema["value"].dataType, BinaryType)


def read_topic(spark: SparkSession, url: str, name: str) -> DataFrame:
    """All records of a topic as the connector gives them.

    Parameters
    ----------
    spark : the session, which must have the connector
    url : `kafka://host:port/topic`, of several brokers `kafka://a:9092,b:9092/topic`
    name : the table that it is, for errors

    Raises
    ------
    InputError : a URL without a topic, a session without the connector (and which package it needs), or no broker
    """
    place = urlsplit(url)
    topic = place.path.strip("/")
    if not place.netloc or not topic or "/" in topic:
        raise InputError(f"{name} must be kafka://host:port/topic, got {url}", name=name, got=url)
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", place.netloc).option("subscribe", topic)
    try:
        return reader.option("startingOffsets", "earliest").option("endingOffsets", "latest").load()
    except PySparkException as error:
        line = str(error).strip().splitlines()[0]
        if "kafka" in line.lower() and ("find" in line.lower() or "deploy" in line.lower()):
            raise InputError(
                f"{url}: this Spark has no connector for Kafka (the {name} table)",
                name=name,
                got=url,
                hint=f"--conf spark.jars.packages={PACKAGE}:{spark.version}, or the same setting of your session",
            ) from None
        raise InputError(f"{url}: cannot be read: {line} (the {name} table)", name=name, got=url) from None


def records(topic: DataFrame, file: str, row: str) -> DataFrame:
    """Records as lines of JSON: `value`, with the partition for a file and the offset, from 1, for the row there."""
    return topic.select(
        F.col("value").cast("string").alias("value"),
        F.concat_ws("-", "topic", F.col("partition").cast("string")).alias(file),
        (F.col("offset") + 1).alias(row),
    )
