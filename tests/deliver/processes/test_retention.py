"""How much of the log is kept, and whether its disk is full."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from narrowcast.deliver.processes.disk import Disk
from narrowcast.deliver.processes.retention import Retention, kept_retention, parse_retention
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.nats.server import NatsServer
from narrowcast.errors import InputError

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("auto", None),
        ("none", Retention()),
        ("50GB", Retention(50 * 10**9)),
        ("1.5TB", Retention(1_500_000_000_000)),
        ("33554432B", Retention(33_554_432)),
        ("12h", Retention(None, 43_200.0)),
        ("7d, 20GB", Retention(20 * 10**9, 604_800.0)),
    ],
)
def test_a_text_means_sizes_and_ages(text: str, meant: Retention | None) -> None:
    assert parse_retention(text) == meant


@pytest.mark.parametrize(
    "text",
    ["", "5", "5gb", "-1GB", "1GB,2GB", "1d,2d", "1GB,", "nan", "1e9B", "9" * 400 + "B", "1MB", "1m", "٣GB", "0d"],
)
def test_what_means_nothing_is_refused_here_and_in_a_file(text: str) -> None:
    with pytest.raises(InputError, match="retention must be"):
        parse_retention(text)
    with pytest.raises(InputError, match="retention must be"):
        System.from_toml(f'retention = "{text}"')


def test_by_default_half_of_what_was_free_at_the_first_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jetstream").mkdir()
    (tmp_path / "jetstream" / "1.blk").write_bytes(bytes(1000))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**11, 0, 10**10))
    assert kept_retention(tmp_path, "auto") == "5000001000B"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**11, 0, 10**6))
    assert kept_retention(tmp_path, "auto") == "5000001000B", "a second start drops nothing"
    assert kept_retention(tmp_path, "7d") == "7d"


def test_a_disk_is_full_below_its_reserve_until_twice_as_much_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path)
    seen = []
    for free in (200_000_000, 99_000_000, 150_000_000, 210_000_000, 101_000_000):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: Usage(10**10, 0, free))
        seen.append(disk.look())
    assert seen == [False, True, True, False, False]
    assert not disk.touched
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 0, 4096))
    assert disk.look()
    assert disk.touched


def test_a_server_that_could_not_write_is_noticed_once(tmp_path: Path) -> None:
    server, log = NatsServer(tmp_path), tmp_path / "nats.log"
    log.write_bytes(b"[1] [INF] Server is ready\n[1] [ERR] write 1.blk: no space le")
    assert not server.lacked_space()
    with log.open("ab") as out:
        out.write(b"ft on device\n")
    assert server.lacked_space()
    assert not server.lacked_space()
