"""The house itself: light to import, every public name there, errors that travel."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import narrowcast as nc
from narrowcast import errors
from narrowcast.plans.kinds import KINDS

SRC = Path(nc.__file__).parent
MOST_FILES, MOST_LINES = 20, 79_450


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_importing_narrowcast_loads_no_heavy_guest() -> None:
    loaded = python("import narrowcast, sys; print(*sys.modules)").split()
    heavy = {"numba", "pyspark", "socket", "asyncio", "numpy", "pyarrow", "rustworkx", "scipy", "pandas"}
    assert heavy.isdisjoint(loaded)


def test_importing_narrowcast_takes_less_than_a_third_of_a_second() -> None:
    timed = "import time; t = time.perf_counter(); import narrowcast; print(time.perf_counter() - t)"
    assert min(float(python(timed)) for _ in range(5)) < 0.3


def test_profiles_need_neither_numba_nor_arrow() -> None:
    code = "import narrowcast as nc, sys; nc.Profile.parse('a > 1').matches({'a': 2}); print(*sys.modules)"
    assert {"numba", "pyarrow", "pyspark"}.isdisjoint(python(code).split())


@pytest.mark.parametrize("name", [n for n in nc.__all__ if not n.startswith("_")])
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(nc, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        nc.nonsense  # noqa: B018


@pytest.mark.parametrize(
    "error",
    [
        errors.InputError("rates[3] is -1", name="rates", got=-1, hint="drop the row"),
        errors.ProfileError("expected a value", text="a >", position=3),
        errors.InfeasibleError("needs 3 groups", budget="groups", smallest=3),
        errors.UnsupportedError("no such method", works=("search",)),
        errors.TransportError("refused", group="239.0.0.1", limit=20),
    ],
    ids=lambda e: type(e).__name__,
)
def test_errors_survive_the_way_back_from_a_worker(error: errors.NarrowcastError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_every_class_has_a_name_of_its_own() -> None:
    names = Counter(
        node.name
        for path in SRC.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, n in names.items() if n > 1] == []


def test_no_folder_is_a_flat_list() -> None:
    folders = Counter(path.parent for path in SRC.rglob("*.py"))
    assert {str(folder): n for folder, n in folders.items() if n > MOST_FILES} == {}


def test_no_room_looks_into_a_private_part_of_another() -> None:
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("narrowcast"):
                continue
            home = Path(*node.module.split(".")[1:])
            private = [part for part in home.parts if part.startswith("_")]
            private += [
                alias.name for alias in node.names if alias.name.startswith("_") and alias.name != "__version__"
            ]
            same = path.parent == SRC / home.parent or path.parent == SRC / home
            assert same or not private, f"{path.relative_to(SRC)} imports {private} of {node.module}"


def test_the_package_stays_small_enough_to_read() -> None:
    assert sum(len(path.read_text().splitlines()) for path in SRC.rglob("*.py")) <= MOST_LINES


def test_a_plan_folder_is_decoded_by_its_result_and_its_judge_alone() -> None:
    """Whoever else indexes the tables of a plan reads them as the judge does, or not at all."""
    readers = ("judge", "explain", "migrate", "result", "tables")
    for kind in KINDS:
        for path in (SRC / "plans" / kind).rglob("*.py"):
            inside = path.relative_to(SRC / "plans" / kind).parts[0]
            if inside.removesuffix(".py") not in readers:
                assert ".tables[" not in path.read_text(), path.relative_to(SRC)
    for room in ("adapt", "cli", "deliver", "exports", "reports"):
        for path in (SRC / room).rglob("*.py"):
            assert ".tables[" not in path.read_text(), path.relative_to(SRC)
