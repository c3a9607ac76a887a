"""What the registry holds: keys, and values as JSON.

    lease           who coordinates: {holder, term}; a heartbeat is a write of the same
    epoch           {term, current, next, phase, cutover}; phase: steady, preparing, committing
                    and of other plans: offer (in force), trying, refused (the last number), burnt (a plan's number)
    offer           another plan to move to: {number, folder, base}
    plan.<epoch>    a routing, written once and never changed
    sub.<name>      a subscription: {profile, edge}
    node.<name>     a node that is alive: {role, ready: the newest epoch it has prepared, beat}
    source.<shard>  how far a source has got: {sequence, epoch: in force after it}
    filter.<name>   what the filter at a broker does now: {state}
    sink.<name>     what a sink of batches published last: {batch, done, shard, last, piles}

Names are written in hexadecimal where they stand in keys, so that any name will do.
"""

from __future__ import annotations

import json
from typing import Any

LEASE = "lease"
EPOCH = "epoch"
OFFER = "offer"
PLAN = "plan."
SUBSCRIPTION = "sub."
NODE = "node."
SOURCE = "source."
FILTER = "filter."
SINK = "sink."


def named(prefix: str, name: str) -> str:
    """The key of a named thing.

    >>> named(SUBSCRIPTION, "a/b")
    'sub.612f62'
    """
    return prefix + name.encode().hex()


def name_of(key: str) -> str:
    """The name in a key that `named` made."""
    return bytes.fromhex(key.partition(".")[2]).decode()


def numbered(prefix: str, number: int) -> str:
    return f"{prefix}{number}"


def number_of(key: str) -> int:
    return int(key.partition(".")[2])


def pack(record: dict[str, Any]) -> bytes:
    """A record as bytes, the same bytes for the same record."""
    return json.dumps(record, separators=(",", ":"), sort_keys=True).encode()


def unpack(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data)
    return found
