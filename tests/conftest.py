"""What all tests share: one Spark session per run, the same examples every run, no silent skip in CI."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import settings

# Compile times make first examples slow, so no deadline; the same examples every run.
settings.register_profile("narrowcast", deadline=None, derandomize=True)
settings.load_profile("narrowcast")


# Folders whose tests start servers, brokers, browsers or whole systems.
ENGINES = {"system", "transport", "docs"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start the JVM share one process; the slowest files start first, so that both cores end together."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if any(part in ENGINES for part in item.path.parts):
            item.add_marker(pytest.mark.engines)
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups that xdist does not keep together would share ports, namespaces and JVMs without a word."""
    spread = getattr(session.config.option, "loadgroup", False)
    if spread and any(i.get_closest_marker("xdist_group") and "@" not in i.nodeid for i in session.items):
        raise pytest.UsageError("this pytest-xdist does not keep groups of tests together; see requirements.lock")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    """A user's machine may lack root, namespaces or a browser; CI may not: there a skip is a failure."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


SESSION_END_S = 120.0
LAST_S = 30.0  # after its time-out a test has so long to let go of what it holds


def _watched(item: pytest.Item) -> Generator[None, Any, Any]:
    """End the process if a test does not end: from a thread of C, with the stacks of all threads on standard error.

    A time-out by signal needs the main thread to run Python. It does nothing while that thread is inside an
    engine's C code, and once it has been raised, or swallowed by an event loop, it does not come again.
    """
    marker = item.get_closest_marker("timeout")
    limit = float(marker.args[0] if marker and marker.args else item.config.getini("timeout") or 0)
    if limit:
        faulthandler.dump_traceback_later(
            limit + LAST_S, exit=True, file=item.config.stash[fault_handler_stderr_fd_key]
        )
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_sessionfinish() -> None:
    """The end is watched as well: finalisers of engines run there, beyond every time-out."""
    faulthandler.dump_traceback_later(SESSION_END_S, exit=True, file=sys.__stderr__)


# Each phase for itself: reporting a failure cancels the watch.
pytest_runtest_setup = pytest.hookimpl(wrapper=True, tryfirst=True)(_watched)
pytest_runtest_call = pytest.hookimpl(wrapper=True, tryfirst=True)(_watched)
pytest_runtest_teardown = pytest.hookimpl(wrapper=True, tryfirst=True)(_watched)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one Spark session of a test run: its JVM takes seconds to start."""
    from narrowcast.data.spark.session import session

    # Tests are many short jobs: compiling them well costs more than it saves.
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    interpreted = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    running = session(master="local[2]", extra={"spark.driver.extraJavaOptions": quick} | interpreted)
    yield running
    running.stop()
