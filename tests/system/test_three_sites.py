"""The example folder for three sites, run as it stands."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from narrowcast.deliver.transport.nats.server import server_binary

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-sites"
URL = "nats://narrowcast:change-me@10.80.0.1:4222"
NARROWCAST = [sys.executable, "-m", "narrowcast.cli"]
GATEWAYS = ("London", "Paris", "Zurich")
ROWS = 300


def until(done: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def received(folder: Path, desk: str) -> list[dict[str, object]]:
    path = folder / "received" / f"{desk}.jsonl"
    data = path.read_bytes() if path.exists() else b""
    lines = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
    return [json.loads(payload) for line in lines for _, payload in line.get("messages", ())]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.engines
@pytest.mark.xdist_group("multicast")
def test_the_example_for_three_sites_delivers_by_relays_and_goes_on_when_one_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "three-sites"
    shutil.copytree(EXAMPLE, folder)
    plan = ["plan", "network", ".", "--price-send", "5", "--price-group", "0", "--out", "plan"]
    subprocess.run([*NARROWCAST, *plan], cwd=folder, check=True, capture_output=True, timeout=120)
    wishes = {
        row["subscriber"]: row["profile"]
        for row in csv.DictReader((folder / "subscriptions.csv").read_text().splitlines())
    }
    symbols = [row["flow"] for row in csv.DictReader((folder / "flows.csv").read_text().splitlines())]
    running: list[subprocess.Popen[bytes]] = []

    def start(where: str, *command: str) -> subprocess.Popen[bytes]:
        with (folder / f"{where}.log").open("ab") as out:
            inside = ["ip", "netns", "exec", f"nc-{where}", *command]
            running.append(subprocess.Popen(inside, cwd=folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL))
        return running[-1]

    def ask(*command: str) -> str:
        inside = ["ip", "netns", "exec", "nc-log", *NARROWCAST, *command, "--system", URL]
        return subprocess.run(inside, cwd=folder, capture_output=True, text=True, timeout=60, check=False).stdout

    def ways() -> dict[str, int]:
        shown = ask("top", "--json")
        found = [edge["ways"] for edge in json.loads(shown)["edges"]] if shown.strip() else []
        return {way: sum(each[way] for each in found) for way in ("channel", "unicast", "log")}

    sent: list[dict[str, object]] = []

    def publish() -> None:
        some = [{"symbol": symbols[n % len(symbols)], "n": n} for n in range(len(sent), len(sent) + ROWS)]
        sent.extend(some)
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
        ask("publish", "rows.jsonl")
        for desk, text in wishes.items():
            due = [row for row in sent if f"'{row['symbol']}'" in text]
            until(lambda desk=desk, due=due: len(received(folder, desk)) >= len(due), f"{desk} lacks messages")  # type: ignore[misc]
            assert received(folder, desk) == due

    subprocess.run(["./network.sh", "up"], cwd=folder, check=True, timeout=60)
    try:
        start("log", server_binary(), "-c", "nats.conf")
        start("log", *NARROWCAST, "coordinator", "--config", "log.toml")
        relays = {}
        for gateway in GATEWAYS:
            for role in ("broker", "source"):
                start(gateway, *NARROWCAST, role, "--config", f"{gateway}.toml")
            relays[gateway] = start(gateway, *NARROWCAST, "relay", "--config", f"{gateway}.toml")
        for desk in wishes:
            start(desk, *NARROWCAST, "edge", "--config", f"{desk}.toml")
        path = folder / "received"
        until(lambda: all((path / f"{desk}.jsonl").exists() for desk in wishes), "the desks are not subscribed")
        until(lambda: all(b'"position":{"0"' in (path / f"{d}.jsonl").read_bytes() for d in wishes), "no position")
        for _ in range(30):
            before = ways()
            publish()
            time.sleep(1.2)  # counts are told once a second
            after = ways()
            if after["log"] == before["log"] and after["channel"] > before["channel"]:
                break
        assert after["log"] == before["log"], f"it comes from the log: {after}"
        assert after["channel"] > before["channel"]
        assert after["unicast"] > before["unicast"]
        relays["London"].kill()
        publish()
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()
        subprocess.run(["./network.sh", "down"], cwd=folder, check=True, timeout=60)
