"""Spark meets narrowcast: one line sends a DataFrame to exactly those who want it, one reads the log back.

Beside a running system (`narrowcast up PLAN`) only the lines with `format("narrowcast")` are needed.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import narrowcast as nc
from narrowcast.data.spark.session import session
from narrowcast.data.statistics.follow import follow
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.nats.server import NatsServer


async def start(server: NatsServer) -> str:
    """A durable log and nothing else: enough for whoever subscribes to be served from it."""
    url = await server.start()
    await (await backbone(url, name="example", found=System())).close()
    return url


with tempfile.TemporaryDirectory() as folder:
    server = NatsServer(Path(folder) / "nats")
    url = asyncio.run(start(server))
    spark = session("local[2]", quick=True)
    try:
        trades = spark.range(2000).selectExpr(
            "element_at(array('IBM', 'MSFT', 'SAP'), CAST(id % 3 AS int) + 1) AS symbol",
            "CAST(id % 200 AS double) AS price",
            "timestamp_seconds(1767600000 + id) AS ts",
        )
        trades.write.format("narrowcast").option("url", url).mode("append").save()

        with nc.connect(url) as connection:
            got = 0
            for batch in connection.subscribe("symbol = 'IBM' AND price > 150", from_start=True, timeout=2.0):
                got += len(batch)
        print(f"{got} trades reached the subscriber")

        log = spark.readStream.format("narrowcast").option("url", url)
        query = follow(
            spark,
            log.schema("_shard int, _sequence bigint, symbol string, price double, ts timestamp").load(),
            lambda: [("ann", "symbol = 'IBM' AND price > 150"), ("bob", "price > 100"), ("cid", "symbol = 'SAP'")],
            key=["symbol"],
            half_life_s=600.0,
            checkpoint=f"{folder}/checkpoint",
            out=f"{folder}/snapshots",
            available_now=True,
        )
        assert query.wait(300)
        snapshot = query.latest()
        assert snapshot is not None
        for row in snapshot.flows.to_pylist():
            print(f"{row['flow']:5} {row['messages']} messages, now {row['recent_rate']:.2f} a second")
        for row in snapshot.tables["selectivity"].to_pylist():
            text = snapshot.tables["profiles"]["text"][row["profile"]].as_py()
            print(f"{row['selectivity']:6.1%} of recent messages match {text}")
    finally:
        spark.stop()
        asyncio.run(server.stop())
