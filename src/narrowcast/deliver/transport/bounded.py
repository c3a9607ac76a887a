"""Ending an engine without waiting for it for ever.

Closing goes through C code that joins threads of its own, and no signal and no cancellation gets it
out of there. So it is done in a thread that nobody has to wait for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

log = logging.getLogger(__name__)
PATIENCE_S = 5.0


async def ended(what: str, end: Callable[[], None], *, patience: float = PATIENCE_S) -> bool:
    """Call `end` in a thread of its own; False, and a warning, if it has not returned in time."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            end()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(tell, error)

    Thread(target=run, name=f"end {what}", daemon=True).start()
    await asyncio.wait({done}, timeout=patience)
    if done.done():
        done.result()
        return True
    log.warning("%s did not stop within %g s and is left running", what, patience)
    return False
