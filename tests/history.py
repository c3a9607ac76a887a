"""The checker: what was promised against what came, for simulated and real runs alike.

It knows nothing of the runtime and shares no code with it: a message is (shard, sequence, index) with
its attributes, a subscription a profile and a start. Per subscriber: everything acknowledged that
matches is delivered, nothing twice, nothing that does not match, nothing out of order. And a run
counts only if the faults it asked for happened and every subscriber had messages to miss.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Id = tuple[int, int, int]  # shard, sequence, index
Point = tuple[int, int]  # sequence, index
Wants = Callable[[str, Mapping[str, Any]], bool]


@dataclass(slots=True)
class Taken:
    """What one subscription was promised and what it got, in the order of its application."""

    profile: str
    start: dict[int, Point]
    since: int
    ended: bool = False
    delivered: list[tuple[Id, Mapping[str, Any]]] = field(default_factory=list)
    gaps: list[tuple[int, Point, Point]] = field(default_factory=list)  # shard, after, up to


class History:
    """What happened, as the applications saw it, and what the log holds in the end.

    >>> h = History()
    >>> h.subscribed("ann", "price > 1", {0: (0, 0)})
    >>> h.logged(0, 1, 0, {"price": 2}); h.acked(0, 1, 0, {"price": 2})
    >>> check(h, wants=lambda profile, message: message["price"] > 1).missed
    (('ann', (0, 1, 0)),)
    """

    def __init__(self) -> None:
        self.log: dict[Id, Mapping[str, Any]] = {}
        self.acks: dict[Id, tuple[int, Mapping[str, Any]]] = {}
        self.subscriptions: dict[str, Taken] = {}
        self.asked: set[str] = set()
        self.happened: Counter[str] = Counter()
        self._clock = 0

    def logged(self, shard: int, sequence: int, index: int, message: Mapping[str, Any]) -> None:
        """The log holds this message."""
        self.log[shard, sequence, index] = message

    def now(self) -> int:
        """The moment, in a count of what was written down; for `acked`, where one observer sees everything."""
        self._clock += 1
        return self._clock

    def acked(self, shard: int, sequence: int, index: int, message: Mapping[str, Any], sent: int = 0) -> None:
        """The publisher was told that this message of its own is safe, and where; it began to send it at `sent`."""
        self.acks.setdefault((shard, sequence, index), (sent, message))

    def subscribed(self, name: str, profile: str, start: Mapping[int, Point]) -> None:
        """The subscriber was told that it gets everything after `start`. A name is used once."""
        self.subscriptions.setdefault(name, Taken(profile, dict(start), self.now()))

    def ended(self, name: str) -> None:
        """The subscriber wants no more; what it had not got by then is not missed."""
        self.subscriptions[name].ended = True

    def delivered(self, name: str, shard: int, sequence: int, index: int, message: Mapping[str, Any]) -> None:
        """The subscriber got this message."""
        self.subscriptions[name].delivered.append(((shard, sequence, index), message))

    def gap(self, name: str, shard: int, after: Point, upto: Point) -> None:
        """The subscriber was told that it will not get what lies in `(after, upto]`."""
        self.subscriptions[name].gaps.append((shard, after, upto))

    def fault(self, kind: str, times: int = 1) -> None:
        """A fault happened."""
        self.happened[kind] += times

    def read(self, lines: Iterable[str]) -> None:
        """Add what processes wrote down: one JSON list per line, the method's name and its arguments."""
        for line in lines:
            name, *arguments = json.loads(line)
            if name not in RECORDS:
                raise ValueError(f"record must be one of {', '.join(RECORDS)}, got {name!r}")
            if name == "subscribed":
                arguments[2] = {int(shard): tuple(point) for shard, point in arguments[2].items()}
            if name == "gap":
                arguments[2:] = map(tuple, arguments[2:])
            getattr(self, name)(*arguments)


RECORDS = ("logged", "acked", "subscribed", "ended", "delivered", "gap", "fault")


