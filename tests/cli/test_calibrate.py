"""`narrowcast calibrate --system`: prices with their likely range; a fit too loose leaves those that were there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from narrowcast import cli
from narrowcast.cli.deliver import calibrate
from narrowcast.deliver.processes.calibration import ReceiverSample
from narrowcast.plans.channels.aggregation import PRICES
from plans.channels.test_aggregation import watched


def samples(noise: float) -> list[ReceiverSample]:
    (taken, passed, some, others, spent), whose = watched(120, noise)
    rows = zip(whose, taken, passed, some, others, spent, strict=True)
    return [ReceiverSample(who, *map(float, rest)) for who, *rest in rows]


def test_prices_are_shown_with_their_likely_range_and_a_loose_fit_leaves_them(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "_watched", lambda system, seconds: samples(20.0))
    assert cli.run(["calibrate", "--system", str(tmp_path)]) == 0
    assert len(re.findall(r"[\d.]+ to [\d.]+", capsys.readouterr().out)) == 2
    kept = (tmp_path / PRICES).read_text()
    monkeypatch.setattr(calibrate, "_watched", lambda system, seconds: samples(900.0))
    assert cli.run(["calibrate", "--system", str(tmp_path)]) == 2
    assert re.search(r"unexplained|tell alpha from beta, got [\d.]+ ± [\d.]+ and", capsys.readouterr().err)
    assert (tmp_path / PRICES).read_text() == kept
