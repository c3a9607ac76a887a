"""The commands on Spark, as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def narrowcast(*words: object) -> subprocess.CompletedProcess[str]:
    code = "from narrowcast.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=500)


@pytest.mark.long
@pytest.mark.spark
def test_measure_writes_a_folder_and_says_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("flow,rate\na,1\nb,2\nc,-1\n")
    (tmp_path / "interest.csv").write_text("flow,subscriber\na,x\nb,x\n")
    done = narrowcast("measure", tmp_path, "--out", tmp_path / "out", "--master", "local[1]", "--explain", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["set_aside"] == {"flows": 1, "interest": 0}
    assert "1 bad rows set aside" in done.stderr
    assert "audiences" in done.stderr
    assert (tmp_path / "out" / "manifest.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("measure", "nowhere", "--out", "out"), "nowhere: no such folder"),
        (("measure", ".", "--out", "out"), "no input table here"),
        (("measure", "nowhere"), "Missing option '--out'"),
        (("measure", "tables", "--out", "out", "--half-life-s", "-1"), "half_life_s must be above 0, got -1.0"),
        (
            ("measure", "tables", "--out", "out", "--type", "price=money"),
            "the type of 'price' must be one of bigint (int, integer, long, int64), double",
        ),
        (
            ("measure", "tables", "--out", "out", "--key", "a,,b"),
            "columns must be names such as symbol,venue, got 'a,,b'",
        ),
        (("replay", "plan", "log.parquet"), "replay needs exactly one of subscriptions and interest"),
        (("measure", "tables", "--out", "o", "--key", "a", "--classes"), "--key and --classes cannot be used together"),
        (
            ("measure", "log", "--out", "out", "--key", "symbl"),
            "got 'symbl'; they have symbol, price (did you mean",
        ),
        (("measure", "log", "--out", "out", "--type", "double"), "--type must be NAME=TYPE, e.g. price=double"),
        (
            ("measure", "log", "--out", "out", "--type", "Price=int"),
            "got 'Price'; they have symbol, price (did you mean",
        ),
        (("measure", "log", "--out", "out", "--grid", "prise"), "grid must be columns of the messages, got 'prise'"),
        (("measure", "log", "--out", "out"), "nothing can be measured from messages alone"),
        (
            ("measure", "log", "--out", "ftp://b/out"),
            "out must be a folder, or a URL of s3, s3a, gs, hdfs, file, got ftp",
        ),
        (("replay", "plan", "m.csv", "--interest", "i.csv", "--out", "ftp://h/o"), "hdfs, file, got ftp://h/o"),
        (("answer", "q.csv", "t.csv", "--out", "ftp://b/o"), "out must be a folder, or a URL of s3, s3a"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "flows.csv").write_text("flow,rate\na,1\n")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "messages.csv").write_text("symbol,price\nIBM,1\n")
    done = narrowcast(*words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.spark
@pytest.mark.nightly
def test_channels_are_planned_on_spark_when_asked(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("flow,rate\na,1\nb,2\nc,-1\n")
    (tmp_path / "interest.csv").write_text("flow,subscriber\na,x\nb,x\nb,y\n")
    tables = (tmp_path / "flows.csv", tmp_path / "interest.csv")
    few = ("--groups", 2, "--sessions", 2)
    done = narrowcast("plan", "channels", *tables, *few, "--master", "local[1]", "--out", tmp_path / "plan", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["made_on"], result["set_aside"], result["cost"]["excess"]) == ("driver", 1, 0.0)
    assert (tmp_path / "plan" / "plan.json").is_file()


def test_limits_are_refused_on_spark_before_it_starts(tmp_path: Path) -> None:
    done = narrowcast("plan", "channels", "f.csv", "i.csv", "--master", "local[1]", "--time-limit", "5")
    assert done.returncode == 3
    assert "Spark does not support limits or time limits yet" in done.stderr


@pytest.mark.long
@pytest.mark.spark
def test_measure_takes_the_key_that_the_workload_says_and_classes_when_asked(tmp_path: Path) -> None:
    from narrowcast import workloads

    workloads.write("market", tmp_path / "market", messages=200, users=8, symbols=30, format="csv")
    done = narrowcast("measure", tmp_path / "market", "--out", tmp_path / "out", "--master", "local[1]")
    assert done.returncode == 0, done.stderr
    assert "Flows by symbol" in done.stdout
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["key"] == ["symbol"]
    where = ("--master", "local[1]", "--json", "--half-life", 600)
    done = narrowcast("measure", tmp_path / "market", "--out", tmp_path / "classes", "--classes", *where)
    assert done.returncode == 0, done.stderr
    assert "--half-life is now --half-life-s" in done.stderr
    assert json.loads(done.stdout)["key"] == []
    assert (tmp_path / "classes" / "classes.parquet").is_file()
