"""The demo with its console: a system that people can look at until they have seen enough."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from narrowcast.deliver.processes.supervise import state_of

pytestmark = [pytest.mark.engines, pytest.mark.nightly, pytest.mark.xdist_group("browser")]


def state(link: str) -> dict[str, Any]:
    """One refresh, as the page gets it."""
    host, token = re.match(r"http://([^/]+)/#token=(.+)", link).groups()  # type: ignore[union-attr]
    connection = http.client.HTTPConnection(host, timeout=20)
    connection.request("GET", "/api/live", headers={"Authorization": f"Bearer {token}"})
    response = connection.getresponse()
    while not (line := response.readline()).startswith(b"event: state"):
        assert line
    found: dict[str, Any] = json.loads(response.readline().removeprefix(b"data: "))
    connection.close()
    return found


def test_the_demo_leaves_a_live_system_until_it_is_told_to_stop(tmp_path: Path) -> None:
    program = str(Path(sys.executable).parent / "narrowcast")  # in an environment that is not activated
    env = os.environ | {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    command = [program, "demo", "--console", "--out", "demo", "--symbols", "300",
               "--subscribers", "40", "--messages", "4000"]  # fmt: skip
    said = tmp_path / "said"
    with said.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=tmp_path, env=env)
        try:
            limit = time.monotonic() + 240
            while not (link := re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", said.read_text())):
                assert process.poll() is None, said.read_text()
                assert time.monotonic() < limit, said.read_text()
                time.sleep(0.1)
            limit = time.monotonic() + 60
            while (totals := state(link.group())["totals"])["delivered_s"] == 0 or totals["subscribers"] < 12:
                assert time.monotonic() < limit, totals
            assert state_of(tmp_path / "demo" / "live") is not None
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, said.read_text()
        finally:
            process.kill()
    assert state_of(tmp_path / "demo" / "live") is None, "the system goes when the demo does"
    told = said.read_text()
    order = ["A trading floor.", "Measured.", "multicast groups", "Filters inside", "Range queries.", "Delivered."]
    places = [told.find(words) for words in order]
    assert places == sorted(places), "each step as it ends"
    assert -1 not in places, told
    assert "Traceback" not in told
    explain = re.search(r"^    (\S*narrowcast explain .*)$", told, re.MULTILINE)
    assert explain is not None, told
    subprocess.run(explain.group(1), shell=True, cwd=tmp_path, env=env, check=True, capture_output=True)
