"""The notebook of the examples, cell by cell, as somebody who opens it would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from narrowcast.data.spark.java import java_home

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
RUN = """
import json, sys
cells = json.load(open(sys.argv[1]))["cells"]
names = {"__name__": "__main__"}
for cell in cells:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), "a cell", "exec"), names)
assert names["plan"].cost.total >= 0
print("settings:", names["spark"].conf.get("spark.sql.caseSensitive"), names["spark"].sparkContext.appName)
"""


def test_the_notebook_is_kept_without_results_and_takes_five_lines_to_a_plan() -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    planning = next(cell["source"] for cell in cells if "import narrowcast as nc\n" in cell["source"])
    assert len([line for line in planning if line.strip()]) <= 5


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_every_cell_of_the_notebook_runs_in_a_session_of_its_own(tmp_path: Path) -> None:
    own = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(NOTEBOOK)],
        env={**os.environ, **own},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "settings: false my notebook" in done.stdout
    assert "| IBM|    3|" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) in ([], ["spark-warehouse"])
