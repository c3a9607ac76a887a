"""One Spark session per run: the JVM takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# Compile times make first examples slow, so no deadline; the same examples every run.
settings.register_profile("narrowcast", deadline=None, derandomize=True)
settings.load_profile("narrowcast")

IN_CI = os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from narrowcast.pipeline.session import session

    running = session(master="local[2]")
    yield running
    running.stop()
