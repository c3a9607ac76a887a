"""Coroutines for plain code: an event loop in a thread of its own, which goes on between calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import TimeoutError as LateError
from threading import Thread
from typing import Any, TypeVar

from narrowcast.deliver.transport.loop import new_loop

T = TypeVar("T")
END_S = 10.0


class Blocking:
    """Runs coroutines and waits for them. `start` before the first, `end` after the last."""

    def __init__(self) -> None:
        self._loop = new_loop()
        self._thread = Thread(target=self._loop.run_forever, name="narrowcast", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """What a coroutine returns; past the `timeout` it is cancelled and TimeoutError raised."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except (KeyboardInterrupt, LateError):
            future.cancel()
            raise

    def each(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """What an asynchronous generator yields, one by one."""
        try:
            while True:
                yield self.call(anext(items))
        except StopAsyncIteration:
            return

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_S)
        if not self._thread.is_alive():
            self._loop.close()
