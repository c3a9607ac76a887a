"""The commands do their job, and say the same to people and to programs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast
from narrowcast import cli


def as_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    assert cli.run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.csv"
    path.write_text("symbol,price\nIBM,101\nIBM,99\nMSFT,150\n,500\n")
    return path


def test_profile_compares_two(capsys) -> None:
    result = as_json(["profile", "price > 100", "price between 200 and 300"], capsys)
    assert result["profile"] == "price > 100"
    assert (result["covers"], result["covered"], result["overlaps"]) == (True, False, True)


def test_match_counts_each_profile(messages: Path, capsys) -> None:
    profiles = ["--profile", "symbol = 'IBM'", "--profile", "price > 100"]
    result = as_json(["match", str(messages), *profiles], capsys)
    assert (result["messages"], result["pairs"], result["messages_wanted"]) == (4, 5, 4)
    assert [(b["profile"], b["matches"]) for b in result["busiest"]] == [("price > 100", 3), ("symbol = 'IBM'", 2)]


def test_match_writes_the_pairs(messages: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "pairs.parquet"
    as_json(["match", str(messages), "--profile", "price > 100", "--out", str(out)], capsys)
    assert pq.read_table(out) == pa.table({"message": [0, 2, 3], "profile": [0, 0, 0]})


def test_a_bad_subscription_is_set_aside_and_counted(messages: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "subscriptions.csv"
    path.write_text("subscriber,profile\nann,price > 100\nbob,price >\ncid,\n")
    assert cli.run(["match", str(messages), "--subscriptions", str(path), "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert (result["profiles"], result["set_aside"]) == (1, 2)
    assert "row 2: the profile ends too early" in " ".join(captured.err.split())
    assert "row 3: profile must be text, got None" in " ".join(captured.err.split())


def test_people_see_a_table(messages: Path, capsys) -> None:
    assert cli.run(["match", str(messages), "--profile", "price > 100"]) == 0
    shown = capsys.readouterr().out
    assert "Busiest profiles" in shown
    assert "price > 100" in shown


def test_generate_writes_what_match_reads(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "market"
    small = ["--messages", "500", "--users", "20", "--set", "symbols=300"]
    made = as_json(["generate", "market", "--out", str(folder), *small], capsys)
    assert made["messages"]["rows"] == 500
    tables = [str(folder / "messages.parquet"), "--subscriptions", str(folder / "subscriptions.parquet")]
    result = as_json(["match", *tables], capsys)
    assert result["set_aside"] == 0
    assert result["pairs"] > 0


def test_the_same_seed_generates_the_same_files(tmp_path: Path, capsys) -> None:
    for name in ("a", "b"):
        small = ["--messages", "200", "--users", "10", "--set", "symbols=100", "--seed", "3"]
        as_json(["generate", "market", "--out", str(tmp_path / name), *small], capsys)
    for path in sorted((tmp_path / "a").glob("*.parquet")):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.parametrize("command", [[], ["profile"], ["match"], ["generate"], ["demo"]], ids=str)
def test_help_teaches(command: list[str], capsys) -> None:
    assert cli.run([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage: narrowcast" in shown
    if command in (["profile"], ["match"], ["generate"]):
        assert "Examples" in shown
        assert f"narrowcast {command[0]} " in shown


def test_version_is_printed(capsys) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"narrowcast {narrowcast.__version__}"


def test_a_profile_that_does_not_fit_is_set_aside_and_an_absent_column_is_said(tmp_path: Path, capsys) -> None:
    log, path = tmp_path / "messages.csv.gz", tmp_path / "subscriptions.csv"
    log.write_bytes(gzip.compress(b'symbol,price\nIBM,"101"\nIBM,""\nMSFT,150\n'))
    path.write_text("subscriber,profile\nann,price > 100\nbob,price = 'high'\ncid,Symbol = 'IBM'\n")
    assert cli.run(["match", str(log), "--subscriptions", str(path), "--json"]) == 0
    captured = capsys.readouterr()
    result, said = json.loads(captured.out), " ".join(captured.err.split())
    assert (result["profiles"], result["set_aside"], result["pairs"], result["matched_nothing"]) == (2, 1, 2, 1)
    assert "row 2: bob compares the column 'price' with text, but it holds a number: price = 'high'" in said
    assert "no column 'Symbol', so it is null in 1 profile: cid (did you mean 'symbol'?)" in said
    assert "1 of 2 profiles matched no message: Symbol = 'IBM' (cid)" in said


def test_a_url_for_out_is_refused(messages: Path, capsys) -> None:
    assert cli.run(["match", str(messages), "--profile", "price > 1", "--out", "s3a://bucket/pairs.parquet"]) == 2
    assert "out must be a folder on this machine, got s3a://bucket/pairs.parquet" in capsys.readouterr().err
