"""What every part has: a clock it is told, a list of effects, and numbers for its requests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Effect
from narrowcast.deliver.parts.events import Event, Tick
from narrowcast.deliver.wire import Seal

NEVER = math.inf


class Part:
    """A state machine. `step` takes one event and returns the effects it asks for, in order.

    `wake_at` is when it next wants a Tick; it is up to date after every step. `counts` are for people
    to look at: nothing depends on them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.wake_at = 0.0
        self.counts: Counter[str] = Counter()
        self.seal = Seal()  # what its frames are sealed and opened with
        self._effects: list[Effect] = []
        self._requests = 0
        self._started = False
        # A handler per event, looked up by its class; what a part does not listen to, it ignores.
        self._handlers: dict[type[Any], Callable[[Any, float], None]] = {Tick: self._on_tick}

    def step(self, event: Event, now: float) -> list[Effect]:
        """Take one event. The first step also starts the part, whatever the event."""
        if not self._started:
            self._started = True
            self._start(now)
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, now)
        self.wake_at = self._next_wake(now)
        effects, self._effects = self._effects, []
        return effects

    def _do(self, effect: Effect) -> None:
        self._effects.append(effect)

    def _understood(self, key: str, data: bytes | None) -> dict[str, Any] | None:
        """What stands under a key of the registry; rubbish is counted, and as good as nothing."""
        try:
            return None if data is None else records.read(key, data)
        except ValueError:
            self.counts["malformed records"] += 1
            return None

    def _request(self) -> int:
        self._requests += 1
        return self._requests

    def _start(self, now: float) -> None:
        """Before the first event."""

    def _on_tick(self, event: Tick, now: float) -> None:
        raise NotImplementedError

    def _next_wake(self, now: float) -> float:
        raise NotImplementedError
