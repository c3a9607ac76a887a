"""What source, broker and edge share: they follow the epochs in the registry and show that they are alive."""

from __future__ import annotations

from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Join, Leave, Watch, Write
from narrowcast.deliver.parts.events import Noted, Tick
from narrowcast.deliver.parts.part import Part
from narrowcast.deliver.routing.routing import Routing, checksum_of, nothing
from narrowcast.deliver.transport import Address

STEADY: dict[str, Any] = {"term": 0, "current": 0, "next": None, "phase": "steady", "cutover": {}}
MOST_PLANS = 4


class Node(Part):
    """A part that prepares epochs: it joins what the next plan needs, then says that it is ready.

    `plans` are the routings it knows by epoch, `epoch` the registry's record of where the system is.
    """

    role = "node"
    sender = False

    def __init__(self, name: str, *, beat: float = 1.0) -> None:
        super().__init__(name)
        self.beat = beat
        self.plans: dict[int, Routing] = {}
        self.epoch: dict[str, Any] = STEADY
        self.ready = 0
        self._beat_at = 0.0
        self._beats = 0
        self._joined: set[Address] = set()
        self._handlers[Noted] = self._on_noted

    def _start(self, now: float) -> None:
        self._do(Watch(records.EPOCH))
        self._do(Watch(records.PLAN))
        self._do(Watch(self._keys_at))

    @property
    def _keys_at(self) -> str:
        """Where the keys of frames are to be found, for those who may have all of them."""
        return records.SEAL

    def _on_tick(self, event: Tick, now: float) -> None:
        if now >= self._beat_at:
            self._show(now)

    def _on_noted(self, event: Noted, now: float) -> None:
        if event.key == records.EPOCH:
            self._take_epoch(self._understood(event.key, event.data), now)
        elif event.key.startswith(records.PLAN):
            self._take_plan(event.key, event.data)
            self._prepare(now)
        elif event.key.startswith(self._keys_at):
            self._take_keys(event)
            self._prepare(now)
        else:
            self._noted(event, now)

    def _take_epoch(self, record: dict[str, Any] | None, now: float) -> None:
        if record is not None:
            self.epoch = record
            self._prepare(now)

    def _noted(self, event: Noted, now: float) -> None:
        """A key that only this role watches."""

    def _take_plan(self, key: str, data: bytes | None) -> None:
        """A plan that cannot be read has no channels: everybody reads the log."""
        try:
            number = records.number_of(key)
            if data is None:
                self.plans.pop(number, None)
                self.seal.forget(number)
            elif number not in self.plans or self.seal.plan_of(number) != checksum_of(data):
                self._replaced(number)
                self.seal.know(number, checksum_of(data))
                self.plans[number] = nothing()
                self.plans[number] = Routing.from_bytes(data)
        except ValueError:
            self.counts["malformed records"] += 1

    def _replaced(self, epoch: int) -> None:
        """A plan is there under a number that may have had another one, as where the registry went back."""

    def _take_keys(self, event: Noted) -> None:
        record = self._understood(event.key, event.data)
        if record is not None:
            try:
                self.seal.add_root(records.number_of(event.key), bytes.fromhex(record["root"]))
            except ValueError:
                self.counts["malformed records"] += 1

    def _has_keys(self, epoch: int) -> bool:
        """Whether frames of an epoch can be opened and sealed, as far as this node has to do with them."""
        return self.seal.is_ready(epoch)

    def _prepare(self, now: float) -> None:
        """Join what every known plan needs, leave the rest, and say so."""
        self._drain()
        self._join()
        known = (n for n in (self.epoch["current"], self.epoch["next"] or 0) if n in self.plans and self._has_keys(n))
        newest = max(known, default=0)
        if newest > self.ready:
            self.ready = newest
            self._show(now)

    def _drain(self) -> None:
        """Forget the plans that can no longer matter."""

    def _wanted(self) -> dict[Address, None]:
        """The addresses to be joined, each once, in a fixed order."""
        raise NotImplementedError

    def _join(self) -> None:
        wanted = self._wanted()
        for address in wanted:
            if address not in self._joined:
                self._do(Join(address, self.sender))
        for address in sorted(self._joined - wanted.keys(), key=repr):
            self._do(Leave(address, self.sender))
        self._joined = set(wanted)

    def _show(self, now: float) -> None:
        self._beats += 1
        self._beat_at = now + self.beat
        record = {"role": self.role, "ready": self.ready, "beat": self._beats}
        self._do(Write(self._request(), records.named(records.NODE, self.name), records.pack(record)))
