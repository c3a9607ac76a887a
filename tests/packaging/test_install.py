"""Wheel and source archive install into fresh environments: with nothing, with each extra, with all; and work there."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
TABLES = ["generate market --out market --messages 500 --subscribers 20 --set symbols=500"]
REAL = "--messages 50 --subscribers 10 --set model=topohub:sndlib/germany50"
PLAN = ["plan channels market --groups 4 --sessions 10 --time-limit 2 --out plan", "check plan"]
DELIVERED = ["publish market/messages.parquet --limit 50", "subscribe 'price>0' --from-start --limit 1", "down"]
# What works with an extra beside `--version`, `--help` and the tables.
WORKS = {
    "": ["profile 'a > 1'", *PLAN, "report plan --out r.html", "explain plan --group 0",
         "export plan --to nats --out nats", "adapt --replay market/messages.parquet --subscriptions "
         "market/subscriptions.parquet --every-s 1 --groups 3 --sessions 5"],
    "spark": ["measure market --out measured"],
    "connect": [],
    "spark,jre": ["measure market --out measured"],
    "topologies": [f"generate overlay --out overlay {REAL}"],
    "plots": ["plan channels market --groups 4 --sessions 10 --time-limit 2 --picture p.png"],
    "runtime": [*PLAN, "up plan --no-multicast --detach", *DELIVERED],
    "runtime,dds": [*PLAN, "up plan --detach", *DELIVERED],
    "dds": [],
    "console": [],
    "otel": [],
    "all": ["measure market --out measured", "plan channels measured --groups 4 --sessions 10 --out plan "
            "--picture p.png", "up plan --detach", *DELIVERED],
}  # fmt: skip
# What names the extra that it lacks, with the extras beside which it is tried.
LACKS = {
    "measure market --out m": ("spark", ["", "console", "topologies"]),
    "measure market --out m --master sc://localhost:1": ("connect", ["spark"]),
    "replay plan market --out r": ("spark", ["", "runtime"]),
    "up plan --no-multicast": ("runtime", [""]),
    "subscribe 'price > 1' --system nats://127.0.0.1:1": ("runtime", ["", "dds", "connect"]),
    "up plan": ("dds", ["runtime"]),
    "calibrate": ("dds", ["", "plots", "otel", "console"]),
    "console --system nats://127.0.0.1:1": ("runtime", ["console"]),
    "console": ("console", ["", "runtime", "runtime,dds"]),
    f"generate overlay --out overlay {REAL}": ("topologies", ["", "spark,jre"]),
    "plan channels market --groups 4 --sessions 10 --time-limit 2 --picture p.png": ("plots", ["", "runtime"]),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder of a wheel and a source archive."""
    out = tmp_path_factory.mktemp("dist")
    command = [str(BIN / "uv"), "build", "--quiet", "--no-build-isolation", "--python", sys.executable]
    env = os.environ | {"NARROWCAST_HOME_URL": "https://example.org/narrowcast/"}
    subprocess.run([*command, "--out-dir", str(out), str(ROOT)], check=True, env=env)
    return out


def test_the_wheel_says_what_indexes_show(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        about = message_from_string(wheel.read(next(n for n in names if n.endswith("METADATA"))).decode())
    assert "narrowcast/py.typed" in names
    assert not [name for name in names if name.startswith(("tests", "studies", "benchmarks", "hatch_build"))]
    assert {f"Programming Language :: Python :: 3.{n}" for n in (11, 12, 13)} <= set(about.get_all("Classifier"))
    assert "Changelog, https://example.org/narrowcast/blob/main/CHANGELOG.md" in about.get_all("Project-URL")
    shown = about.get_payload()
    assert "](https://example.org/narrowcast/raw/main/docs/pictures/overview.svg)" in shown
    assert "](docs/" not in shown
    assert not [classifier for classifier in about.get_all("Classifier") if "Private" in classifier]


def test_the_source_archive_has_what_building_needs(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src/narrowcast/py.typed"} <= names


def pythons() -> list[str]:
    """The supported versions that are on this machine."""
    found = []
    for version in ("3.11", "3.12", "3.13"):
        done = subprocess.run([str(BIN / "uv"), "python", "find", "--no-python-downloads", "--system", version],
                              capture_output=True, text=True, check=False)  # fmt: skip
        found += [done.stdout.strip()] if done.returncode == 0 else []
    return found


def installed(python: str, what: str, folder: Path) -> Path:
    subprocess.run([str(BIN / "uv"), "venv", "--quiet", "--python", python, str(folder)], check=True)
    command = [str(BIN / "uv"), "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), what]
    subprocess.run(command, check=True)
    return folder / "bin"


def run(programs: Path, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    env["PATH"] = f"{programs}:/usr/bin:/bin"
    return subprocess.run(f"narrowcast {command}", shell=True, cwd=folder, env=env, capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("extra", WORKS, ids=lambda extra: extra or "none")
@pytest.mark.parametrize("python", pythons(), ids=lambda path: Path(path).parts[-3])
def test_each_extra_installs_alone_and_its_commands_work(python: str, extra: str, built: Path, tmp_path: Path) -> None:
    wheel = next(built.glob("*.whl"))
    programs = installed(python, f"{wheel}[{extra}]" if extra else str(wheel), tmp_path / "venv")
    try:
        for command in ["--version", "--help", *TABLES, *WORKS[extra]]:
            done = run(programs, command, tmp_path)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        for command, lacking in ((c, lacking) for c, (lacking, beside) in LACKS.items() if extra in beside):
            done = run(programs, command, tmp_path)
            assert done.returncode == 3, f"{command}\n{done.stdout}\n{done.stderr}"
            assert done.stderr.count("\n") == 1, done.stderr
            assert f"pip install 'narrowcast[{lacking}]'" in done.stderr, f"{command}\n{done.stderr}"
    finally:
        run(programs, "down", tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_source_archive_installs(built: Path, tmp_path: Path) -> None:
    programs = installed(sys.executable, str(next(built.glob("*.tar.gz"))), tmp_path / "venv")
    for command in ["--version", "--help", *TABLES, *WORKS[""]]:
        done = run(programs, command, tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
