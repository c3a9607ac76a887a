"""The same job on a real standalone cluster, in a user's session: the package sent, a worker killed, equal tables."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyspark
import pytest

from narrowcast import workloads
from narrowcast.data.spark.java import java_home

# Three JVMs and four Pythons that compile: slow on a busy machine.
pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(1500)]
JOB = Path(__file__).with_name("cluster_job.py")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python that has the libraries but not this package, installed or on its path."""
    libraries = Path(pyarrow.__file__).parents[1]
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


class Cluster:
    """A master and two workers of Spark's own, on loopback."""

    def __init__(self, folder: Path) -> None:
        home = Path(pyspark.__file__).parent
        self.environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self.environment |= {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
        self.folder, self.spark_class = folder, home / "bin" / "spark-class"
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        deploy = "org.apache.spark.deploy"
        self.processes = [self.start(f"{deploy}.master.Master", "--port", str(port))]
        self.until("the master listens", lambda: _listens(port))
        for k in range(2):
            work = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{k}"), self.master]
            self.processes.append(self.start(f"{deploy}.worker.Worker", *work))

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        command = [str(self.spark_class), name, "--host", "127.0.0.1", "--webui-port", "0", *words]
        with (self.folder / f"{name.rsplit('.', 1)[1]}-{time.monotonic_ns()}.log").open("wb") as log:
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True)

    def until(self, what: str, holds: object, seconds: float = 240) -> None:
        end = time.monotonic() + seconds
        while not holds():  # type: ignore[operator]
            assert time.monotonic() < end, f"never: {what}"
            time.sleep(0.2)

    def kill(self, k: int) -> None:
        """Kill a process and all it started, at once and without a chance to tidy up."""
        if self.processes[k].poll() is None:
            os.killpg(self.processes[k].pid, signal.SIGKILL)
            self.processes[k].wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(tmp_path)
    yield running
    for k in range(len(running.processes)):
        running.kill(k)


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def test_a_cluster_that_loses_a_worker_gives_the_tables_of_one_machine(
    cluster: Cluster, bare_python: Path, tmp_path: Path
) -> None:
    workloads.write("market", tmp_path / "w", messages=8000, users=100, symbols=500, seed=1)
    for name in ("flows", "interest", "topology", "nodes"):
        (tmp_path / "w" / f"{name}.parquet").unlink()

    def job(master: str, out: str, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(JOB), master, str(tmp_path / "w"), str(tmp_path / out)]
        return subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    running = job(cluster.master, "remote", PYSPARK_PYTHON=str(bare_python))
    cluster.until("matching begins", lambda: (tmp_path / "remote.begun").exists() or running.poll() is not None)
    time.sleep(1.0)
    assert running.poll() is None, running.communicate()
    cluster.kill(1)
    said, complained = running.communicate(timeout=900)
    assert running.returncode == 0, complained
    # No worker had the package, and all have it from the file that they were sent.
    had, have = (next(line for line in said.splitlines() if line.startswith(when)) for when in ("before:", "after:"))
    assert had == "before: None"
    assert "narrowcast.zip" in have
    assert len(have.split()) == 2

    alone = job("local[2]", "local", PYSPARK_PYTHON=sys.executable)
    said, complained = alone.communicate(timeout=900)
    assert alone.returncode == 0, complained
    local, remote = tables(tmp_path / "local"), tables(tmp_path / "remote")
    assert len(local) >= 9
    assert {n for n in local if local[n] != remote[n]} == set()
    assert local.keys() == remote.keys()
