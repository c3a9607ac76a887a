"""Trying again what may work later: with pauses that grow, differ from one to the next, and come to an end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from narrowcast.deliver.transport.protocols import FinalError
from narrowcast.errors import TransportError

T = TypeVar("T")
PATIENCE_S = 15.0
FIRST_S, LONGEST_S = 0.05, 2.0  # pauses, which double
_random = Random()  # so that many who began together do not come back together


async def retried(attempt: Callable[[], Awaitable[T]], place: str, patience: float = PATIENCE_S) -> T:
    """What an attempt returns, or TransportError in one line: where, why, and how long it was tried.

    FinalError ends it at once: trying again would not help.
    """
    loop = asyncio.get_running_loop()
    begin, pause, tries = loop.time(), FIRST_S, 0
    while True:
        tries += 1
        try:
            return await asyncio.wait_for(attempt(), max(begin + patience - loop.time(), FIRST_S))
        except FinalError:
            raise
        except TransportError as error:
            why = str(error)
        except TimeoutError:
            why = f"no answer from {place}"
        wait = pause * _random.uniform(0.5, 1.5)
        passed = loop.time() - begin
        if passed + wait >= patience:
            raise TransportError(f"{why} (tried {tries} times in {passed:.1f} s)", endpoint=place)
        await asyncio.sleep(wait)
        pause = min(2 * pause, LONGEST_S)
