"""A recorded log is replayed by its own times, and the loop over it installs only sound plans."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import narrowcast as nc
from narrowcast.adapt import timeline
from narrowcast.adapt.decide import Policy
from narrowcast.adapt.loop import Loop, PlannedMove
from narrowcast.adapt.replay import Record, usable_wishes
from narrowcast.cli.app import app
from narrowcast.errors import InputError
from narrowcast.model.quarantine import Quarantine
from narrowcast.model.tables import read_table
from narrowcast.plans.channels.replan import ChannelSettings, ContinuedChannels
from narrowcast.plans.verbs import judge, report_page

EVERY_S = 1800.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("day") / "tables"
    nc.workloads.write("commuter", folder, messages=20_000, users=30, sites=4, topics=8, wishes=3, seed=2)
    return folder


@pytest.fixture(scope="module")
def record(recorded: Path) -> Record:
    messages, wishes = (read_table(recorded / f"{name}.parquet", name=name) for name in ("messages", "wishes"))
    return Record(messages, wishes, ("topic",))


def test_a_demand_has_the_messages_and_the_wishes_of_its_stretch(record: Record) -> None:
    demands = list(record.demands(EVERY_S, 3600.0))
    assert len(demands) == 48
    found = demands[20]
    rows, wishes = record.messages.to_pylist(), record.wishes.to_pylist()
    midnight = rows[0]["ts"].replace(hour=0, minute=0, second=0, microsecond=0)
    at = [(row["ts"] - midnight).total_seconds() for row in rows]
    counts = Counter(row["topic"] for row, t in zip(rows, at, strict=True) if 20 * EVERY_S <= t < 21 * EVERY_S)
    assert found.latest is not None
    named = dict(zip(found.latest.flow_names or (), found.latest.rates, strict=True))
    assert {flow: round(rate * EVERY_S) for flow, rate in named.items() if rate} == counts
    expected = set()
    for wish in wishes:
        since, until = ((t - midnight).total_seconds() if t else None for t in (wish["since"], wish["until"]))
        if (since is None or since < found.time) and (until is None or found.time <= until):
            expected |= {(flow, wish["subscriber"]) for flow in named if f"'{flow}'" in wish["profile"]}
    names, users = found.interest.flow_names or (), found.interest.user_names or ()
    pairs = zip(found.interest.flow_of_pair, found.interest.users, strict=True)
    assert {(names[k], users[u]) for k, u in pairs} == expected


def test_every_plan_of_a_replay_is_sound_and_the_timeline_adds_up(record: Record, tmp_path: Path) -> None:
    installed: list[PlannedMove] = []

    def install(move: PlannedMove) -> bool:
        installed.append(move)
        return True

    demands = list(record.demands(EVERY_S, 3600.0))
    begin = ContinuedChannels.begin(demands[0], ChannelSettings(4, 12))
    loop = Loop(begin, Policy(reorganise_s=None, effort=0.05), install, installed=begin.plan())
    for row in loop.run(demands):
        timeline.append(tmp_path, row)
    rows = timeline.read(tmp_path)
    assert len(rows) == 48
    assert tuple(rows[0]) == timeline.COLUMNS
    assert installed, "people commute"
    assert all(judge(move.plan).sound for move in installed)
    assert sum(row["replanned"] for row in rows) == len(installed) == timeline.summary(rows)["replans"]
    assert all(move.migration is not None and len(move.migration.moves) > 0 for move in installed)
    assert sum(row["now"] for row in rows) < sum(row["first"] for row in rows)
    page = report_page(installed[-1].plan, None, rows)
    assert "Over time" in page
    assert page.count('<circle class="dot"') >= 2 * len(installed)


def test_a_plan_that_is_not_taken_leaves_everything_as_it_was(record: Record) -> None:
    demands = list(record.demands(EVERY_S, 3600.0))
    begin = ContinuedChannels.begin(demands[0], ChannelSettings(4, 12))
    loop = Loop(begin, Policy(reorganise_s=None, effort=0.05), lambda move: False)
    rows = list(loop.run(demands))
    assert not any(row["replanned"] for row in rows)
    assert any(row["why"].startswith("rolled back") for row in rows)
    assert loop.state.present.session.tolist() == begin.session.tolist()


def run(*arguments: str) -> Any:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_the_command_replays_a_log_and_keeps_its_timeline(recorded: Path, tmp_path: Path) -> None:
    messages, wishes = str(recorded / "messages.parquet"), str(recorded / "wishes.parquet")
    given = ["--groups", "4", "--sessions", "12", "--every-s", "7200", "--out", str(tmp_path / "out"), "--json"]
    found = run("adapt", "--replay", messages, "--subscriptions", wishes, *given)
    assert len(found["timeline"]) == 12
    assert timeline.read(tmp_path / "out") == found["timeline"]


def test_what_cannot_be_replayed_is_told_in_one_line(record: Record, recorded: Path) -> None:
    with pytest.raises(InputError, match="no column 'venue'"):
        next(Record(record.messages, record.wishes, ("venue",)).demands(60.0, 60.0))
    backwards = record.messages.take(list(range(record.messages.num_rows))[::-1])
    with pytest.raises(InputError, match="ascending order of ts"):
        next(Record(backwards, record.wishes, ("topic",)).demands(60.0, 60.0))
    with pytest.raises(InputError, match="exactly one of --system and --replay"):
        CliRunner().invoke(app, ["adapt"], catch_exceptions=False)


def test_a_wish_that_cannot_be_read_is_set_aside_with_its_row_and_the_others_are_replayed(
    record: Record,
) -> None:
    texts = record.wishes["profile"].to_pylist()
    texts[-1] = "topic = ="
    wishes = record.wishes.set_column(record.wishes.column_names.index("profile"), "profile", [texts])
    aside = Quarantine()
    kept = usable_wishes(wishes, "wishes.parquet", aside)
    assert kept.num_rows + len(aside.rows) == wishes.num_rows
    assert [(file, row) for file, row, _ in aside.rows] == [("wishes.parquet", wishes.num_rows)]
    assert "unexpected '='" in aside.rows[0][2]
    assert next(Record(record.messages, kept, ("topic",)).demands(60.0, 60.0))
    with pytest.raises(InputError, match=f"wishes.parquet, row {wishes.num_rows}"):
        usable_wishes(wishes, "wishes.parquet", Quarantine(strict=True))


def test_times_of_wishes_may_be_texts_and_those_that_say_none_are_set_aside(record: Record, tmp_path: Path) -> None:
    lines = ["subscriber,profile,since,until", "a,topic = 't1',1970-01-02T00:00:00Z,", "b,topic = 't1',soon,"]
    (tmp_path / "wishes.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "days.csv").write_text("\n".join([*lines[:1], "a,topic = 't1',1970-01-02,1970-01-03"]) + "\n")
    wishes, days = (read_table(tmp_path / f"{name}.csv", name="wishes") for name in ("wishes", "days"))
    aside = Quarantine()
    kept = usable_wishes(wishes, "wishes.csv", aside)
    assert [row for _, row, _ in aside.rows] == [2]
    assert "since must be a time" in aside.rows[0][2]
    for given, until in ((kept, float("inf")), (days, 172800.0)):
        *_, since, ends = Record(record.messages, given, ("topic",))._wishes(["t1"], 0.0)
        assert (since.tolist(), ends.tolist()) == ([86400.0], [until])
    texts = record.messages.set_column(
        record.messages.column_names.index("ts"), "ts", [["noon"] * len(record.messages)]
    )
    with pytest.raises(InputError, match="every message must have a time"):
        next(Record(texts, kept, ("topic",)).demands(60.0, 60.0))
