"""From the sums of a followed log to the tables of a snapshot, by `definitions`, on one machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.data.statistics.definitions import (
    flow_columns,
    overlap_columns,
    pair_columns,
    profile_rates,
    recent_seconds,
    selectivity,
)
from narrowcast.data.statistics.partials import FLOW, OVERLAP, PAIR, PROFILE, TOTAL, WEIGHT
from narrowcast.data.statistics.state import StreamState
from narrowcast.model.snapshot import Snapshot

Floats = NDArray[np.float64]
HoldersByText = Mapping[str, Sequence[str]]  # the subscribers of each profile, by its text


def snapshot(state: StreamState, holders: HoldersByText, *, key: Sequence[str], half_life_s: float | None) -> Snapshot:
    """The statistics now, for the profiles that somebody holds; profiles are numbered in the order of their texts."""
    return _Tables(state, holders, half_life_s).snapshot(tuple(key))


class _Tables:
    """The sums with what every table needs: the profiles' places in the order of texts, and weights as of now."""

    def __init__(self, state: StreamState, holders: HoldersByText, half_life_s: float | None) -> None:
        self.state, self.half_life_s = state, half_life_s
        self.texts = sorted(text for text in state.numbers if holders.get(text))
        self.holders = [sorted(set(holders[text])) for text in self.texts]
        self.place = np.full(state.next_number + 1, -1, np.int64)
        self.place[[state.numbers[text] for text in self.texts]] = np.arange(len(self.texts))
        first, newest = state.first_us, state.newest_us
        self.seconds = None if first is None or newest is None else (newest - first) / 1e6 or None
        self.grown = self._since_newest()
        self.sums = {kind: self._of(kind) for kind in (TOTAL, PROFILE, FLOW, PAIR, OVERLAP)}
        self.total = float(self.weight(self.sums[TOTAL]).sum())
        self.own = self._dense(self.weight(self.sums[PROFILE]), self.sums[PROFILE])

    def _since_newest(self) -> float:
        """What weighs 1 at the anchor, as of the newest message."""
        anchor, newest = self.state.anchor, self.state.newest_us
        if anchor is None or newest is None or self.half_life_s is None:
            return 1.0
        half_life_us = round(self.half_life_s * 1e6)
        return float(np.exp2((anchor * half_life_us - newest) / half_life_us))

    def _of(self, kind: str) -> Any:
        import pyarrow.compute as pc

        return self.state.sums.filter(pc.equal(self.state.sums["kind"], kind))

    def weight(self, sums: Any) -> Floats:
        result: Floats = sums["weight"].to_numpy() * (self.grown / WEIGHT) + sums["timeless"].to_numpy()
        return result

    def snapshot(self, key: tuple[str, ...]) -> Snapshot:
        total, state = self.sums[TOTAL], self.state
        pairs = self._flow_profile()
        tables = {
            "flows": self._flows(),
            "flow_profile": pairs,
            "interest": self._interest(pairs),
            "profiles": self._profiles(),
            "holders": self._holders(),
            "overlap": self._overlap(),
        } | self._by_profile()
        return Snapshot(
            number=state.batch,
            position=dict(state.position),
            messages=int(total["messages"].to_numpy().sum()),
            weight=self.total,
            log_seconds=self.seconds,
            first_us=state.first_us,
            newest_us=state.newest_us,
            half_life_s=self.half_life_s,
            key=key,
            tables=tables,
        )

    def _flows(self) -> Any:
        sums, weight = self.sums[FLOW], self.weight(self.sums[FLOW])
        made = flow_columns(sums["messages"].to_numpy(), sums["bytes"].to_numpy(), self.seconds)
        recent = {"weight": weight, "recent_rate": weight / recent_seconds(self.seconds, self.half_life_s)}
        return _sorted({"flow": sums["flow"], **made, **recent}, "flow")

    def _dense(self, values: NDArray[Any], sums: Any) -> NDArray[Any]:
        """By profile, 0 for those without a sum."""
        found = np.zeros(len(self.texts) + 1, values.dtype)
        found[self.place[sums["a"].to_numpy()]] = values  # what has no place lands in the last, which goes
        return found[:-1]

    def _by_profile(self) -> dict[str, Any]:
        sums = self.sums[PROFILE]
        messages, units = (self._dense(sums[name].to_numpy(), sums) for name in ("messages", "bytes"))
        return {
            "profile_rates": profile_rates(messages, units, self.seconds),
            "selectivity": selectivity(self.own, self.total, unit=1),
        }

    def _overlap(self) -> Any:
        sums = self.sums[OVERLAP]
        one, two = self.place[sums["a"].to_numpy()], self.place[sums["b"].to_numpy()]
        both = self.weight(sums)
        kept = (one >= 0) & (two >= 0) & (both > 0)
        one, two, both = one[kept], two[kept], both[kept]
        columns = overlap_columns(np.minimum(one, two), np.maximum(one, two), both, self.own, unit=1)
        return _sorted(columns, "profile", "other")

    def _flow_profile(self) -> Any:
        sums = self.sums[PAIR]
        profile = self.place[sums["a"].to_numpy()]
        kept = profile >= 0
        made = pair_columns(sums["messages"].to_numpy()[kept], sums["bytes"].to_numpy()[kept])
        weight = self.weight(sums)[kept]
        columns = {"flow": sums["flow"].filter(kept), "profile": profile[kept], **made, "weight": weight}
        return _sorted(columns, "flow", "profile")

    def _profiles(self) -> Any:
        import pyarrow as pa

        counts = np.array([len(who) for who in self.holders], np.int64)
        texts = pa.array(self.texts, pa.string())
        return _table({"profile": np.arange(len(self.texts)), "text": texts, "n_subscribers": counts})

    def _holders(self) -> Any:
        import pyarrow as pa

        profile = np.repeat(np.arange(len(self.texts)), [len(who) for who in self.holders])
        return _table({"profile": profile, "subscriber": pa.array(_flat(self.holders), pa.string())})

    def _interest(self, pairs: Any) -> Any:
        """A subscriber wants a flow if a profile of theirs matched any of it; the weight is that of the profile
        that matches most, so it is at least so much."""
        joined = pairs.select(["flow", "profile", "weight"]).join(self._holders(), "profile", join_type="inner")
        found = joined.group_by(["flow", "subscriber"]).aggregate([("weight", "max")])
        columns = {"flow": found["flow"], "subscriber": found["subscriber"], "weight": found["weight_max"]}
        return _sorted(columns, "flow", "subscriber")


def _flat(lists: Iterable[Sequence[str]]) -> list[str]:
    return [item for items in lists for item in items]


def _table(columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(dict(columns))


def _sorted(columns: Mapping[str, Any], *by: str) -> Any:
    return _table(columns).sort_by([(name, "ascending") for name in by]).combine_chunks()
