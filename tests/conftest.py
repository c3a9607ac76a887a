"""What all tests share: one Spark session per run, the same examples every run, no silent skip in CI."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

# Compile times make first examples slow, so no deadline; the same examples every run.
settings.register_profile("narrowcast", deadline=None, derandomize=True)
settings.load_profile("narrowcast")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start the JVM share one process; the slowest files start first, so that both cores end together."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    """A user's machine may lack root, namespaces or a browser; CI may not: there a skip is a failure."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one Spark session of a test run: its JVM takes seconds to start."""
    from narrowcast.pipeline.session import session

    # Tests are many short jobs: compiling them well costs more than it saves.
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    interpreted = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    running = session(master="local[2]", extra={"spark.driver.extraJavaOptions": quick} | interpreted)
    yield running
    running.stop()
