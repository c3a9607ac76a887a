"""Every command and every snippet that the README shows, and every example, runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(command: list[str] | str, folder: Path) -> str:
    env = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "120", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        command, shell=isinstance(command, str), cwd=folder, env=env, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_command_of_the_readme_runs_in_order(tmp_path: Path) -> None:
    lines = [line for block in blocks(ROOT / "README.md", "sh") for line in block.replace("\\\n", " ").splitlines()]
    commands = [line for line in lines if line.startswith("narrowcast ")]
    assert commands
    try:
        for command in commands:
            assert run(command, tmp_path)
    finally:
        # Should it have stopped half-way, what `narrowcast up` started must not outlive it.
        subprocess.run([str(BIN / "narrowcast"), "down"], cwd=tmp_path, capture_output=True, check=False)


def test_every_python_block_of_the_readme_runs(tmp_path: Path) -> None:
    code = "\n".join(blocks(ROOT / "README.md", "python"))
    assert "import narrowcast" in code
    run([sys.executable, "-c", code], tmp_path)


def test_every_make_target_the_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def examples() -> list[Any]:
    """Every example; those on Spark go where the JVMs are."""
    found = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        on_spark = "narrowcast.data" in path.read_text(encoding="utf-8")
        found.append(pytest.param(path, id=path.stem, marks=[pytest.mark.spark] if on_spark else []))
    return found


@pytest.mark.parametrize("example", examples())
def test_every_example_runs_and_says_something(example: Path, tmp_path: Path) -> None:
    assert run([sys.executable, str(example)], tmp_path).strip()


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]), ids=lambda p: p.name)
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"
