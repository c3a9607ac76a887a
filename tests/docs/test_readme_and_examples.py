"""Every example runs as it stands, and no page has a link that leads nowhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def examples() -> list[Any]:
    """Every example; those on Spark go where the JVMs are."""
    found = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        on_spark = "narrowcast.data" in path.read_text(encoding="utf-8")
        found.append(pytest.param(path, id=path.stem, marks=[pytest.mark.spark] if on_spark else []))
    return found


@pytest.mark.snippets
@pytest.mark.parametrize("example", examples())
def test_every_example_runs_and_says_something(example: Path, tmp_path: Path) -> None:
    assert run([sys.executable, str(example)], tmp_path).strip()


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]), ids=lambda p: p.name)
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        if not link.startswith(("reference/", "contributing.md", "changelog.md")):  # the site makes and checks these
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
