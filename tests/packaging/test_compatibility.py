"""What an earlier version wrote to the log and to the registry is read as it was meant; see docs/upgrading.md.

Plan folders of earlier formats are in `tests/plans/format_1`. Bytes below were written by 0.1.0: they stay as they are.
"""

from __future__ import annotations

from narrowcast.deliver.processes.system import System
from narrowcast.deliver.wire import Batch, Malformed, Marker, decode_entry, decode_payload
from narrowcast.deliver.wire.frame import VERSION, decode

BATCH_1 = bytes.fromhex(
    "6e6c010104000000000000000400026465736b0000001c7b2273796d626f6c223a2249424d222c227072696365223a3130317d"
    "000000027b7d25fdcb7f"
)
MARKER_1 = bytes.fromhex("6e6c010200000007c3ad5e17")
REGISTRY_0_1 = """\
shards = 2
key = ["symbol"]
[multicast]
interface = "eth0"
domain = 80
groups = 16
[overlay.brokers]
b1 = "tcp://10.0.0.1:5600"
[overlay.public_keys]
b1 = "k"
"""


def test_log_entries_of_version_1_are_read() -> None:
    batch = decode_entry(BATCH_1)
    assert isinstance(batch, Batch)
    assert (batch.publisher, batch.number) == ("desk", 4)
    assert decode_payload(batch.payloads[0]) == {"symbol": "IBM", "price": 101}
    assert decode_entry(MARKER_1) == Marker(7)


def test_a_registry_of_0_1_is_read() -> None:
    found = System.from_toml(REGISTRY_0_1)
    assert (found.shards, found.key, found.overlay.public_keys) == (2, ("symbol",), {"b1": "k"})
    assert found.multicast is not None
    assert (found.multicast.interface, found.multicast.domain, found.multicast.groups) == ("eth0", 80, 16)


def test_a_frame_of_another_version_is_dropped_by_name_so_that_the_log_is_read_instead() -> None:
    for other in {*range(1, VERSION + 3)} - {VERSION}:
        assert decode(b"nc" + bytes((other, 1)) + bytes(200)) in (Malformed("version"), Malformed("magic"))
