"""The subscriptions of a running system, listed for whoever keeps its statistics."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import narrowcast as nc
from narrowcast.deliver.client.subscriptions import registered
from narrowcast.errors import TransportError
from running import running


def becomes(ask: Callable[[], list[tuple[str, str]]], wanted: list[tuple[str, str]]) -> bool:
    """Whether the list is as it should be soon: an edge writes its record while the subscription runs already."""
    deadline = time.monotonic() + 20
    while ask() != wanted:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_those_who_subscribe_now_are_listed_and_those_who_left_are_not(tmp_path: Path) -> None:
    with running(tmp_path / "nats") as url:
        ask = registered(tmp_path / "nats", patience=0.5)
        assert ask() == []
        with nc.connect(url) as connection:
            ann = connection.subscribe("price > 1", name="ann", timeout=1.0)
            connection.subscribe("symbol = 'IBM'", name="bob/1", timeout=1.0)
            assert becomes(ask, [("ann", "price > 1"), ("bob/1", "symbol = 'IBM'")])
            ann.close()
            assert becomes(ask, [("bob/1", "symbol = 'IBM'")])
    with pytest.raises(TransportError, match="cannot reach NATS"):
        ask()
