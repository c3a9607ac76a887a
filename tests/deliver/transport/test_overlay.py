"""The overlay on real TCP sockets: the exam, who is let in, and what a dead broker costs."""

from __future__ import annotations

import asyncio
import stat
import time
from pathlib import Path

import pytest

from narrowcast.deliver.transport import Carrier, Link, Overlay
from narrowcast.deliver.transport.nats.server import free_port
from narrowcast.deliver.transport.zmq.keys import key_pair, public_key
from narrowcast.deliver.transport.zmq.overlay import ZmqOverlay
from narrowcast.errors import TransportError
from narrowcast.testing.engines import exam_carrier

TREE = Overlay("root", (("root", "leaf"),))


def brokers(keys: Path, *names: str) -> dict[str, tuple[str, str]]:
    return {name: (f"tcp://127.0.0.1:{free_port()}", public_key(keys, name)) for name in names}


def test_the_overlay_passes_the_exam(tmp_path: Path) -> None:
    known = brokers(tmp_path, "root", "two")

    async def open_carrier(node: str) -> Carrier:
        return ZmqOverlay(node, known, tmp_path, listen=node in known)

    asyncio.run(asyncio.wait_for(exam_carrier(open_carrier, [TREE, Overlay("root")], frame_bytes=100_000), 120))


def test_a_broker_reaches_its_edge_back_through_the_edges_own_link(tmp_path: Path) -> None:
    async def run() -> None:
        known = brokers(tmp_path, "root")
        root, edge = ZmqOverlay("root", known, tmp_path, listen=True), ZmqOverlay("edge/ü", known, tmp_path)
        heard: list[bytes] = []
        at_root: list[bytes] = []
        await root.start(at_root.append)
        await edge.start(heard.append)
        await edge.send(Link("root"), b"attach")
        await until(lambda: at_root == [b"attach"])
        for n in range(3000):
            await root.send(Link("edge/ü"), b"%d" % n)
        await until(lambda: len(heard) == 3000)
        assert heard == [b"%d" % n for n in range(3000)], "frames of one link keep their order"
        await root.send(Link("stranger"), b"?")
        assert root.counts["frames to nobody"] == 1
        await edge.close()
        await root.close()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_frames_that_take_long_to_deal_with_leave_others_their_turn(tmp_path: Path) -> None:
    async def run() -> tuple[float, list[bool]]:
        known = brokers(tmp_path, "root")
        root, edge = ZmqOverlay("root", known, tmp_path, listen=True), ZmqOverlay("edge", known, tmp_path)
        heard: list[bytes] = []
        behind: list[bool] = []

        def hear(data: bytes) -> None:
            heard.append(data)
            time.sleep(0.01)

        await root.start(hear)
        await edge.start(lambda data: None)
        await edge.send(Link("root"), b"first")
        await until(lambda: len(heard) == 1)
        for n in range(100):
            await edge.send(Link("root"), b"%d" % n)
        longest = 0.0
        while len(heard) < 101:
            before = time.monotonic()
            await asyncio.sleep(0)
            longest = max(longest, time.monotonic() - before)
            behind.append(root.behind)
        await until(lambda: not root.behind)
        assert heard == [b"first", *(b"%d" % n for n in range(100))]
        await edge.close()
        await root.close()
        return longest, behind

    longest, behind = asyncio.run(asyncio.wait_for(run(), 60))
    assert longest < 0.3, "a hundred frames at once take a second"
    assert any(behind)


def test_whoever_is_not_on_the_list_is_not_heard_until_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        home, away = tmp_path / "home", tmp_path / "away"
        known = brokers(home, "root")
        root = ZmqOverlay("root", known, home, listen=True)
        friend, stranger = ZmqOverlay("friend", known, home), ZmqOverlay("stranger", known, away)
        heard: list[bytes] = []
        await root.start(heard.append)
        for carrier in (stranger, friend):
            await carrier.start(lambda data: None)
            await carrier.send(TREE, carrier.node.encode())
        await until(lambda: b"friend" in heard)
        await until(lambda: stranger.counts["turned away"])
        public, _ = key_pair(away, "stranger")
        for _ in range(5):  # again and again in vain
            await stranger.send(TREE, b"stranger")
            await asyncio.sleep(0.2)
        assert heard == [b"friend"]
        assert stranger.counts["turned away"] >= 1
        assert [r.name for r in caplog.records].count("narrowcast.deliver.transport.zmq.overlay") == 1, (
            "said once, and said"
        )
        assert public in caplog.text
        (home / "stranger.public").write_text(public)  # admitted while the broker runs: it knocks again by itself
        for _ in range(100):
            await stranger.send(TREE, b"let in")
            if b"let in" in heard:
                break
            await asyncio.sleep(0.1)
        assert b"let in" in heard
        for path in home.glob("*.secret"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for carrier in (friend, stranger, root):
            await carrier.close()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_frames_to_a_broker_that_is_away_wait_and_are_then_dropped_and_counted(tmp_path: Path) -> None:
    async def run() -> None:
        known = brokers(tmp_path, "root")
        source = ZmqOverlay("source", known, tmp_path, patience=0.05)
        await source.start(lambda data: None)
        for _ in range(10_050):
            await source.send(TREE, b"frame")
        assert source.counts["frames dropped"] > 0
        assert source.counts["frames dropped"] + source.counts["frames sent"] == 10_050
        heard: list[bytes] = []
        root = ZmqOverlay("root", known, tmp_path, listen=True)
        await root.start(heard.append)
        await until(lambda: len(heard) == source.counts["frames sent"])
        await source.close()
        await root.close()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        known = brokers(tmp_path, "root")
        first, second = (ZmqOverlay("root", known, tmp_path, listen=True) for _ in range(2))
        await first.start(lambda data: None)
        with pytest.raises(TransportError, match="cannot listen at tcp://127"):
            await second.start(lambda data: None)
        await second.close()
        await first.close()

    asyncio.run(asyncio.wait_for(run(), 120))


async def until(done: object, seconds: float = 10.0) -> None:
    assert callable(done)
    for _ in range(int(seconds / 0.01)):
        if done():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")
