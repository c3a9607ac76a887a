"""The files under examples/deploy fit together: what they run, mount and name is there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from narrowcast import cli
from narrowcast.deliver.processes.system import System

DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"
ROLES = {"coordinator", "source", "broker", "edge"}


def services() -> dict[str, dict]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def test_every_service_runs_a_role_with_a_file_that_is_mounted_and_has_its_table() -> None:
    for name, service in services().items():
        mounts = dict(mount.split(":")[:2] for mount in service["volumes"])
        for host in mounts:
            if host.startswith("..") and not host.endswith("/plan"):  # the plan is made by the first command
                assert (DEPLOY / host).exists(), host
        inside = {target: host for host, target in mounts.items()}
        config = service["command"][-1]
        assert (DEPLOY / inside[config]).is_file(), config
        if name != "nats":
            role = service["command"][0]
            assert role in ROLES
            assert getattr(System.read(DEPLOY / inside[config]), role).name


def test_nats_has_the_address_that_the_files_name() -> None:
    address = services()["nats"]["networks"]["narrowcast"]["ipv4_address"]
    assert f"@{address}:" in System.read(DEPLOY / ".." / "three-hosts" / "host-1.toml").nats


def test_the_image_copies_what_building_needs_and_installs_extras_that_exist() -> None:
    kept = {line[1:] for line in (DEPLOY / "Containerfile.dockerignore").read_text().splitlines() if line[0] == "!"}
    assert kept == {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src"}
    assert all((DEPLOY / ".." / ".." / path).exists() for path in kept)
    assert '"$wheel[runtime,dds]"' in (DEPLOY / "Containerfile").read_text()


def test_units_run_commands_that_there_are(tmp_path: Path, capsys) -> None:
    unit = (DEPLOY / "systemd" / "narrowcast@.service").read_text()
    for role in ROLES:
        assert cli.run([role, "--help"]) == 0
    assert "Environment=NARROWCAST_CONFIG=" in unit
    assert "preflight --role %i" in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_finds_no_fault_in_the_units(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "narrowcast").write_text("#!/bin/sh\n")
    (programs / "narrowcast").chmod(0o755)
    for unit in (DEPLOY / "systemd").glob("*.service"):
        text = unit.read_text().replace("/opt/narrowcast/bin", str(programs)).replace("User=narrowcast", "User=root")
        (tmp_path / unit.name).write_text(text)
        done = subprocess.run(["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True)
        about_ours = [line for line in done.stderr.splitlines() if unit.stem in line or str(tmp_path) in line]
        assert about_ours == [], done.stderr
