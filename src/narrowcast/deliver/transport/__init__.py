"""What the runtime stands on: a durable log, a registry and carriers, each behind one Protocol."""

from narrowcast.deliver.routing.address import Address, Link, Multicast, Overlay, Unicast
from narrowcast.deliver.transport.protocols import (
    Carrier,
    ConflictError,
    Entry,
    FinalError,
    Log,
    Receive,
    Registry,
    Stretch,
    Value,
)

__all__ = [
    "Address",
    "Carrier",
    "ConflictError",
    "Entry",
    "FinalError",
    "Link",
    "Log",
    "Multicast",
    "Overlay",
    "Receive",
    "Registry",
    "Stretch",
    "Unicast",
    "Value",
]
