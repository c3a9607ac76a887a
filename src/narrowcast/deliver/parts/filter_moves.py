"""Filters that move while messages flow: their states, and the next order that brings them where they should be.

A broker obeys its `filter.<name>` key before the plan. Only an active filter thins frames out, and every broker knows
what is wanted below it whether its filter works or not. So a move can be made, broken off or lost half-way at any
moment: until it is done, more travels than must, never less. Orders are worked out from the states alone, so whoever
coordinates goes on where another one stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum


class FilterMode(Enum):
    """What a filter does now. Only an active one filters; the others pass everything on: too much, never too little.

    A passive one waits where it is, a migrating one is leaving for another broker, a spawning one is being made.
    """

    ACTIVE = "active"
    PASSIVE = "passive"
    MIGRATING = "migrating"
    SPAWNING = "spawning"


def next_order(states: Mapping[str, str], placement: Collection[str]) -> tuple[str, FilterMode] | None:
    """The next order on the way from the states of the filters to where they should work; None where they do.

    A filter that is not needed any more migrates to where one is missing: it stops, the other one starts, and it
    waits. Where none has been before, one is spawned first; where one waits, it is activated. Never do more of them
    work than before or after.

    >>> states, done = {"a": "active"}, []
    >>> while (order := next_order(states, {"b"})) is not None:
    ...     states[order[0]] = order[1].value
    ...     done.append(f"{order[0]} {order[1].value}")
    >>> done
    ['a migrating', 'b spawning', 'b active', 'a passive']
    """
    working = {broker for broker, state in states.items() if state == FilterMode.ACTIVE.value}
    missing = sorted(set(placement) - working)
    leaving = sorted(working - set(placement))
    left = sorted(b for b, state in states.items() if state in ("migrating", "spawning") and b not in placement)
    if missing and leaving and len(working) >= len(placement):
        return leaving[0], FilterMode.MIGRATING
    if missing:
        first = missing[0]
        return first, FilterMode.ACTIVE if first in states else FilterMode.SPAWNING
    stopping = left or leaving
    return (stopping[0], FilterMode.PASSIVE) if stopping else None
