"""Frames and log entries as bytes: pure functions, no sockets, nothing that can raise on what the network sent."""

from narrowcast.deliver.wire.entry import Batch, Marker, decode_entry, encode_entry
from narrowcast.deliver.wire.frame import Attach, Carried, Frame, Malformed, Pulse, decode, decode_many, encode
from narrowcast.deliver.wire.payload import MOST_PAYLOAD, decode_payload, decode_payloads, encode_payload
from narrowcast.deliver.wire.place import END, end_of, index_of, place, sequence_of

__all__ = [
    "END",
    "MOST_PAYLOAD",
    "Attach",
    "Batch",
    "Carried",
    "Frame",
    "Malformed",
    "Marker",
    "Pulse",
    "decode",
    "decode_entry",
    "decode_many",
    "decode_payload",
    "decode_payloads",
    "encode",
    "encode_entry",
    "encode_payload",
    "end_of",
    "index_of",
    "place",
    "sequence_of",
]
