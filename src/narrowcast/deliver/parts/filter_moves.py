"""Filters that move while messages flow: what to write to the registry when a move begins and when it is done.

A broker obeys its `filter.<name>` key, whatever the plan says. Only an active filter thins frames out, and
every broker knows from the plan who is below it, so a move can be made, broken off or lost half-way at any
moment: until it is done, more travels than must, never less.
"""

from __future__ import annotations

from dataclasses import dataclass

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.broker import FilterMode

Writes = tuple[tuple[str, bytes], ...]  # keys and values, in this order


@dataclass(frozen=True, slots=True)
class FilterMove:
    """The writes with which a move begins, and those with which it is done."""

    begin: Writes
    finish: Writes


def activate(broker: str) -> FilterMove:
    """A filter that waits starts to work."""
    return FilterMove((), (_put(broker, FilterMode.ACTIVE),))


def passivate(broker: str) -> FilterMove:
    """A filter stops working and stays where it is."""
    return FilterMove((), (_put(broker, FilterMode.PASSIVE),))


def migrate(source: str, target: str) -> FilterMove:
    """A filter goes from one broker to another, and works there.

    >>> [(records.name_of(key), data) for key, data in migrate("a", "b").finish]
    [('b', b'{"state":"active"}'), ('a', b'{"state":"passive"}')]
    """
    begin = (_put(source, FilterMode.MIGRATING),)
    return FilterMove(begin, (_put(target, FilterMode.ACTIVE), _put(source, FilterMode.PASSIVE)))


def spawn(source: str, target: str) -> FilterMove:
    """A filter makes another one, which works at the target; meanwhile it does not work itself."""
    begin = (_put(source, FilterMode.SPAWNING),)
    return FilterMove(begin, (_put(target, FilterMode.ACTIVE), _put(source, FilterMode.ACTIVE)))


def _put(broker: str, mode: FilterMode) -> tuple[str, bytes]:
    return records.named(records.FILTER, broker), records.pack({"state": mode.value})
