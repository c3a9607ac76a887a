"""What filtering costs a receiver, measured on this machine with real multicast."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import narrowcast as nc
from narrowcast.cli.app import app
from narrowcast.deliver.client.connect import Connection, connect
from narrowcast.deliver.processes.calibration import Receivers, measure
from narrowcast.deliver.processes.supervise import local_system
from narrowcast.deliver.processes.system import EdgeSection, System
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.plans.channels import api as channels
from narrowcast.plans.channels.aggregation import PRICES, read_prices
from system.test_runtime import running


def test_a_receiver_pays_more_for_what_it_takes_than_for_what_its_middleware_drops() -> None:
    samples = measure(DdsSettings(domain=91), aggregation=(1, 16), frames_s=1000, seconds=0.5)
    assert len(samples) == 8
    for h in (1, 16):
        taken, dropped = (next(s for s in samples if s.h == h and bool(s.discarded) is d) for d in (False, True))
        assert taken.accepted > 0.3 * 1000 * h
        assert dropped.discarded > 0.3 * 1000 * h
        assert taken.cpu > dropped.cpu
    per_message = [next(s.cpu / s.accepted for s in samples if s.h == h and not s.discarded) for h in (1, 16)]
    assert per_message[1] < per_message[0], "many messages in a frame share its price"
    fit = channels.calibrate(*zip(*((s.accepted, s.discarded, s.cpu, s.h) for s in samples), strict=True))
    assert fit.at(16)[1] > 0


def test_the_command_measures_here_when_given_no_table(tmp_path: Path) -> None:
    kept = tmp_path / "measured.csv"
    ran = CliRunner().invoke(app, ["calibrate", "--seconds", "0.3", "--h", "8", "--json", "--out", str(kept)])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["beta"] > 0
    again = CliRunner().invoke(app, ["calibrate", str(kept), "--h", "8", "--json"])
    assert json.loads(again.stdout)["alpha"] == json.loads(ran.stdout)["alpha"]


def test_samples_of_a_running_system_are_what_was_sent_and_taken_between_two_looks() -> None:
    seen = Receivers(every_s=2.0)
    for second in range(8):
        sent = {"group 0 messages": 100 * second, "group 1 messages": 40 * second}
        packets = {"group 0 frames sent": 10 * second}
        seen.take({"name": "source-0", "role": "source", "counts": sent, "carried": packets}, second)
        edge = {"name": "e", "role": "edge", "groups": [0], "process": "p", "cpu": 0.01 * second, "started": 1.0}
        arrived = {"counts": {"messages arrived": 30 * second}, "carried": {"group 0 frames": 2 * second}}
        seen.take(edge | arrived, second + 0.5)
    samples = seen.samples()
    assert len(samples) == 3
    for each in samples:
        assert (each.accepted, each.discarded, each.cpu) == pytest.approx((30, 70, 0.01))
        assert (each.accepted_packets, each.discarded_packets) == pytest.approx((2, 8))


FLOWS = [f"f{k}" for k in range(4)]
TAKEN = {"one": FLOWS[:1], "two": FLOWS[1:3], "three": FLOWS[1:]}


def edges(local: System, stack: AsyncExitStack) -> None:
    """A process for each, which takes some flows of the one group there is."""
    for name, flows in TAKEN.items():
        wanted = {name: f"s IN ({', '.join(map(repr, flows))})"}
        mine = replace(local, nats="nats.url", edge=EdgeSection(name=name, out="out", subscriptions=wanted))
        config = local.folder / f"{name}.toml"
        config.write_text(mine.to_toml())
        with (local.folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "narrowcast.deliver.processes.roles", "edge", str(config)]
            process = subprocess.Popen(command, stdout=log, stderr=log)
        stack.callback(process.wait, 15)
        stack.callback(process.terminate)


async def vary(publisher: Connection, stop: asyncio.Event) -> None:
    """Every three seconds other rates of each flow: with less, waking up is most of what an edge spends."""
    rng, n = np.random.default_rng(3), 0
    while not stop.is_set():
        rates, until = rng.choice([0, 1000, 5000], 4), time.monotonic() + 3
        while time.monotonic() < until and not stop.is_set():
            flows = [flow for flow, rate in zip(FLOWS, rates.tolist(), strict=True) for _ in range(rate // 20)]
            rng.shuffle(flows)
            if flows:
                await publisher.publish([{"s": flow, "n": n + k} for k, flow in enumerate(flows)])
            n += len(flows)
            await asyncio.sleep(0.05)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_prices_come_from_the_counters_of_a_running_system_and_the_next_plan_has_them(tmp_path: Path) -> None:
    pairs = [(FLOWS.index(flow), at) for at, flows in enumerate(TAKEN.values()) for flow in flows]
    interest = nc.Interest.from_pairs(*zip(*pairs, strict=True), [1.0] * 4, flow_names=FLOWS, user_names=[*TAKEN])
    nc.plan(nc.Demand(interest, key=("s",)), groups=1, sessions=4).save(tmp_path / "plan")
    local = local_system(tmp_path / "data", tmp_path / "plan", key=("s",), multicast=DdsSettings(domain=97))
    found: list[subprocess.CompletedProcess[str]] = []

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(running(local, sync="2m"))
            publisher = await stack.enter_async_context(connect(local.folder))
            edges(local, stack)
            stop = asyncio.Event()
            publishing = asyncio.ensure_future(vary(publisher, stop))
            await asyncio.sleep(15)
            command = [sys.executable, "-m", "narrowcast.cli", "calibrate", "--system", str(local.folder)]
            command += ["--seconds", "2", "--json", "--out", str(tmp_path / "samples.csv")]
            for _ in range(2):
                done = asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=180)
                found.append(await done)
            stop.set()
            await publishing

    asyncio.run(run())
    print((tmp_path / "samples.csv").read_text())
    assert not any(each.returncode for each in found), [each.stderr for each in found]
    fits = [json.loads(each.stdout) for each in found]
    print(*fits, sep="\n")
    for fit in fits:
        assert fit["unexplained"] < 0.5
        assert fit["beta"] > 2 * fit["errors"][1]
    for at, name in enumerate(("alpha", "beta")):
        apart, error = fits[0][name] - fits[1][name], np.hypot(*(each["errors"][at] for each in fits))
        assert abs(apart) <= 3 * error, f"{name} is another one a minute later"
    pq.write_table(pa.table({"flow": FLOWS, "rate": [1.0] * 4}), tmp_path / "flows.parquet")
    wishes = {"flow": [FLOWS[f] for f, _ in pairs], "subscriber": [[*TAKEN][u] for _, u in pairs]}
    pq.write_table(pa.table(wishes), tmp_path / "interest.parquet")
    tables = [str(tmp_path / f"{name}.parquet") for name in ("flows", "interest")]
    with_prices = ["--key", "s", "--prices", str(local.folder / PRICES), "--out", str(tmp_path / "next")]
    made = CliRunner().invoke(app, ["plan", "channels", *tables, *with_prices])
    assert made.exit_code == 0, made.output
    after = nc.load(tmp_path / "next").parameters
    assert (after["alpha"], after["beta"]) == pytest.approx(read_prices(local.folder / PRICES))
