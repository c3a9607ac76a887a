"""`narrowcast plan channels` and `plan hybrid`: from tables to a checked plan folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from narrowcast import cli
from narrowcast.model.folder import read_tables


@pytest.fixture
def market(tmp_path: Path, capsys) -> Path:
    folder = tmp_path / "market"
    small = ["--messages", "10", "--users", "30", "--set", "symbols=400", "--format", "csv"]
    assert cli.run(["generate", "market", "--out", str(folder), *small, "--json"]) == 0
    capsys.readouterr()
    return folder


@pytest.mark.parametrize("kind", ["channels", "hybrid"])
def test_a_plan_is_written_checked_and_compared(kind: str, market: Path, tmp_path: Path, capsys) -> None:
    tables = [str(market / "flows.csv"), str(market / "interest.csv")]
    out = tmp_path / "plan"
    assert cli.run(["plan", kind, *tables, "--groups", "5", "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    plan = read_tables(out)
    assert plan.kind == "channels"
    assert ("unicast" in plan.tables) is (kind == "hybrid")
    assert plan.checks["sound"] is True
    assert plan.cost == result["cost"]
    assert {"flooding", "unicast", "perfect multicast", "hash"} <= set(plan.baselines)
    assert cli.run(["plan", kind, *tables, "--groups", "5", "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert cli.run(["plan", kind, *tables, "--groups", "5", "--out", str(out), "--overwrite"]) == 0
    assert "Against the other ways" in capsys.readouterr().out


def test_a_hybrid_with_sessions_is_written_checked_and_explained(market: Path, tmp_path: Path, capsys) -> None:
    tables, out = [str(market / "flows.csv"), str(market / "interest.csv")], str(tmp_path / "plan")
    more = ["--groups", "5", "--sessions", "20", "--beta", "0.5", "--weights", "1", "1", "3"]
    assert cli.run(["plan", "hybrid", *tables, *more, "--out", out, "--json"]) == 0
    plan = read_tables(out)
    assert plan.checks["sound"] is True
    assert plan.parameters["sessions"] == 20
    groups, sessions = (set(plan.tables["session_group"][name].to_pylist()) for name in ("group", "session"))
    assert len(groups) < len(sessions) <= 20
    assert plan.lower_bound <= plan.cost["total"] <= min(plan.baselines[name] for name in ("unicast", "hash"))
    for command in (
        ["check", out],
        ["explain", out, "--session", "0"],
        ["report", out, "--out", str(tmp_path / "page.html")],
    ):
        assert cli.run(command) == 0
    assert cli.run(["whatif", out, "--cap", "0.1"]) == 2
    assert "beta, got 'cap'" in capsys.readouterr().err


def test_bad_rows_are_set_aside_beside_the_plan(market: Path, tmp_path: Path, capsys) -> None:
    with (market / "interest.csv").open("a") as stream:
        stream.write("NOSUCH,user1\n")
    tables = [str(market / "flows.csv"), str(market / "interest.csv")]
    out = tmp_path / "plan"
    assert cli.run(["plan", "channels", *tables, "--groups", "5", "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["set_aside"] == 1
    assert "flow is not in the flows table" in captured.err
    assert (out / "quarantine.parquet").is_file()
    assert cli.run(["plan", "channels", *tables, "--groups", "5", "--strict"]) == 2


def test_a_limit_that_cannot_be_kept_is_a_failure_that_names_it(market: Path, capsys) -> None:
    tables = [str(market / "flows.csv"), str(market / "interest.csv")]
    assert cli.run(["plan", "channels", *tables, "--groups", "5", "--rate-per-group", "0.001"]) == 3
    assert "rate_per_group" in capsys.readouterr().err.replace("rate per group", "rate_per_group")


def test_calibrate_finds_the_prices_that_made_the_measurements(tmp_path: Path, capsys) -> None:
    path = tmp_path / "measured.csv"
    path.write_text("accepted,discarded,cpu\n1,3,6\n2,1,7\n3,0,9\n")
    assert cli.run(["calibrate", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["alpha"], found["beta"]) == (pytest.approx(1), pytest.approx(2))


def test_a_plan_stays_near_the_previous_one_and_keeps_pins_and_entitlements(
    market: Path, tmp_path: Path, capsys
) -> None:
    tables = [str(market / "flows.csv"), str(market / "interest.csv"), "--groups", "5", "--sessions", "12", "--json"]
    first, second, third = (str(tmp_path / name) for name in ("first", "second", "third"))
    assert cli.run(["plan", "channels", *tables, "--method", "gf", "--out", first]) == 0
    assert cli.run(["plan", "channels", *tables, "--previous", first, "--moves", "7", "--out", second]) == 0
    old, new = (
        dict(zip(*(t[c].to_pylist() for c in ("flow", "session")), strict=True))
        for t in (read_tables(first).tables["flow_session"], read_tables(second).tables["flow_session"])
    )
    assert 0 < sum(old[flow] != new[flow] for flow in old) <= 7
    assert read_tables(second).cost["excess"] < read_tables(first).cost["excess"]
    a, b, c = list(old)[:3]
    (tmp_path / "pin.csv").write_text(f"flow,group\n{a},4\n")
    (tmp_path / "apart.csv").write_text(f"flow,other\n{a},{b}\n{b},{c}\n")
    limits = ["--pin", str(tmp_path / "pin.csv"), "--apart", str(tmp_path / "apart.csv"), "--out", third]
    assert cli.run(["plan", "channels", *tables, *limits]) == 0
    session_group = read_tables(third).tables["session_group"]
    group_of = dict(zip(*(session_group[c].to_pylist() for c in ("session", "group")), strict=True))
    where = {
        flow: group_of[session]
        for flow, session in zip(*read_tables(third).tables["flow_session"].to_pydict().values(), strict=True)
    }
    assert where[a] == 4
    assert where[b] not in (where[a], where[c])
    capsys.readouterr()
    assert cli.run(["plan", "channels", *tables, "--moves", "3"]) == 2
    assert "--previous" in capsys.readouterr().err
    (tmp_path / "pin.csv").write_text("flow,group\nNOSUCH,4\n")
    assert cli.run(["plan", "channels", *tables, "--pin", str(tmp_path / "pin.csv")]) == 2
    assert "NOSUCH" in capsys.readouterr().err
