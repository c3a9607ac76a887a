"""The documentation site builds without a warning, is complete, and asks nothing of any other host."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import pytest
import typer

import narrowcast as nc
from narrowcast.cli.app import app

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return out


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loads = re.findall(r"<(?:script|img|iframe|source)[^>]+src=\"(?:https?:)?//[^\"]+", text)
        loads += re.findall(r"<link[^>]+href=\"(?:https?:)?//[^\"]+", text)
        assert loads == [], page.name
        assert 'class="mermaid"' not in text  # the theme would fetch the program that draws it


def test_every_command_and_every_public_name_has_its_place_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
        assert f'id="narrowcast-{name}"' in text, name
    assert "NARROWCAST_SYSTEM" in text
    text = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in nc.__all__:
        assert f'id="nc{name.lower()}"' in text or name == "__version__", name


def test_every_page_under_docs_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}" in listed, page.name


def test_the_figures_of_delivery_are_those_that_the_benchmark_found() -> None:
    path = ROOT / "benchmarks" / "speed" / "delivery.py"
    spec = importlib.util.spec_from_file_location("delivery_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    delivery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(delivery)
    found = json.loads((ROOT / "docs" / "results" / "delivery.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert text.count(f"{delivery.BEGIN}\n{delivery.page(found)}\n{delivery.END}") == 1


def test_every_verb_of_the_package_says_what_it_takes_gives_and_raises_with_an_example() -> None:
    verbs = [name for name in nc.__all__ if inspect.isroutine(getattr(nc, name))]
    assert {"plan", "load", "save", "check", "explain", "up", "connect"} <= set(verbs)
    for name in verbs:
        text = inspect.getdoc(getattr(nc, name)) or ""
        missing = [part for part in ("Parameters\n--", "Returns\n--", "Raises\n--") if part not in text]
        assert missing == [], name
        assert ">>> " in text or "\n    with " in text or "Example\n--" in text, name


def test_every_method_in_the_reference_says_what_it_does() -> None:
    """A method without a docstring is left out of the page; those that fulfil a protocol are told of there."""
    told = {"pieces", "sent", "side_by_side", "measure"}
    rooms = [nc, nc.channels, nc.filters, nc.queries, nc.semantic, nc.workloads]
    classes = {value for room in rooms for name in room.__all__ if isinstance(value := getattr(room, name), type)}
    kinds = (property, cached_property, classmethod)
    silent = [
        f"{cls.__name__}.{name}"
        for cls in classes
        for name, value in vars(cls).items()
        if not name.startswith("_") and name not in told and not inspect.getdoc(value)
        if inspect.isroutine(value) or isinstance(value, kinds)
    ]
    assert sorted(silent) == []
