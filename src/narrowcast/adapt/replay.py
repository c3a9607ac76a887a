"""The demand of a recorded log, stretch by stretch, with time taken from the records: faster than real time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.demand import Demand
from narrowcast.model.quarantine import Quarantine
from narrowcast.profiles.flow_key import flow_name
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.possible import candidates, possible

SAMPLE = 2000  # messages of a stretch that come along


@dataclass(frozen=True)
class Record:
    """A recorded log: messages with a time column `ts`, and who wanted what when.

    `wishes` has columns subscriber and profile; with `since` and `until` (times, or null for always) a wish holds
    between them, with `node` the subscriber is behind that broker. `key` names the columns that make a flow.
    """

    messages: Any
    wishes: Any
    key: tuple[str, ...]

    def demands(self, every_s: float, half_life_s: float) -> Iterator[Demand]:
        """The demand at the end of every stretch of so many seconds, each counted from midnight of the first day."""
        names, flow = self._flows()
        order, first = self._times()
        users, wanted, since, until = self._wishes(names, first)
        smooth, weight, fade = np.zeros(len(names)), 0.0, 0.5 ** (every_s / half_life_s)
        begin = np.floor(order[0] / every_s) * every_s if order.size else 0.0
        for end in np.arange(begin + every_s, (order[-1] if order.size else 0.0) + every_s, every_s):
            low, high = np.searchsorted(order, (end - every_s, end))
            counted = np.bincount(flow[low:high], minlength=len(names)) / every_s
            smooth, weight = fade * smooth + (1 - fade) * counted, fade * weight + 1 - fade
            held = (since < end) & (end <= until)
            pairs = [(k, users[1][i]) for i in np.flatnonzero(held) for k in wanted[i]]
            at = np.array(pairs, np.int64).reshape(-1, 2)
            now, latest = (
                Interest.from_pairs(at[:, 0], at[:, 1], rates, flow_names=names, user_names=users[0])
                for rates in (smooth / weight, counted)
            )
            some = np.unique(np.linspace(low, high - 1, min(SAMPLE, high - low)).astype(np.int64))
            sample = self.messages.take(some)
            yield Demand(now, self.key, float(end), latest, self._profiles(held), self._nodes(), sample)

    def _flows(self) -> tuple[list[str], Ints]:
        """The names of all flows of the log, and the flow of each message; without a key all are one flow."""
        if not self.key:
            return ["all"], np.zeros(self.messages.num_rows, np.int64)
        for name in self.key:
            if name not in self.messages.column_names:
                raise InputError(f"messages have no column {name!r}", name="key", got=name)
        columns = [self.messages[name].to_pylist() for name in self.key]
        texts = [flow_name(dict(zip(self.key, row, strict=True)), self.key) for row in zip(*columns, strict=True)]
        names, flow = np.unique(np.array(texts, object).astype(str), return_inverse=True)
        return names.tolist(), flow.astype(np.int64)

    def _times(self) -> tuple[Floats, float]:
        """Seconds of each message after midnight of the first day, ascending, and when that was."""
        if "ts" not in self.messages.column_names:
            raise InputError("messages have no column 'ts' to take the time from", name="messages")
        at = _seconds(self.messages["ts"])
        if np.isnan(at).any():
            raise InputError("every message must have a time in ts", name="messages")
        if at.size and (np.diff(at) < 0).any():
            raise InputError("messages must be in ascending order of ts", name="messages", hint="sort them by ts")
        first = float(np.floor(at[0] / 86400) * 86400) if at.size else 0.0
        return at - first, first

    def _wishes(self, names: Sequence[str], first: float) -> tuple[tuple[list[str], Ints], list[Ints], Floats, Floats]:
        """Subscribers and whose each wish is, the flows it may want, and from when until when it holds."""
        table = self.wishes
        people, whose = np.unique(np.array(table["subscriber"].to_pylist(), str), return_inverse=True)
        place = {name: k for k, name in enumerate(names)}
        known: dict[str, Ints] = {}
        for text in table["profile"].to_pylist():
            if text not in known:
                known[text] = _wanted(text, place, self.key)
        empty = np.full(table.num_rows, np.nan)
        since, until = (_seconds(table[c]) - first if c in table.column_names else empty for c in ("since", "until"))
        since, until = np.where(np.isnan(since), -np.inf, since), np.where(np.isnan(until), np.inf, until)
        return (people.tolist(), whose), [known[text] for text in table["profile"].to_pylist()], since, until

    def _profiles(self, held: Any) -> dict[str, str]:
        """What each subscriber wants now: any of the wishes that hold."""
        found: dict[str, list[str]] = {}
        names, texts = (self.wishes[c].to_pylist() for c in ("subscriber", "profile"))
        for i in np.flatnonzero(held):
            found.setdefault(names[i], []).append(texts[i])
        return {name: wishes[0] if len(wishes) == 1 else " OR ".join(f"({w})" for w in wishes)
                for name, wishes in found.items()}  # fmt: skip

    def _nodes(self) -> dict[str, str]:
        if "node" not in self.wishes.column_names:
            return {}
        return dict(zip(*(self.wishes[c].to_pylist() for c in ("subscriber", "node")), strict=True))


def usable_wishes(wishes: Any, path: str | Path, quarantine: Quarantine) -> Any:
    """The rows with a subscriber, a profile and times that can be read; the others are set aside with their reason."""
    faults: dict[Any, str] = {}
    for text in set(wishes["profile"].to_pylist()):
        try:
            parsed(str(text or ""))
        except InputError as error:
            faults[text] = " ".join(f"profile: {error}".split()) if text else "profile is empty"
    good = np.ones(wishes.num_rows, np.bool_)
    times = [name for name in ("since", "until") if name in wishes.column_names]
    for row, (who, text, *at) in enumerate(
        zip(*(wishes[c].to_pylist() for c in ("subscriber", "profile", *times)), strict=True)
    ):
        fault = "subscriber is empty" if who in (None, "") else faults.get(text)
        for name, value in zip(times, at, strict=True):
            if isinstance(value, str) and _time(value) is None:
                fault = fault or f"{name} must be a time, as 2026-01-05T09:30:00Z, or seconds, got {value!r}"
        if fault:
            quarantine.add(path, [row], fault)
            good[row] = False
    return wishes.filter(good)


def _wanted(text: str, place: dict[str, int], key: tuple[str, ...]) -> Ints:
    """The flows that a profile may want; without a key the one that there is."""
    if not key:
        return np.array(list(place.values()), np.int64)
    expression = parsed(text).expression
    named = candidates(expression, key)
    among = place if named is None else sorted(named & place.keys())
    return np.array([place[flow] for flow in among if possible(expression, flow, key)], np.int64)


def _seconds(column: Any) -> Floats:
    """Times as seconds since 1970; null is not a number."""
    import pyarrow as pa

    if pa.types.is_string(column.type):
        column = pa.chunked_array(
            [[None if text is None else _time(text) for text in column.to_pylist()]], pa.float64()
        )
    scale = 1.0
    if pa.types.is_temporal(column.type):
        column, scale = column.cast(pa.timestamp("us")).cast(pa.int64()), 1e6
    found: Floats = column.cast(pa.float64()).to_numpy(zero_copy_only=False) / scale
    return found


def _time(text: str) -> float | None:
    """Seconds since 1970 that a text says, in UTC where it names no zone; NaN for always, None if it says none.

    >>> _time("1970-01-02T00:00:00Z"), _time("86400"), _time("noon")
    (86400.0, 86400.0, None)
    """
    with suppress(ValueError):
        return float(text or "nan")
    with suppress(ValueError):
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return None
