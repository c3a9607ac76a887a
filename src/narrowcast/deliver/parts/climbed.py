"""What a filtered tree carries for one edge: its subscriptions that are sure, and from where on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

NOWHERE = 1 << 256


@dataclass(slots=True)
class _Carried:
    """One subscription in one epoch: since which change of its gateway, and the place from which frames hold it all."""

    since: int
    start: dict[int, int] = field(default_factory=dict)  # by shard; complete once every shard is there


class Climbed:
    """Follows the records of our gateway, one for each epoch.

    That a subscription is sure means that every broker above has it in its table. Frames that were thinned before may
    still be about; none of them claims anything beyond the end of the log as it is afterwards. So the log is asked,
    and what frames say counts from there on.
    """

    def __init__(self, edge: str, shards: tuple[int, ...]) -> None:
        self.edge, self.shards = edge, shards
        self.keys: dict[int, str] = {}  # of the records, by epoch
        self._asked: dict[int, list[_Carried]] = {}  # open requests to the log, and for whom
        self._records: dict[int, tuple[int, dict[str, Any]]] = {}  # by epoch, with their revisions
        self._carried: dict[int, dict[str, _Carried]] = {}

    def forget(self, epochs: Collection[int]) -> None:
        """Keep what belongs to these epochs; the others are over."""
        self.keys = {epoch: key for epoch, key in self.keys.items() if epoch in epochs}
        self._records = {epoch: found for epoch, found in self._records.items() if epoch in epochs}
        self._carried = {epoch: found for epoch, found in self._carried.items() if epoch in epochs}

    def drop(self, name: str) -> None:
        """A subscription has ended; one of the same name is another."""
        for carried in self._carried.values():
            carried.pop(name, None)

    def hear(self, key: str, record: dict[str, Any], revision: int) -> bool:
        """The record of our gateway; whether it is news."""
        epoch = next((epoch for epoch, known in self.keys.items() if known == key), None)
        if epoch is None or revision <= self._records.get(epoch, (0, {}))[0]:
            return False
        self._records[epoch] = (revision, record)
        return True

    def settle(self, profiles: Mapping[str, str]) -> bool:
        """Take over what the records say of these subscriptions; whether the ends of the log must be asked for."""
        for epoch, (_, record) in self._records.items():
            carried = self._carried.setdefault(epoch, {})
            for name, profile in profiles.items():
                edge, known, sure, since = record["subs"].get(name, (None, None, 0, 0))
                if not sure or (edge, known) != (self.edge, profile):
                    carried.pop(name, None)
                elif name not in carried or carried[name].since != since:
                    carried[name] = _Carried(since)
        return bool(self._unplaced())

    def ask(self, request: int) -> None:
        """The end of a shard is being asked for; the answer is for whoever waits now, and for nobody later."""
        self._asked[request] = self._unplaced()

    def located(self, request: int, shard: int, end: int) -> bool:
        """The end of a shard, if it was asked for here; None for no answer."""
        waiting = self._asked.pop(request, None)
        for each in waiting or ():
            each.start.setdefault(shard, end)
        if waiting is not None and not self._unplaced():
            self._asked = {}
        return waiting is not None

    def _unplaced(self) -> list[_Carried]:
        every = [each for carried in self._carried.values() for each in carried.values()]
        return [each for each in every if len(each.start) < len(self.shards)]

    def carries(self, epoch: int, name: str) -> bool:
        """Whether frames of an epoch hold all that a subscription wants, from some place on."""
        found = self._carried.get(epoch, {}).get(name)
        return found is not None and len(found.start) == len(self.shards)

    def start(self, epoch: int, name: str, shard: int) -> int:
        """That place; beyond all places, if there is none."""
        found = self._carried.get(epoch, {}).get(name)
        return NOWHERE if found is None else found.start.get(shard, NOWHERE)

    def turn(self, epoch: int) -> int:
        """Of the gateway, as we know it."""
        turn: int = self._records[epoch][1]["turn"] if epoch in self._records else 0
        return turn
