"""What Spark's sources and sinks need of the durable log. Plain blocking calls; the runtime has it.

A port is opened where it is used, in the driver's planner or in a worker, and closed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class LogEntry(NamedTuple):
    """One entry of a shard's log: its number, when the log took it (ISO 8601), and its messages as they were sent."""

    sequence: int
    stamp: str
    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Which log: the URL of its server, and which system on it."""

    url: str
    system: str


class LogPort(Protocol):
    """The log, opened."""

    @property
    def shards(self) -> tuple[int, ...]: ...

    def bounds(self, shard: int) -> tuple[int, int]:
        """The oldest entry the log still has, and the newest; (n + 1, n) if it has none."""
        ...

    def read(self, shard: int, after: int, upto: int) -> Iterator[LogEntry]:
        """All with `after < sequence <= upto`, in order, those without messages too. What is gone is left out."""
        ...

    def decode(self, payload: bytes) -> Mapping[str, Any]:
        """The attributes of a message; one that cannot be read has none."""
        ...

    def stage(self, name: str, batch: int, tables: Iterable[Any]) -> Any:
        """Put the rows of Arrow batches aside for a batch of the sink `name`; what `publish` needs to know of it."""
        ...

    def publish(self, name: str, batch: int, staged: Sequence[Any], shard: int | None, last: bool = False) -> None:
        """Publish what was staged, unless this batch was published before; `last` if no other will ever follow."""
        ...

    def close(self) -> None: ...


Open = Callable[[Place], LogPort]
