"""What all commands have in common: lists, environment variables, -v anywhere, exit codes that mean one thing."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console

import narrowcast as nc
from narrowcast import cli
from narrowcast.cli.app import app
from narrowcast.cli.output import table
from narrowcast.errors import InfeasibleError, InputError, PlanError, TransportError, UnsupportedError

ERRORS: dict[BaseException, int] = {
    InputError("x must be y"): 2,
    PlanError("no plan"): 3,
    InfeasibleError("too few", budget="groups"): 3,
    UnsupportedError("not yet"): 3,
    TransportError("no answer"): 3,
    PermissionError(13, "Permission denied", "/there"): 3,
    ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"): 3,
    ModuleNotFoundError("No module named 'nowhere'", name="nowhere"): 4,
    ZeroDivisionError("division by zero"): 4,
    KeyboardInterrupt(): 130,
    BrokenPipeError(): 0,
}


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0])
    nc.plan(interest, groups=2, sessions=2, method="gf").save(tmp_path / "plan")
    return tmp_path / "plan"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{type(error).__name__}-{error}"[:40])
def test_each_exit_code_means_one_thing(error: BaseException, capfd, monkeypatch) -> None:
    failing = typer.Typer()

    @failing.command()
    def fails() -> None:
        raise error

    monkeypatch.setattr(cli, "_unread", lambda: 0)  # it would close our own standard output
    code = cli.run([], failing)
    said = capfd.readouterr().err
    assert code == ERRORS[error]
    if code in (2, 3, 130):
        assert said.count("\n") == 1
        assert said.startswith("narrowcast: ")
    if code == 4:
        assert "Traceback" in said
        assert "please report it" in said


def test_a_missing_part_is_named_with_the_extra_that_brings_it_brackets_and_all(capfd) -> None:
    failing = typer.Typer()

    @failing.command()
    def measure() -> None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    assert cli.run([], failing) == 3
    assert "which is not installed: pip install 'narrowcast[spark]'" in capfd.readouterr().err


def test_every_extra_that_is_named_is_declared() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for package, extra in cli.EXTRAS.items():
        brought = [name.replace("-", "_").replace("nats_py", "nats").replace("pyzmq", "zmq") for name in extras[extra]]
        assert any(name.startswith(package) for name in brought), (package, extra)
    everything = {name for name in extras if name != "all"}
    assert extras["all"] == [f"narrowcast[{','.join(name for name in extras if name != 'all')}]"], everything


@pytest.mark.parametrize("place", range(4))
def test_verbose_works_anywhere_on_the_line(place: int, plan: Path, monkeypatch, capsys) -> None:
    levels: list[int] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **given: levels.append(given["level"]))
    words = ["check", str(plan), "--json"]
    assert cli.run([*words[:place], "-v", *words[place:]]) == 0
    assert cli.run(words) == 0
    assert levels == [logging.INFO, logging.WARNING]


def test_a_word_after_two_dashes_is_no_option() -> None:
    assert cli.run(["profile", "--", "-v"]) == 2
    assert cli.verbose_first(["profile", "--", "-v"]) == ["profile", "--", "-v"]


def test_the_system_comes_from_the_environment_and_the_option_wins(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("NARROWCAST_SYSTEM", str(tmp_path / "of-the-environment"))
    assert cli.run(["down"]) == 2
    assert "of-the-environment" in capsys.readouterr().err
    assert cli.run(["down", "--system", str(tmp_path / "of-the-option")]) == 2
    assert "of-the-option" in capsys.readouterr().err
    assert cli.run(["adapt"]) == 2
    assert "of-the-environment" in capsys.readouterr().err
    monkeypatch.setenv("NARROWCAST_CONFIG", str(tmp_path / "system.toml"))
    assert cli.run(["preflight"]) == 2
    assert "system.toml" in capsys.readouterr().err


def test_every_command_that_talks_to_a_system_knows_the_variable() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        for option in getattr(command, "params", ()):
            if "--system" in option.opts and name != "adapt":
                assert option.envvar == "NARROWCAST_SYSTEM", name
            if "--config" in option.opts:
                assert option.envvar == "NARROWCAST_CONFIG", name


def test_lists_have_commas_in_every_command(plan: Path, tmp_path: Path, capsys) -> None:
    assert cli.run(["whatif", str(plan), "--groups", "1,2", "--workers", "1", "--json"]) == 0
    assert [point["groups"] for point in json.loads(capsys.readouterr().out)["points"]] == [1, 2]
    assert cli.run(["whatif", str(plan), "--groups", "1;2"]) == 2
    assert "--groups must be numbers, as 10,20,50, got '1;2'" in capsys.readouterr().err
    small = ["--messages", "10", "--subscribers", "5"]
    assert cli.run(["generate", "market", "--out", str(tmp_path / "m"), *small, "--set", "symbols=300,markets=3"]) == 0
    capsys.readouterr()
    market = ["plan", "hybrid", str(tmp_path / "m"), "--groups", "2", "--json"]
    assert cli.run([*market, "--weights", "1,1,3"]) == 0
    new = json.loads(capsys.readouterr().out)["cost"]
    assert cli.run([*market, "--weights", "1", "1", "3"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["cost"] == new
    assert "write --weights 1,1,3" in told.err
    assert cli.run([*market, "--weights", "1,1"]) == 2
    assert "--weights must be 3 numbers, as 1,1,1, got '1,1'" in capsys.readouterr().err


def test_the_page_on_the_command_line_has_every_exit_code_and_variable() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    for code in {*ERRORS.values(), 1}:
        assert f"| {code} |" in page
    for name in sorted(sys.modules["narrowcast.cli.deliver.running"].__dict__):
        if name in ("SYSTEM", "CONFIG", "INTERFACE"):
            assert f"`NARROWCAST_{name}`" in page


def test_the_title_of_a_narrow_table_stays_on_one_line() -> None:
    told = io.StringIO()
    Console(file=told, width=80).print(
        table("Choices, by excess cost at subscribers (10 of 114)", ("a", "b"), [(1, 2)])
    )
    assert told.getvalue().splitlines()[0].strip() == "Choices, by excess cost at subscribers (10 of 114)"


@pytest.mark.parametrize(
    "command", ["measure market --out m", "measure market --out m --master sc://h:1", "replay p m"]
)
def test_a_missing_spark_is_said_alike_wherever_it_is_met_first(command: str, tmp_path: Path) -> None:
    code = ("import sys; sys.modules['pyspark'] = None\nfrom narrowcast import cli\n"
            "try:\n    import narrowcast.data.spark.session\nexcept Exception as error:\n"
            f"    print(type(error).__name__, error)\nsys.exit(cli.run({command.split()!r}))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout.split()[0]) == (3, "UnsupportedError"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "pip install 'narrowcast[spark]'" in done.stdout
    assert "pip install 'narrowcast[spark]'" in done.stderr


def test_preflight_refuses_a_role_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "host.toml").write_text('nats = "nats://127.0.0.1:1"\n', encoding="utf-8")
    assert cli.run(["preflight", "--config", str(tmp_path / "host.toml"), "--role", "sorce"]) == 2
    assert "role must be one of coordinator, source, broker, relay, edge, gate, got 'sorce'" in capsys.readouterr().err
