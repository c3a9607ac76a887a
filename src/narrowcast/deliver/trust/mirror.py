"""A copy of the registry that many may ask what has changed, without a watch of the server for each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from narrowcast.deliver.transport import Value

MOST_BYTES = 4 << 20  # of values in one answer


def prefixes(key: str) -> Iterator[str]:
    """What a watch may name to hear of a key.

    >>> list(prefixes("ring.61.3"))
    ['ring.61.3', 'ring.61.', 'ring.']
    """
    yield key
    at = len(key)
    while (at := key.rfind(".", 0, at)) > 0:
        yield key[: at + 1]


class Mirror:
    """Values by key, the keys of each prefix, and who waits for one. `made` tells one registry from another."""

    def __init__(self, made: str) -> None:
        self.made = made
        self.values: dict[str, Value] = {}
        self._keys: dict[str, set[str]] = {}
        self._waiting: dict[str, asyncio.Event] = {}

    def note(self, value: Value) -> None:
        """A key has a value, or is gone."""
        known = self.values.get(value.key)
        if known is not None and known.revision >= value.revision:
            return
        self.values[value.key] = value
        for prefix in prefixes(value.key):
            self._keys.setdefault(prefix, set()).add(value.key)
            if (event := self._waiting.pop(prefix, None)) is not None:
                event.set()

    def since(self, prefix: str, revision: int) -> list[Value]:
        """What has changed since a revision, oldest first, no more than fits into an answer."""
        found = [self.values[key] for key in self._keys.get(prefix, ()) if self.values[key].revision > revision]
        kept: list[Value] = []
        size = 0
        for value in sorted(found, key=lambda value: value.revision):
            size += len(value.data or b"")
            if kept and size > MOST_BYTES:
                break
            kept.append(value)
        return kept

    async def changed(self, prefix: str, timeout: float) -> None:
        """Until something under a prefix changes, or time is up."""
        event = self._waiting.setdefault(prefix, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), timeout)
        except TimeoutError:
            return
