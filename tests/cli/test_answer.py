"""`narrowcast answer` as people run it: its own process, its own Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from narrowcast.plans.queries.api import Client, read_answers

CODE = "from narrowcast.cli import main; main()"


@pytest.mark.long
@pytest.mark.spark
def test_answers_are_written_and_a_client_takes_out_its_own(tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text(
        "query,client,profile\nlow,ann,x BETWEEN 0 AND 3\nmid,bob,x BETWEEN 2 AND 5\nmid,ann,x >= 4\n,ann,x = 1\n"
    )
    pq.write_table(pa.table({"x": [0, 2, 2, 4, 5, None, 9]}), tmp_path / "table.parquet")
    done = subprocess.run(
        [sys.executable, "-c", CODE, "answer", "queries.csv", "table.parquet", "--out", "answers", "--json",
         "--incremental", "state", "--master", "local[1]"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["queries"], told["set_aside"], told["everything_sent"], told["gone"]) == (3, 1, True, 0)
    ann = Client("ann")
    for got in read_answers(tmp_path / "answers", "ann"):
        ann.receive(got)
    assert {name: sorted(table["x"].to_pylist()) for name, table in ann.answers.items()} == {
        "low": [0, 2, 2],
        "mid": [4, 5, 9],
    }
    assert (tmp_path / "state" / "manifest.json").is_file()
