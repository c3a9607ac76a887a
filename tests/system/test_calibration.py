"""What filtering costs a receiver, measured on this machine with real multicast."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from narrowcast.cli.app import app
from narrowcast.deliver.processes.calibration import measure
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.plans.channels import api as channels


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
