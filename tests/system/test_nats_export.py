"""The NATS export in a real server: publishers know flows, subscribers know sessions, the server maps between."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.exports import TARGETS, Options
from narrowcast.exports.text import token
from narrowcast.plans.filters.result import TreeDemand

nats = pytest.importorskip("nats", reason="needs nats-py (pip install narrowcast[runtime])")
SERVER = shutil.which("nats-server") or shutil.which("nats-server", path=str(Path(sys.executable).parent))
if SERVER is None:
    pytest.skip("needs nats-server (pip install narrowcast[runtime])", allow_module_level=True)

FLOWS = ["IBM", "BRK.B", "a > * b", '"quoted" {x: $y}', "字 😀"]


def test_a_subscriber_of_a_session_gets_its_flows_and_no_others(tmp_path: Path) -> None:
    wants = nc.Interest.from_pairs(
        [0, 1, 2, 3, 4, 4], [0, 0, 1, 1, 0, 1], [1.0] * 5, flow_names=FLOWS, user_names=["A", "B"]
    )
    plan = nc.channels.plan(wants, groups=2, sessions=3, method="gf")
    texts = TARGETS["nats"](plan, Options()).texts
    (tmp_path / "nats.conf").write_text(texts["nats.conf"], encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(SERVER), "-c", str(tmp_path / "nats.conf"), "-a", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            got = asyncio.run(asyncio.wait_for(_exchange(f"nats://127.0.0.1:{port}", plan), 60))
        finally:
            server.kill()  # `with` waits for it without an end
    sessions = {row["flow"]: row["session"] for row in plan.to_tables().tables["flow_session"].to_pylist()}
    for session, heard in got.items():
        assert heard == sorted(flow for flow in FLOWS if sessions[flow] == session)


async def _exchange(url: str, plan) -> dict[int, list[str]]:
    for _ in range(100):
        try:
            client = await nats.connect(url, allow_reconnect=False)
            break
        except OSError:
            await asyncio.sleep(0.1)
    got: dict[int, list[str]] = {}
    for row in plan.to_tables().tables["session_group"].to_pylist():
        heard = got.setdefault(row["session"], [])

        async def take(message, heard=heard) -> None:
            heard.append(message.data.decode())

        await client.subscribe(f"nc.g{row['group']}.s{row['session']}.>", cb=take)
    await client.flush()
    for flow in FLOWS:
        await client.publish(f"flow.{token(flow)}", flow.encode())
    await client.flush()
    for _ in range(50):
        if sum(map(len, got.values())) == len(FLOWS):
            break
        await asyncio.sleep(0.05)
    await client.close()
    return {session: sorted(heard) for session, heard in got.items()}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_leaf_nodes_hold_back_what_nobody_below_them_wants(tmp_path: Path) -> None:
    """Servers as a filter plan has them, on ports of their own: the hub, and a leaf node at the filter."""
    tree = nc.Tree([-1, 0, 0, 1, 1], names=["hub", "a", "b", "a1", "a2"])
    plan = nc.plan(TreeDemand(tree, np.array([9.0, 2.0, 8.0, 1.0, 1.0])), "filters", k=2)
    assert [tree.names[v] for v in plan.filters] == ["hub", "a"]
    texts = TARGETS["nats"](plan, Options()).texts
    leaf, clients = free_port(), {"hub": free_port(), "a": free_port()}
    monitor = free_port()
    started = []
    try:
        for name, port in clients.items():
            text = texts[f"nats-{name}.conf"].replace("nats-leaf://hub:7422", f"nats-leaf://127.0.0.1:{leaf}")
            text = text.replace("0.0.0.0:4222", f"127.0.0.1:{port}").replace("0.0.0.0:7422", f"127.0.0.1:{leaf}")
            (tmp_path / f"{name}.conf").write_text(text + (f"http: 127.0.0.1:{monitor}\n" if name == "hub" else ""))
            command = [str(SERVER), "-c", str(tmp_path / f"{name}.conf")]
            started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        urls = {name: f"nats://127.0.0.1:{port}" for name, port in clients.items()}
        heard, passed = asyncio.run(asyncio.wait_for(_below(urls, monitor), 60))
    finally:
        for server in started:
            server.kill()
            server.wait()
    assert heard == ["IBM"] * 10
    assert passed == 10, "of 100 messages the link to the leaf node carried those that somebody below it wants"


async def _below(urls: dict[str, str], monitor: int) -> tuple[list[str], int]:
    hub, client = await _connected(urls["hub"]), await _connected(urls["a"])
    heard: list[str] = []

    async def take(message) -> None:
        heard.append(message.data.decode())

    await client.subscribe("flow.IBM", cb=take)
    await client.flush()

    def leafz() -> list[dict]:
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/leafz?subs=1") as answer:
            return json.load(answer).get("leafs") or []

    while not any("flow.IBM" in leaf.get("subscriptions_list", ()) for leaf in leafz()):
        await asyncio.sleep(0.05)
    before = leafz()[0]["out_msgs"]
    for n in range(100):
        name = "IBM" if n % 10 == 0 else f"OTHER{n}"
        await hub.publish(f"flow.{name}", name.encode())
    await hub.flush()
    while len(heard) < 10:
        await asyncio.sleep(0.05)
    passed = leafz()[0]["out_msgs"] - before
    await hub.close()
    await client.close()
    return heard, passed


async def _connected(url: str):
    for _ in range(100):
        try:
            return await nats.connect(url, allow_reconnect=False)
        except (OSError, nats.errors.Error):
            await asyncio.sleep(0.1)
    raise AssertionError(f"no server at {url}")
