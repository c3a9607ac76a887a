"""The registry on a JetStream key-value bucket: revisions are the bucket's sequence numbers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.nats.link import IN_USE, NatsLink, refusal
from narrowcast.deliver.transport.protocols import ConflictError, FinalError, Value
from narrowcast.errors import TransportError

WRONG_REVISION = (10071, 10164)
NO_SYSTEM = "NATS answers, but no narrowcast system has been started on it: narrowcast up PLAN"


class NatsRegistry:
    """`Registry` on JetStream. A prefix to watch ends with a dot, or is a whole key."""

    def __init__(self, link: NatsLink, *, replicas: int = 1) -> None:
        self._link, self._replicas = link, replicas
        self._last = 0  # its newest revision when it was last looked at
        self._kv: Any = None
        self.on_back: Callable[[], None] = lambda: None  # the bucket is not what it was: restored, emptied or gone

    async def start(self, *, make: bool = True) -> None:
        """Make the bucket unless it is there; without `make`, FinalError if it is not."""
        api, nats = engine("nats.js.api"), engine("nats")
        config = api.KeyValueConfig(bucket=self._link.system, history=1, replicas=self._replicas)
        try:
            self._kv = await (self._bucket(config) if make else self._link.js.key_value(config.bucket))
        except engine("nats.js.errors").NotFoundError:
            raise FinalError(NO_SYSTEM, endpoint=self._link.system) from None
        except (nats.errors.Error, TimeoutError) as error:
            raise refusal("the registry", error, self._link.system) from None

    async def _bucket(self, config: Any) -> Any:
        """A bucket that is there, made by somebody who did not know how many replicas there should be, gets them."""
        try:
            return await self._link.js.create_key_value(config)
        except engine("nats.js.errors").BadRequestError as error:
            if error.err_code != IN_USE:
                raise
            await self._link.replicate(f"KV_{config.bucket}", self._replicas)
            return await self._link.js.key_value(config.bucket)

    async def get(self, key: str) -> Value:
        errors = engine("nats.js.errors")
        try:
            entry = await self._kv.get(key)
        except errors.KeyDeletedError as error:
            return Value(key, None, error.entry.revision or 0)
        except errors.KeyNotFoundError:
            return Value(key, None, 0)
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            raise self._down(error) from None
        return Value(key, entry.value or b"", entry.revision)

    async def put(self, key: str, data: bytes, *, revision: int | None = None) -> int:
        if revision is None:
            return int(await self._asked(self._kv.put(key, data), key))
        if revision == 0:
            return int(await self._asked(self._kv.create(key, data), key))
        return int(await self._asked(self._kv.update(key, data, last=revision), key))

    async def delete(self, key: str, *, revision: int | None = None) -> None:
        await self._asked(self._kv.delete(key, last=revision), key)

    async def listed(self, prefix: str, *, timeout: float = 5.0) -> list[Value]:
        """The present value of every key with the prefix."""
        found: list[Value] = []
        watcher = await self._asked(self._kv.watch(_pattern(prefix), ignore_deletes=True), prefix)
        try:
            while True:
                entry = await self._asked(asyncio.wait_for(watcher._updates.get(), timeout), prefix)
                if entry is None or not hasattr(entry, "key"):  # the marker "that was everything so far"
                    return found
                found.append(Value(entry.key, entry.value or b"", entry.revision))
        finally:
            with suppress(engine("nats").errors.Error, TimeoutError, OSError):
                await watcher.stop()

    async def watch(self, prefix: str) -> AsyncGenerator[Value, None]:
        """After a reconnection everything is listed again: the server may not be the one it was."""
        again = asyncio.Event()
        forget = self._link.on_reconnect(again.set)
        errors = engine("nats").errors
        pattern = _pattern(prefix)
        seen: dict[str, int] = {}
        made = await self.made()
        try:
            while True:
                again.clear()
                before, made = made, await self.made() or made
                if before != made or self._last < max(seen.values(), default=0):
                    seen.clear()  # revisions are used again
                    self.on_back()
                try:
                    watcher = await self._kv.watch(pattern)
                except (errors.Error, TimeoutError, OSError):
                    await asyncio.sleep(0.2)
                    continue
                async for value in _changes(watcher, again):
                    if value.revision > seen.get(value.key, 0):
                        seen[value.key] = value.revision
                        yield value
        finally:
            forget()

    async def made(self) -> str | None:
        """When the bucket was made, which is its identity; None if that cannot be said now."""
        nats, errors = engine("nats"), engine("nats.js.errors")
        try:
            info = await self._link.js.stream_info(f"KV_{self._link.system}")
        except errors.NotFoundError:
            self._last = 0
            return "gone"
        except (nats.errors.Error, TimeoutError, OSError):
            return None
        self._last = int(info.state.last_seq)
        return str(info.created)

    async def _asked(self, asked: Any, key: str) -> Any:
        errors = engine("nats.js.errors")
        try:
            return await asked
        except errors.KeyWrongLastSequenceError:
            raise ConflictError(f"{key} was changed by another writer", endpoint=key) from None
        except errors.APIError as error:
            if error.err_code in WRONG_REVISION:
                raise ConflictError(f"{key} was changed by another writer", endpoint=key) from None
            raise self._down(error) from None
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            raise self._down(error) from None

    def _down(self, error: BaseException) -> TransportError:
        why = str(error) or type(error).__name__
        return TransportError(f"the registry does not answer: {why}", endpoint=self._link.system)


def _pattern(prefix: str) -> str:
    return f"{prefix}>" if prefix.endswith(".") or not prefix else prefix


async def _changes(watcher: Any, again: asyncio.Event) -> AsyncGenerator[Value, None]:
    """What a watcher tells, until it has to be made again."""
    nats = engine("nats")
    stop = asyncio.ensure_future(again.wait())
    try:
        while True:
            update = asyncio.ensure_future(watcher._updates.get())
            await asyncio.wait((update, stop), return_when=asyncio.FIRST_COMPLETED)
            if not update.done():
                update.cancel()
                return
            entry = update.result()
            if entry is None or not hasattr(entry, "key"):
                continue  # the marker "that was everything so far"
            gone = entry.operation is not None
            yield Value(entry.key, None if gone else entry.value or b"", entry.revision)
    finally:
        stop.cancel()
        with suppress(nats.errors.Error, TimeoutError, OSError):
            await watcher.stop()
