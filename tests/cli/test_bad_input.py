"""Bad input gets one clear line that says what, where and how to fix it, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from narrowcast import cli


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.parquet"
    pq.write_table(pa.table({"symbol": ["IBM", "MSFT"], "price": [101.0, 99.0]}), path)
    return path


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.run(arguments) == 2
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert len(lines) == 1
    assert lines[0].startswith("narrowcast: ")
    return lines[0]


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ("prise > 100", "no column 'prise'"),
        ("price > > 3", "unexpected '>' at offset 8"),
        ("symbol = 'IBM", "unclosed quote at offset 9"),
        ("symbol = '" + "x" * 5000 + "'", "at most 4096 bytes, got"),
        (" OR ".join(f"price = {i}" for i in range(200)), "at most 64 terms, got 200"),
        ("symbol IN (" + ",".join(f"'{i}'" for i in range(10_001)) + ")", "at most 10,000 values"),
        ("symbol LIKE '" + "%" * 4090 + "'", "at most 4096 bytes, got"),
        ("price > 'cheap'", "column 'price' has type double"),
        ("symbol > 5", "column 'symbol' has type string"),
        ("price > symbol", "expected a constant"),
        ("(" * 1000 + "price > 1" + ")" * 1000, "nested more than 16 deep"),
        ("", "the profile is empty"),
        (" AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(10)), "150"),
    ],
    ids=lambda text: text[:24],
)
def test_a_profile_that_cannot_be_used(messages: Path, capsys, profile: str, says: str) -> None:
    assert says in refused(["match", str(messages), "--profile", profile], capsys)


def test_a_pattern_of_many_wildcards_is_no_trouble(messages: Path, capsys) -> None:
    assert cli.run(["match", str(messages), "--profile", f"symbol LIKE '{'%' * 2000}M'", "--json"]) == 0
    assert '"pairs": 1' in capsys.readouterr().out


def test_an_empty_file(tmp_path: Path, capsys) -> None:
    path = tmp_path / "messages.csv"
    path.touch()
    assert f"{path}: the file is empty" in refused(["match", str(path), "--profile", "a = 1"], capsys)


def test_a_folder_where_a_file_is_expected(messages: Path, capsys) -> None:
    line = refused(["match", str(messages.parent), "--profile", "a = 1"], capsys)
    assert "a folder where the messages file is expected" in line
    assert str(messages) in line


def test_a_file_that_is_not_there(tmp_path: Path, capsys) -> None:
    assert "no such file" in refused(["match", str(tmp_path / "none.csv"), "--profile", "a = 1"], capsys)


def test_a_missing_column_in_the_subscriptions(messages: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "subscriptions.csv"
    path.write_text("subscriber,profil\nann,price > 3\n")
    line = refused(["match", str(messages), "--subscriptions", str(path)], capsys)
    assert "no column 'profile'; it has subscriber, profil" in line


def test_strict_names_the_first_bad_row(messages: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "subscriptions.csv"
    path.write_text("subscriber,profile\nann,price > 3\nbob,price >\n")
    line = refused(["match", str(messages), "--subscriptions", str(path), "--strict"], capsys)
    assert f"{path}, row 2: the profile ends too early" in line


def test_neither_and_both_ways_to_give_profiles(messages: Path, capsys) -> None:
    assert "exactly one of --profile and --subscriptions" in refused(["match", str(messages)], capsys)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["frobnicate"], "frobnicate"),
        (["match"], "messages"),
        (["profile", "a = 1", "--colour"], "--colour"),
        (["generate", "chaos", "--out", "x"], "workload must be one of 'market'"),
        (["generate", "market", "--out", "x", "--set", "symbols"], "--set expects NAME=VALUE"),
        (["generate", "market", "--out", "x", "--set", "sybmols=3"], "sybmols"),
        (["generate", "market", "--out", "x", "--set", "markets=many"], "whole number"),
        (["generate", "market", "--out", "x", "--messages", "some"], "--messages must be a valid integer"),
    ],
    ids=lambda value: "-".join(value)[:30] if isinstance(value, list) else "",
)
def test_a_wrong_command_line(arguments: list[str], says: str, capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refused(arguments, capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_full_folder_is_never_written_over(tmp_path: Path, capsys) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert "not empty" in refused(["generate", "market", "--out", str(tmp_path), "--messages", "10"], capsys)
    assert "will not be overwritten" in refused(
        ["generate", "market", "--out", str(tmp_path), "--messages", "10", "--overwrite"], capsys
    )
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_an_interface_that_is_not_there_is_named_before_measuring(capsys) -> None:
    assert cli.run(["calibrate", "--interface", "nope0"]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "interface nope0 does not exist" in lines[0]
