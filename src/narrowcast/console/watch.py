"""What a running system tells: its registry, what its processes say each second, and what happened when."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.node import STEADY
from narrowcast.deliver.processes.backbone import Backbone
from narrowcast.deliver.processes.overview import Overview
from narrowcast.deliver.routing.routing import Routing, nothing

LATE, GONE, FORGET = 1.6, 5.0, 60.0  # seconds without a word: late, gone, no longer shown
LATE_STANDING = 1.1  # these speak twice a second
LOOK = 0.25
MOST_EVENTS, MOST_SAMPLES = 200, 600
STANDING = ("source", "broker", "relay", "coordinator")  # roles that are missed when they are gone
WORDS = {"up": "started", "late": "says nothing", "gone": "is gone"}


class SystemWatch:
    """The present of a system, and its last ten minutes. `changed` is set when a viewer should know at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.overview = Overview()
        self.epoch: dict[str, Any] = dict(STEADY)
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self.leader: str | None = None
        self.routing: Routing = nothing()
        self.routed = 0  # the number of the plan that `routing` is
        self.events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self.samples: deque[list[float]] = deque(maxlen=MOST_SAMPLES)
        self.changed = asyncio.Event()
        self.processes: dict[str, dict[str, Any]] = {}  # role, when heard, started, state
        self._clock = clock
        self._plans: dict[int, bytes] = {}
        self._filters: dict[str, dict[str, Any]] = {}
        self._happened, self._looked = 0, clock()

    @property
    def filtering(self) -> set[str]:
        """The brokers that filter now: as each was last told, or as the plan says."""
        told = {name: record for name, record in self._filters.items() if record.get("epoch") in (None, self.routed)}
        planned = set(self.routing.filters) - told.keys()
        return planned | {name for name, record in told.items() if record["state"] == "active"}

    # What processes say.

    def take(self, data: bytes) -> None:
        """A process told about itself; rubbish is left out."""
        try:
            told = _DECODER.decode(data.decode())
        except (ValueError, RecursionError):
            return
        if not _is_told(told):
            return
        name, role, now = told["name"], told["role"], self._clock()
        self.overview.take(told, now)
        known = self.processes.get(name)
        if known is None or known["state"] != "up" or known["started"] != told.get("started"):
            if role in STANDING:
                again = known is not None and known["started"] != told.get("started")
                self.note("good", f"{called(role, name)} {'was started again' if again else 'is here'}", "process")
            self.processes[name] = {"role": role, "started": told.get("started"), "state": "up", "heard": now}
        else:
            known["heard"] = now

    def look(self) -> None:
        """Who has said nothing for too long? Four times a second is soon enough."""
        now = self._clock()
        deaf = now - self._looked - LOOK
        self._looked = now
        for name, known in list(self.processes.items()):
            known["heard"] += max(0.0, deaf)  # while we were held up ourselves, nobody could be heard
            silent = now - known["heard"]
            late = LATE_STANDING if known["role"] in STANDING else LATE
            state = "gone" if silent > GONE else "late" if silent > late else "up"
            if state != known["state"]:
                known["state"] = state
                if known["role"] in STANDING:
                    told = f"{called(known['role'], name)} {WORDS[state]}"
                    self.note("bad" if state == "gone" else "warn", told, "process")
            if silent > (FORGET if known["role"] in STANDING else GONE):
                del self.processes[name]

    def note(self, level: str, text: str, what: str) -> None:
        """Something happened that people should see."""
        self._happened += 1
        self.events.append({"id": self._happened, "at": time.time(), "level": level, "text": text, "what": what})
        self.changed.set()

    # What the registry says.

    async def follow(self, base: Backbone) -> None:
        """For ever."""
        await base.listen_statistics(self.take)
        # Not the nodes: each beats once a second there, and tells more here.
        followed = (records.EPOCH, records.SUBSCRIPTION, records.LEASE, records.PLAN, records.FILTER)
        await asyncio.gather(*(self._follow(base, prefix) for prefix in followed), self._look_around())

    async def _look_around(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK)

    async def _follow(self, base: Backbone, prefix: str) -> None:
        async for key, data, _ in base.registry.watch(prefix):
            with suppress(ValueError):  # who writes rubbish there is not shown
                await self.heard(key, data)

    async def heard(self, key: str, data: bytes | None) -> None:
        """A key of the registry has this value; ValueError for one that cannot be."""
        if key.startswith(records.PLAN):
            number = records.number_of(key)
            self._plans.pop(number, None)
            if data is not None:
                self._plans[number] = data
            await self._route()
            return
        record = None if data is None else records.read(key, data)
        if key == records.EPOCH and record is not None:
            self._moved(self.epoch, record)
            self.epoch = record
            await self._route()
        elif key == records.LEASE:
            self.leader = None if record is None else record["holder"]
        elif key.startswith((records.SUBSCRIPTION, records.FILTER)):
            known = self.subscriptions if key.startswith(records.SUBSCRIPTION) else self._filters
            if record is None:
                known.pop(records.name_of(key), None)
            else:
                known[records.name_of(key)] = record

    def _moved(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        offer = new.get("offer")
        told = f": plan {offer['folder'].rpartition('/')[2]}" if offer and offer != old.get("offer") else ""
        if new["current"] != old["current"] or told:
            self.note("good" if told else "info", f"epoch {new['current']} in force{told}", "plan" if told else "epoch")
        if new["phase"] == "preparing" and old["phase"] != "preparing" and new.get("trying"):
            self.note("info", f"everybody prepares for epoch {new['next']}, a new plan", "plan")
        if (new.get("refused") or 0) > (old.get("refused") or 0):
            self.note("warn", "a plan was refused: not everybody could prepare for it, or it was unsound", "plan")

    async def _route(self) -> None:
        """The plan of the epoch in force, unpacked once."""
        number = self.epoch["current"]
        if number != self.routed and number in self._plans:
            self.routing = await asyncio.to_thread(Routing.from_bytes, self._plans[number])
            self.routed = number
            for old in [n for n in self._plans if n < number]:
                del self._plans[old]
            self.changed.set()


def called(role: str, name: str) -> str:
    """A process by role and name, or by its name where that begins with the role.

    >>> called("broker", "hub"), called("source", "source-0")
    ('broker hub', 'source-0')
    """
    return name if name.startswith(role) else f"{role} {name}"


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no number that a process tells")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_NUMBER = frozenset((int, float))


def _is_told(told: Any) -> bool:
    """Whether this is what a process tells about itself, as far as the page needs it."""
    if not isinstance(told, dict) or not all(type(told.get(name)) is str for name in ("name", "role")):
        return False
    subscriptions, predicted = told.get("subscriptions", {}), told.get("predicted") or {}
    adapting = told.get("adapting")
    planned = [predicted.get(name, {}) if isinstance(predicted, dict) else None for name in ("edges", "gateways")]
    return (
        all(_numbers(told.get(part)) for part in ("counts", "carried"))
        and type(told.get("epoch", 0)) is int
        and type(told.get("at", 0.0)) is float
        and isinstance(told.get("groups", []), list)
        and all(type(group) is int for group in told.get("groups", []))
        and isinstance(subscriptions, dict)
        and all(isinstance(each, dict) and type(each.get("lag")) is int for each in subscriptions.values())
        and all(isinstance(each, dict) and all(map(_numbers, each.values())) for each in planned)
        and _numbers(predicted.get("groups", {}))
        and all(group.isdecimal() for group in predicted.get("groups", {}))
        and (adapting is None or isinstance(adapting, dict))
    )


def _numbers(found: Any) -> bool:
    return isinstance(found, dict) and _NUMBER.issuperset(map(type, found.values()))
