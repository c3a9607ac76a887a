"""The house itself: light to import, every public name there, errors that travel."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import narrowcast as nc
from narrowcast import errors


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
