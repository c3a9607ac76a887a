"""Spark's classes on disk: used when they are there, never needed, and the results are the same."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from pathlib import Path

import pytest

from narrowcast import workloads
from narrowcast.data.spark import fast_start

MEASURE = """
import atexit, sys
from narrowcast.data.spark import fast_start
from narrowcast.data.statistics.measure import MeasureSettings, find_inputs, measure_folder
from narrowcast.data.spark.session import session
spark = session(quick=True)
atexit.unregister(fast_start.make_later)
beans = spark._jvm.java.lang.management.ManagementFactory
print(beans.getRuntimeMXBean().getInputArguments().toString())
measure_folder(spark, find_inputs(sys.argv[1]), sys.argv[2], MeasureSettings(key=("symbol",)))
spark.stop()
"""


def test_only_an_archive_that_is_there_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = Path("/a/java")
    kept = fast_start.archive(java)
    assert kept is not None
    assert kept.parent == tmp_path / "narrowcast"
    assert fast_start.archive(Path("/another/java")) != kept
    assert fast_start.using(java) == ""
    atexit.unregister(fast_start.make_later)
    kept.touch()
    assert f'"-XX:SharedArchiveFile={kept}"' in fast_start.using(java)


def test_the_archive_is_made_once_after_the_first_command_that_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    kept = fast_start.archive(Path("/a/java"))
    assert kept is not None
    fast_start.make_later(kept)
    fast_start.make_later(kept)
    assert [command[-1] for command in started] == ["narrowcast.data.spark.fast_start"]
    # A try that came to nothing is repeated, not at once.
    begun = kept.with_suffix(".begun")
    os.utime(begun, (0, 0))
    fast_start.make_later(kept)
    assert len(started) == 2
    os.utime(begun, (0, 0))
    kept.touch()
    fast_start.make_later(kept)
    assert len(started) == 2


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_a_jvm_with_kept_classes_makes_the_same_tables(tmp_path: Path) -> None:
    workloads.write("market", tmp_path / "w", messages=500, users=20, symbols=50, seed=2)
    places = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], env=places, capture_output=True, text=True, timeout=550, check=True
        )
        assert done.stderr == ""
        return done.stdout

    without = run("-c", MEASURE, str(tmp_path / "w"), str(tmp_path / "without"))
    assert "SharedArchiveFile" not in without
    made = Path(run("-m", "narrowcast.data.spark.fast_start").strip())
    assert made.is_file()
    assert {p.suffix for p in made.parent.glob("spark-*")} <= {".jsa", ".begun"}
    used = run("-c", MEASURE, str(tmp_path / "w"), str(tmp_path / "with"))
    assert f"-XX:SharedArchiveFile={made}" in used
    tables = {p.name: p.read_bytes() for p in (tmp_path / "without").glob("*.parquet")}
    assert {p.name: p.read_bytes() for p in (tmp_path / "with").glob("*.parquet")} == tables
    assert len(tables) == 11
