"""One quiet Spark session per process."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import Any

import pytest

from narrowcast.data.spark.home import package_zip
from narrowcast.data.spark.session import _reachable, session
from narrowcast.errors import InputError


@pytest.mark.spark
def test_a_second_call_gives_the_same_session(spark: Any) -> None:
    assert session() is spark
    assert session("local[2]") is spark


@pytest.mark.spark
def test_another_master_in_the_same_process_is_refused_in_one_line(spark: Any) -> None:
    with pytest.raises(InputError, match=r"already has a Spark session at local\[2\]"):
        session("local[1]")


@pytest.mark.spark
def test_times_are_utc_and_arrow_is_on_and_the_page_is_off(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.sparkContext.uiWebUrl is None


def test_a_master_that_does_not_answer_is_named_at_once() -> None:
    with pytest.raises(InputError, match=r"no Spark master answers at spark://127\.0\.0\.1:1"):
        _reachable("spark://127.0.0.1:1")


def test_the_package_imports_from_its_zip_alone() -> None:
    archive = package_zip()
    with zipfile.ZipFile(archive) as content:
        assert content.testzip() is None
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); import narrowcast; print(narrowcast.__file__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert str(archive) in run.stdout
