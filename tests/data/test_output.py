"""A result folder is complete or not there, also when the writer is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from narrowcast.data.spark.output import read_manifest, write_manifest, writing
from narrowcast.data.spark.sizing import are_small
from narrowcast.errors import InputError

WRITE_AND_HANG = """
import sys, time
from narrowcast.data.spark.output import writing
with writing(sys.argv[1], overwrite=True) as output:
    (output.folder / "flows.parquet").write_bytes(b"half of a table")
    print("half", flush=True)
    time.sleep(600)
"""


def complete(out: Path, text: str) -> None:
    with writing(out, overwrite=True) as output:
        (output.folder / "flows.parquet").write_text(text)
        write_manifest(output, {"about": text})


def test_a_killed_run_is_never_read_as_complete_and_the_next_one_tidies_up(tmp_path: Path) -> None:
    out = tmp_path / "out"
    complete(out, "first")
    running = subprocess.Popen([sys.executable, "-c", WRITE_AND_HANG, str(out)], stdout=subprocess.PIPE, text=True)
    with running:
        assert running.stdout is not None
        assert running.stdout.readline() == "half\n"
        os.kill(running.pid, signal.SIGKILL)
    assert (out / "flows.parquet").read_text() == "first"
    assert read_manifest(out)["about"] == "first"
    left = [p for p in tmp_path.iterdir() if p != out]
    assert len(left) == 1
    with pytest.raises(InputError, match="no complete result here"):
        read_manifest(left[0])
    complete(out, "second")
    assert list(tmp_path.iterdir()) == [out]
    assert read_manifest(out)["about"] == "second"


def test_a_folder_of_a_running_writer_is_left_alone(tmp_path: Path) -> None:
    with writing(tmp_path / "out", overwrite=False) as output:
        complete(tmp_path / "out", "other")
        assert output.folder.is_dir()
        write_manifest(output, {"about": "this"})
    assert read_manifest(tmp_path / "out")["about"] == "this"


def test_what_is_no_result_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="will not be overwritten"), writing(out, overwrite=overwrite):
            pass
    assert (out / "mine.txt").read_text() == "precious"
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="out must be a folder, got a file"), writing(file, overwrite=True):
        pass


@pytest.mark.spark
def test_a_table_of_many_pieces_has_the_rows_of_one_in_the_same_order(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"f{k * 37 % 300:03d}", k % 3, float(k)) for k in range(300)]
    frame = spark.createDataFrame(rows, "flow string, n bigint, x double").repartition(3)
    for name, piece in (("whole", 300), ("cut", 80)):
        monkeypatch.setattr("narrowcast.data.spark.output.PIECE", piece)
        with writing(tmp_path / name, overwrite=False) as output:
            output.write("table", frame, ("n", "flow"))
            write_manifest(output, {})
    whole, cut = (pq.read_table(tmp_path / name / "table.parquet") for name in ("whole", "cut"))
    assert whole.to_pylist() == [dict(zip(("flow", "n", "x"), row, strict=True)) for row in sorted(rows, key=_key)]
    assert cut.equals(whole)


def _key(row: tuple[str, int, float]) -> tuple[int, str]:
    return row[1], row[0]


def test_inputs_are_small_only_if_all_of_them_are_here_and_small(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    assert are_small([tmp_path / "a.csv", tmp_path])
    assert not are_small([tmp_path / "a.csv", "hdfs://host/messages.parquet"])
    assert not are_small([])
    with (tmp_path / "b.csv").open("wb") as large:
        large.truncate(1 << 30)
    assert not are_small([tmp_path])
