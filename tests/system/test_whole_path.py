"""From data to delivery with no option but the paths: messages travel on the planned channels, counted at the edges."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import narrowcast as nc

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]
BIN = Path(sys.executable).parent
DESKS, WARM, SENT = 5, 200, 2000


def narrowcast(folder: Path, *arguments: str) -> str:
    env = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        [str(BIN / "narrowcast"), *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("path")
    narrowcast(folder, "generate", "market", "--out", "market", "--messages", "4000", "--subscribers", "60",
               "--set", "symbols=600")  # fmt: skip
    return folder


def busiest(market: Path, log: Any) -> list[tuple[str, int]]:
    """The profiles that match most of what is sent, and how much of it each matches."""
    profiles = pq.read_table(market / "market" / "subscriptions.parquet")["profile"].to_pylist()
    matched = np.bincount(nc.Matcher(profiles).match(log)[1], minlength=len(profiles))
    order = np.argsort(-matched, kind="stable")[:DESKS]
    return [(profiles[i], int(matched[i])) for i in order]


def until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.2)


def in_force(ways: Callable[[], dict[str, int]], publish: Callable[[], object]) -> dict[str, int]:
    """Publish until the plan is in force: messages come by its channels, and only by them, for a while."""
    steady = 0
    while steady < 3:
        before = ways()
        publish()
        until(partial(_differs, ways, before))
        time.sleep(0.5)
        change = {way: n - before[way] for way, n in ways().items()}
        steady = steady + 1 if change["channel"] and not change["log"] and not change["rest"] else 0
    return ways()


def _differs(ways: Callable[[], dict[str, int]], before: dict[str, int]) -> bool:
    return ways() != before


def share_off_plan(before: dict[str, int], after: dict[str, int]) -> float:
    change = {way: after[way] - before[way] for way in after}
    assert sum(change.values()) > 0
    return (change["rest"] + change["log"]) / sum(change.values())


def test_five_lines_of_python_deliver_on_the_planned_channels(market: Path) -> None:
    tables = market / "market"
    log = pq.read_table(tables / "messages.parquet")
    demand = nc.measure(tables / "messages.parquet", tables / "subscriptions.parquet", key="symbol")
    plan = nc.plan(demand, groups=10, sessions=40).save(market / "by-python", overwrite=True)
    with nc.up(plan, domain=91) as system, system.connect() as client:
        warm, sent = log.slice(0, WARM), log.slice(WARM, SENT)
        wanted = busiest(market, sent)
        subscriptions = [client.subscribe(profile, timeout=10) for profile, _ in wanted]
        before = in_force(lambda: client.ways, lambda: client.publish(warm))
        for subscription in subscriptions:
            _drain(subscription)
        client.publish(sent)
        got = [
            _drain(subscription, expected) for subscription, (_, expected) in zip(subscriptions, wanted, strict=True)
        ]
        assert got == [expected for _, expected in wanted]
        assert share_off_plan(before, client.ways) < 0.01


def _drain(subscription: Any, expected: int | None = None) -> int:
    """What is there, until there is as much as expected, or nothing for a while."""
    subscription._timeout = 10 if expected else 0.5
    count = 0
    for batch in subscription:
        count += len(batch)
        if expected is not None and count >= expected:
            break
    return count


@pytest.mark.long
def test_the_command_line_delivers_on_the_planned_channels(market: Path) -> None:
    narrowcast(market, "measure", "market", "--out", "measured")
    narrowcast(market, "plan", "channels", "measured", "--out", "plan")
    assert nc.load(market / "plan").key == ("symbol",)
    narrowcast(market, "check", "plan")
    narrowcast(market, "report", "plan")
    log = pq.read_table(market / "market" / "messages.parquet")
    pq.write_table(log.slice(0, WARM), market / "warm.parquet")
    pq.write_table(log.slice(WARM, SENT), market / "sent.parquet")
    wanted = busiest(market, log.slice(WARM, SENT))
    narrowcast(market, "up", "plan", "--detach")
    try:
        with_subscribers(market, wanted)
    finally:
        narrowcast(market, "down")


def with_subscribers(market: Path, wanted: list[tuple[str, int]]) -> None:
    started = list(subscribers(market, wanted))
    try:
        until(lambda: len(edges(market)) == DESKS)
        before = in_force(lambda: ways(market), lambda: narrowcast(market, "publish", "warm.parquet"))
        narrowcast(market, "publish", "sent.parquet")
        expected = sum(n for _, n in wanted)
        until(lambda: sum(ways(market).values()) - sum(before.values()) >= expected)
        assert share_off_plan(before, ways(market)) < 0.01
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.communicate(timeout=20)


def subscribers(market: Path, wanted: list[tuple[str, int]]) -> Iterator[subprocess.Popen[str]]:
    for profile, _ in wanted:
        command = [str(BIN / "narrowcast"), "subscribe", profile]
        yield subprocess.Popen(command, cwd=market, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def edges(market: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(narrowcast(market, "top", "--once", "--json", "--seconds", "1"))["edges"]
    return found


def ways(market: Path) -> dict[str, int]:
    told = [edge["ways"] for edge in edges(market)]
    return {way: sum(each[way] for each in told) for way in ("channel", "rest", "log")}


def test_messages_without_the_key_are_delivered_and_the_publisher_is_told_at_once(
    market: Path, caplog: pytest.LogCaptureFixture
) -> None:
    interest = nc.Interest.from_pairs([0, 1], [0, 1], [1.0, 1.0], flow_names=["IBM", "GE"])
    plan = nc.plan(nc.Demand(interest, key=("symbol",)), groups=2, sessions=2)
    with nc.up(plan, domain=92) as system, system.connect() as client, caplog.at_level(logging.WARNING):
        wanted = client.subscribe("price > 1", timeout=20)
        client.publish([{"price": 2}])
        client.publish([{"price": 3}])
        assert [row["price"] for row in islice((row for batch in wanted for row in batch), 2)] == [2, 3]
    said = [record.getMessage() for record in caplog.records if "makes a message's flow" in record.getMessage()]
    assert len(said) == 1
    assert "no attribute 'symbol'" in said[0]
