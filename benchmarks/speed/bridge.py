"""The plan against flooding and against one session per group, on a bridge with IGMP snooping, in one run.

    python benchmarks/speed/bridge.py [--messages 16000]

One source and eight receivers, each a network namespace of its own; a packet per message (h = 1, nothing
packed), each receiver served exactly in all three. Bytes are all that came in at a receiver's interface,
filtered are packets of its groups that held nothing it wanted, CPU is that of the receivers' processes per
message that they wanted. Needs Linux and root.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from system.bridge import RECEIVERS, Bridge, make_plan, make_rows
from system.hosts import Hosts

WAYS = {"the plan": (4, 8), "one session per group": (4, 4), "flooding": (1, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=16_000)
    given = parser.parse_args()
    rows = make_rows(given.messages)
    print(f"{given.messages:,} messages, {RECEIVERS} receivers; groups and sessions: {WAYS}")
    print(f"{'':>22} {'MB received':>12} {'packets':>9} {'useful':>9} {'filtered':>9} {'CPU µs per useful':>18}")
    with tempfile.TemporaryDirectory() as name, Hosts(RECEIVERS + 1) as hosts:
        bridge = Bridge(hosts, Path(name))
        for title, (groups, sessions) in WAYS.items():
            found = bridge.run(make_plan(groups, sessions), rows).values()
            useful, packets = sum(r.useful for r in found), sum(sum(r.packets.values()) for r in found)
            cpu, size = sum(r.cpu_s for r in found), sum(r.bytes for r in found)
            shown = f"{title:>22} {size / 1e6:>12.1f} {packets:>9,} {useful:>9,} {packets - useful:>9,}"
            print(f"{shown} {1e6 * cpu / useful:>18.1f}", flush=True)


if __name__ == "__main__":
    main()