@dataclass(frozen=True)
class HistoryVerdict:
    """What the checker found. `sound`: no promise was broken. `counts`: the run was a real trial."""

    lost: tuple[Id, ...]  # acknowledged, and the log does not hold it
    missed: tuple[tuple[str, Id], ...]
    repeated: tuple[tuple[str, Id], ...]
    wrong: tuple[tuple[str, Id], ...]
    disordered: tuple[tuple[str, Id], ...]
    delivered: int
    excused: int
    doubts: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not (self.lost or self.missed or self.repeated or self.wrong or self.disordered)

    @property
    def counts(self) -> bool:
        return not self.doubts

    def __str__(self) -> str:
        found = ", ".join(
            f"{len(getattr(self, name))} {name}" for name in ("lost", "missed", "repeated", "wrong", "disordered")
        )
        doubts = f"; does not count: {'; '.join(self.doubts)}" if self.doubts else ""
        return f"{self.delivered} delivered, {found}, {self.excused} in announced gaps{doubts}"


def check(history: History, *, wants: Wants) -> HistoryVerdict:
    """Judge a run. `wants(profile, message)` says what matches, by whatever definition the caller trusts."""
    faults: dict[str, list[tuple[str, Id]]] = {
        name: [] for name in ("missed", "repeated", "wrong", "disordered", "excused")
    }
    doubts = [f"no {kind} happened" for kind in sorted(history.asked) if not history.happened[kind]]
    for name, taken in history.subscriptions.items():
        owed = _owed(history, taken, wants)
        if not owed and not taken.ended:
            doubts.append(f"{name} had no message to miss")
        got = [at for at, _ in taken.delivered]
        for at in sorted(owed - set(got)):
            faults["excused" if _announced(taken, at) else "missed"].append((name, at))
        faults["repeated"] += [(name, at) for at, times in sorted(Counter(got).items()) if times > 1]
        faults["wrong"] += [
            (name, at)
            for at, message in taken.delivered
            if history.log.get(at) != message or not wants(taken.profile, message) or not _begun(taken, at)
        ]
        faults["disordered"] += [(name, at) for at in _disordered(got)]
    return HistoryVerdict(
        lost=tuple(at for at, (_, message) in history.acks.items() if history.log.get(at) != message),
        missed=tuple(faults["missed"]),
        repeated=tuple(faults["repeated"]),
        wrong=tuple(faults["wrong"]),
        disordered=tuple(faults["disordered"]),
        delivered=sum(len(taken.delivered) for taken in history.subscriptions.values()),
        excused=len(faults["excused"]),
        doubts=tuple(doubts),
    )


def _owed(history: History, taken: Taken, wants: Wants) -> set[Id]:
    """What was acknowledged and matches, after the start; and what was sent after the subscription was acknowledged.

    One that ended is owed what came before the last it got of each shard: it may not have holes.
    """
    last: dict[int, Point] = {}
    for (shard, sequence, index), _ in taken.delivered:
        last[shard] = max(last.get(shard, (0, 0)), (sequence, index))
    owed = set()
    for at, (sent, message) in history.acks.items():
        shard, point = at[0], at[1:]
        due = _begun(taken, at) or sent > taken.since
        if taken.ended:
            due = due and point <= last.get(shard, (0, -1))
        if due and wants(taken.profile, message):
            owed.add(at)
    return owed


def _begun(taken: Taken, at: Id) -> bool:
    return at[1:] > taken.start.get(at[0], (0, 0))


def _announced(taken: Taken, at: Id) -> bool:
    return any(at[0] == shard and after < at[1:] <= upto for shard, after, upto in taken.gaps)


def _disordered(got: Iterable[Id]) -> list[Id]:
    """Those that came after a later one of their shard."""
    last: dict[int, Point] = {}
    found = []
    for shard, sequence, index in got:
        if (sequence, index) < last.get(shard, (0, -1)):
            found.append((shard, sequence, index))
        last[shard] = max(last.get(shard, (0, -1)), (sequence, index))
    return found
