"""Frames and log entries as bytes: pure functions, no sockets, nothing that can raise on what the network sent."""

from narrowcast.deliver.wire.entry import Batch, Birth, ColumnBatch, Marker, decode_entry, encode_entry
from narrowcast.deliver.wire.frame import Attach, Carried, Frame, Malformed, Pulse, decode, decode_many, encode
from narrowcast.deliver.wire.payload import MOST_PAYLOAD, decode_payload, decode_payloads, encode_payload
from narrowcast.deliver.wire.place import (
    END,
    bare_of,
    end_of,
    generation_of,
    in_generation,
    index_of,
    place,
    sequence_of,
)
from narrowcast.deliver.wire.seal import Seal

__all__ = [
    "END",
    "MOST_PAYLOAD",
    "Attach",
    "Batch",
    "Birth",
    "Carried",
    "ColumnBatch",
    "Frame",
    "Malformed",
    "Marker",
    "Pulse",
    "Seal",
    "bare_of",
    "decode",
    "decode_entry",
    "decode_many",
    "decode_payload",
    "decode_payloads",
    "encode",
    "encode_entry",
    "encode_payload",
    "end_of",
    "generation_of",
    "in_generation",
    "index_of",
    "place",
    "sequence_of",
]
