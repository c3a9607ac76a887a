"""From a client of Spark Connect, whose server is a process of its own: the same tables, nothing of it changed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as pq
import pyspark
import pytest
from tests.data import test_answer, test_replay

import narrowcast as nc
from narrowcast.data.planning.replay import replay
from narrowcast.data.spark.java import java_home
from running import running

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
JOB = Path(__file__).with_name("connect_job.py")
VERBS = Path(__file__).with_name("connect_verbs_job.py")


@contextmanager
def server(folder: Path, python: Path) -> Iterator[str]:
    """A Connect server on loopback whose workers are this Python; its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 3,
        "spark.sql.warehouse.dir": folder / "warehouse",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(submit), "--master", "local[2]", "--class", name, *words, "spark-internal"]
    own = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | own
    with (folder / "server.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.monotonic() + 240
        while True:
            said = (folder / "server.log").read_text()
            assert running.poll() is None, said[-3000:]
            assert time.monotonic() < end, said[-3000:]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def client(*command: object, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[:3000] + done.stderr[-2000:]
    return done


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


@pytest.fixture
def market(tmp_path: Path) -> Path:
    nc.workloads.write("market", tmp_path / "market", messages=600, users=20, symbols=60, seed=6)
    for name in ("flows", "interest", "topology", "nodes"):
        (tmp_path / "market" / f"{name}.parquet").unlink()
    return tmp_path / "market"


@pytest.mark.long
def test_a_client_of_connect_measures_the_same_tables_and_changes_nothing(
    spark: Any, market: Path, tmp_path: Path
) -> None:
    nc.measure(market / "messages.parquet", market / "subscriptions.parquet", out=tmp_path / "classic", spark=spark)
    classic = tables(tmp_path / "classic")
    with server(tmp_path, Path(sys.executable)) as remote:
        client(JOB, remote, market, tmp_path)
        command = "from narrowcast.cli import main; main()"
        client("-c", command, "measure", market, "--out", tmp_path / "command", "--master", remote)
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["settings as before"]
    assert (said["views"], said["tags"]) == ([], [])
    assert said["interest"] == pq.read_metadata(tmp_path / "classic" / "interest.parquet").num_rows
    assert len(said["set aside"]) == 1
    assert said["set aside"][0].startswith("profile: ")
    assert "the columns Pid and PID differ in case alone" in said["alike"]
    assert said["plan"] == "channels"
    assert len(classic) >= 9
    for way in ("frames", "paths", "command"):
        found = tables(tmp_path / way)
        assert {name for name in classic if classic[name] != found.get(name)} == set(), way


@pytest.mark.long
def test_the_other_verbs_over_connect_work_or_are_refused_by_name(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    place.mkdir()
    test_replay.write_tables(place)
    asked = test_answer.write_inputs(place)
    pq.write_table(pyarrow.table({"flow": ["a", "b", "c"], "rate": [3.0, 2.0, 1.0]}), place / "flows.parquet")
    wishes = {"flow": ["a", "b", "b", "c"], "subscriber": ["ann", "ann", "bob", "bob"]}
    pq.write_table(pyarrow.table(wishes), place / "interest.parquet")
    with running(tmp_path / "nats") as url, server(tmp_path, Path(sys.executable)) as remote:
        client(VERBS, remote, place, url)
    said = json.loads((place / "verbs.json").read_text())
    tables_at = {"key": ("flow",), "subscriptions": place / "subscriptions.parquet"}
    classic = replay(spark, place, place / "messages.parquet", out=place / "classic-replay", **tables_at)
    assert said["cost"] == classic.cost
    for path in sorted((place / "classic-replay").glob("*.parquet")):
        there, here = pq.read_table(place / "connect-replay" / path.name), pq.read_table(path)
        assert (there.to_pylist(), there.schema.types) == (here.to_pylist(), here.schema.types)
    assert test_answer.extracted(place / "connect-answer") == test_answer.direct(spark, asked[1])
    assert said["plan"] == ["driver", "channels"]
    assert "incremental must be left out unless Spark runs on this machine" in said["incremental"]
    assert "Spark Connect takes at most 1 interest rows" in said["shards"]
    assert "follow does not support Spark Connect" in said["follow"]
    assert said["back"] == sorted([f"s{k % 5}", k] for k in range(50))
    assert said["streamed"] == 50
    assert said["settings as before"]


@pytest.mark.nightly
def test_the_workers_of_a_server_need_not_have_the_package(market: Path, tmp_path: Path) -> None:
    libraries = Path(pyarrow.__file__).parents[1]
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    look = [str(bare), "-c", "import importlib.util as i; print(i.find_spec('numba') and i.find_spec('narrowcast'))"]
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    assert subprocess.run(look, capture_output=True, text=True, check=True, env=clean).stdout == "None\n"
    with server(tmp_path, bare) as remote:
        client(JOB, remote, market, tmp_path, timeout=850)
    assert tables(tmp_path / "frames") == tables(tmp_path / "paths")
    assert json.loads((tmp_path / "said.json").read_text())["set aside"]
