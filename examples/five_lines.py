"""From two tables to a delivered message: measured on Spark, planned, judged, and run on this machine."""

from __future__ import annotations

import narrowcast as nc

nc.workloads.write("market", "market", messages=2000, users=40, symbols=300)

demand = nc.measure("market/messages.parquet", "market/subscriptions.parquet", key="symbol")
plan = nc.plan(demand, groups=12, sessions=60).save("plan")
with nc.up(plan) as system, system.connect() as client:
    wanted = client.subscribe("price > 100", timeout=30)
    client.publish([{"symbol": demand.interest.flow_names[0], "price": 101.0}])
    print(f"{demand}: {plan.cost.relative:.0%} of flooding's waste; delivered {next(wanted)[0]}")
