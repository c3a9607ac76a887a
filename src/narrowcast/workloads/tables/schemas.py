"""The columns of every table, named as the reference of input tables names them."""

from __future__ import annotations

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")

SUBSCRIPTIONS = pa.schema(
    [("subscriber", pa.string()), ("profile", pa.string()), ("node", pa.string()), ("latency_bound", pa.float64())]
)
PLAIN_SUBSCRIPTIONS = pa.schema([("subscriber", pa.string()), ("profile", pa.string())])
PLACED_SUBSCRIPTIONS = pa.schema([("subscriber", pa.string()), ("profile", pa.string()), ("node", pa.string())])
FLOWS = pa.schema([("flow", pa.string()), ("rate", pa.float64()), ("size", pa.float64())])
INTEREST = pa.schema([("flow", pa.string()), ("subscriber", pa.string())])
TOPOLOGY = pa.schema([("u", pa.string()), ("v", pa.string()), ("cost", pa.float64()), ("delay", pa.float64())])
NODES = pa.schema([("node", pa.string()), ("role", pa.string())])
TREE = pa.schema([("node", pa.string()), ("parent", pa.string())])
DEMAND = pa.schema([("node", pa.string()), ("item", pa.string()), ("size", pa.float64())])
QUERIES = pa.schema([("query", pa.string()), ("client", pa.string()), ("profile", pa.string())])
