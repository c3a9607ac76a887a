"""A system's own nats-server is preferred to the one that comes as a Python package, if it is new enough."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from narrowcast.deliver.transport.nats import server
from narrowcast.errors import TransportError

BESIDE = Path(sys.executable).with_name("nats-server")


@pytest.fixture
def own(tmp_path: Path, monkeypatch):
    """Puts a nats-server of some version on the PATH, behind the folder of this Python, as an activated venv does."""

    def put(says: str) -> str:
        path = tmp_path / "nats-server"
        path.write_text(f"#!/bin/sh\necho '{says}'\n")
        path.chmod(0o755)
        server._version.cache_clear()
        return str(path)

    monkeypatch.setenv("PATH", f"{BESIDE.parent}:{tmp_path}")
    return put


def test_the_systems_own_is_taken(own) -> None:
    assert server.server_binary() == str(BESIDE)
    path = own("nats-server: v2.11.4")
    assert server.server_binary() == path


@pytest.mark.parametrize("says", ["nats-server: v2.9.10", "segmentation fault"])
def test_one_that_is_too_old_or_no_server_is_passed_over(own, says: str) -> None:
    own(says)
    assert server.server_binary() == str(BESIDE)


def test_without_any_the_line_says_what_to_install(own, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TransportError, match=r"not installed: pip install 'narrowcast\[runtime\]'.*2\.11 or newer"):
        server.server_binary()
    own("nats-server: v2.9.10")
    with pytest.raises(TransportError, match=r"must be 2\.11 or newer, got 2\.9\.10"):
        server.server_binary()


def test_the_real_one_says_its_version() -> None:
    assert server._version(shutil.which("nats-server", path=str(BESIDE.parent))) >= server.LEAST
