"""The example folder for three hosts, run as it stands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from narrowcast.deliver.transport.nats.server import server_binary
from system.hosts import Hosts

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-hosts"
URL = "nats://narrowcast:change-me@10.77.0.1:4222"
NARROWCAST = [sys.executable, "-m", "narrowcast.cli"]
WANTED = {
    "desk-a": lambda row: row["symbol"] in ("IBM", "MSFT") and row["price"] > 50,
    "desk-b": lambda row: row["symbol"] in ("GE", "HP", "IBM"),
}


def received(folder: Path, desk: str) -> list[dict[str, object]]:
    path = folder / f"received-{desk[-1]}" / f"{desk}.jsonl"
    data = path.read_bytes() if path.exists() else b""
    lines = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
    return [json.loads(payload) for line in lines for _, payload in line.get("messages", ())]


def subscribed(folder: Path, desk: str) -> bool:
    path = folder / f"received-{desk[-1]}" / f"{desk}.jsonl"
    return path.exists() and b'"position":{"0"' in path.read_bytes()


def until(done: object, what: str, seconds: float = 60.0) -> None:
    assert callable(done)
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.1)


@pytest.mark.long
def test_the_example_for_three_hosts_delivers_by_multicast_to_each_desk_what_it_wants(tmp_path: Path) -> None:
    folder = tmp_path / "three-hosts"
    shutil.copytree(EXAMPLE, folder)
    plan = [
        *NARROWCAST,
        "plan",
        "channels",
        "flows.csv",
        "interest.csv",
        "--key",
        "symbol",
        "--groups",
        "2",
        "--sessions",
        "2",
    ]
    subprocess.run([*plan, "--out", "plan"], cwd=folder, check=True, capture_output=True, timeout=120)
    symbols = ["IBM", "MSFT", "GE", "HP"]
    rows = [{"symbol": symbols[n % 4], "price": n % 97, "n": n} for n in range(400)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Hosts(3) as hosts:
        hosts.start(["env", "--chdir", str(folder), server_binary(), "-c", "nats.conf"], 0)
        for host, role in ((0, "coordinator"), (0, "source"), (1, "edge"), (2, "edge")):
            hosts.start([*NARROWCAST, role, "--config", str(folder / f"host-{host + 1}.toml")], host)
        until(lambda: all(subscribed(folder, desk) for desk in WANTED), "the desks are not subscribed")
        mine = {"239.77.0.1", "239.77.0.2"}
        until(lambda: all(hosts.memberships_of(host) & mine for host in (1, 2)), "no group was joined")
        time.sleep(3)
        hosts.run([*NARROWCAST, "publish", str(folder / "rows.jsonl"), "--url", URL], 0)
        for desk, wants in WANTED.items():
            due = [row for row in rows if wants(row)]
            until(lambda desk=desk, due=due: len(received(folder, desk)) >= len(due), f"{desk} lacks messages")
            assert received(folder, desk) == due
        shown = json.loads(hosts.run([*NARROWCAST, "top", "--json", "--url", URL], 0))
        assert sum(edge["repaired"] for edge in shown["edges"]) < 100, "it came from the log, not by multicast"
        preflight = hosts.run([*NARROWCAST, "preflight", "--config", str(folder / "host-2.toml"), "--json"], 1)
        assert not [problem for problem in json.loads(preflight)["problems"] if problem["fatal"]]
