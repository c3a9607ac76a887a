"""The state of a followed log: however it is cut into micro-batches, and in whatever order, the sums are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from narrowcast.data.statistics import state as states
from narrowcast.data.statistics.partials import WEIGHT, Partials, weights
from narrowcast.data.statistics.snapshots import snapshot
from narrowcast.data.statistics.state import BatchSpan, StreamState, anchor_of, as_sums
from narrowcast.errors import InputError
from narrowcast.model.snapshot import latest, save

TEXTS = ("a < 1", "b < 1", "c < 1")
HALF_LIFE_S, HALF_LIFE_US = 10.0, 10_000_000


class Messages:
    """Messages with a time (or none), a flow, and which of three profiles match."""

    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.ts = 1_000_000_000 + rng.integers(0, 200_000_000, n)
        self.timed = rng.random(n) > 0.1
        self.flow = np.array(["x", "y", "z"])[rng.integers(3, size=n)]
        self.match = rng.random((n, 3)) < (0.5, 0.3, 0.1)

    def sums(self, rows: np.ndarray, state: StreamState, *, timed: bool) -> Any:
        """What workers would hand over for these rows."""
        rows = rows[self.timed[rows] == timed]
        assert state.anchor is not None
        age = (state.anchor * HALF_LIFE_US - self.ts[rows]).astype(float) if timed else np.full(rows.size, np.nan)
        values = np.stack([np.ones(rows.size, np.int64), rows * 1024, weights(age, HALF_LIFE_S, None)], axis=1)
        at, profile = np.nonzero(self.match[rows])
        partials = Partials(3)
        partials.add(at, profile, values, pa.array(self.flow[rows]))
        numbers = np.array([state.numbers[text] for text in TEXTS])
        return as_sums(pa.Table.from_batches(list(partials.take())), numbers, timed=timed)

    def taken(self, state: StreamState, rows: np.ndarray, batch: int) -> StreamState:
        times = self.ts[rows][self.timed[rows]]
        first, newest = (int(times.min()), int(times.max())) if times.size else (None, None)
        span = BatchSpan(rows.size, times.size, first, newest, {0: batch})
        state = state.with_profiles(TEXTS).at(anchor_of(span.newest(state.newest_us), HALF_LIFE_US))
        return state.plus([self.sums(rows, state, timed=timed) for timed in (True, False)], span, batch)


def tables(state: StreamState) -> dict[str, Any]:
    holders = {text: ["ann", "bob"] for text in TEXTS}
    return dict(snapshot(state, holders, key=("flow",), half_life_s=HALF_LIFE_S).tables)


@pytest.mark.parametrize("seed", range(5))
def test_any_cut_into_micro_batches_in_any_order_gives_the_same_statistics(seed: int) -> None:
    messages, rng = Messages(2000, seed), np.random.default_rng(seed)
    whole = messages.taken(StreamState(), np.arange(2000), 0)
    cuts = np.sort(rng.choice(np.arange(1, 2000), 12, replace=False))
    state = StreamState()
    for batch, rows in enumerate(np.split(rng.permutation(2000), cuts)):
        state = messages.taken(state, rows, batch)
    got, want = tables(state), tables(whole)
    for name, table in want.items():
        for column in table.column_names:
            a, b = (t[column].to_numpy() for t in (got[name], table))
            if a.dtype.kind == "f":
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=20 / WEIGHT, err_msg=f"{name}.{column}")
            else:
                assert a.tolist() == b.tolist(), f"{name}.{column}"


def test_a_log_without_messages_or_subscribers_has_empty_tables(tmp_path: Path) -> None:
    found = snapshot(StreamState(batch=0), {}, key=("flow",), half_life_s=HALF_LIFE_S)
    save(found, tmp_path)
    again = latest(tmp_path)
    assert again is not None
    assert {table.num_rows for table in again.tables.values()} == {0}
    assert again.as_interest().n_flows == 0


def test_weights_are_those_of_the_definition() -> None:
    messages = Messages(500, 9)
    found = tables(messages.taken(StreamState(), np.arange(500), 0))
    newest = messages.ts[messages.timed].max()
    weight = np.where(messages.timed, 0.5 ** ((newest - messages.ts) / HALF_LIFE_US), 1.0)
    np.testing.assert_allclose(found["selectivity"]["weight"].to_numpy(), weight @ messages.match, rtol=1e-7)
    np.testing.assert_allclose(
        found["selectivity"]["selectivity"].to_numpy(), weight @ messages.match / weight.sum(), rtol=1e-7
    )
    together = messages.match.T @ (messages.match * weight[:, None])
    pairs = zip(found["overlap"]["profile"].to_pylist(), found["overlap"]["other"].to_pylist(), strict=True)
    np.testing.assert_allclose(found["overlap"]["weight"].to_numpy(), [together[i, j] for i, j in pairs], rtol=1e-7)
    by_flow = [weight[messages.flow == flow].sum() for flow in "xyz"]
    np.testing.assert_allclose(found["flows"]["weight"].to_numpy(), by_flow, rtol=1e-7)


def test_a_profile_that_went_and_came_back_begins_again() -> None:
    messages = Messages(300, 1)
    state = messages.taken(StreamState(), np.arange(300), 0)
    without = state.with_profiles(TEXTS[:2])
    assert set(without.sums["a"].to_pylist()) == {-1, 0, 1}
    assert set(without.sums["b"].to_pylist()) == {-1, 1}
    again = without.with_profiles(TEXTS)
    assert again.numbers == {"a < 1": 0, "b < 1": 1, "c < 1": 3}
    assert 3 not in again.sums["a"].to_pylist()


def test_what_has_decayed_to_nothing_is_forgotten_and_what_has_no_time_is_not() -> None:
    messages = Messages(300, 2)
    messages.timed[messages.flow == "x"] = True
    state = messages.taken(StreamState(), np.arange(300), 0)
    assert state.anchor is not None
    later = state.at(state.anchor + 60).without_the_forgotten()
    flows = set(later.sums["flow"].to_pylist()) - {""}
    assert flows == set(messages.flow[~messages.timed])
    assert "x" not in flows


def test_a_state_that_was_written_is_read_again_and_only_the_last_ones_stay(tmp_path: Path) -> None:
    messages, state = Messages(100, 3), StreamState()
    assert states.load(tmp_path).batch == -1
    for batch in range(4):
        state = messages.taken(state, np.arange(batch * 25, batch * 25 + 25), batch)
        states.save(state, tmp_path)
    (tmp_path / "state-00000009").mkdir()  # half written by somebody who was killed: no head in it
    again = states.load(tmp_path)
    assert again.sums.equals(state.sums)
    assert {name: getattr(again, name) for name in ("batch", "anchor", "position", "numbers", "newest_us")} == {
        "batch": 3, "anchor": state.anchor, "position": {0: 3}, "numbers": state.numbers, "newest_us": state.newest_us
    }  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state-00000002", "state-00000003", "state-00000009"]
    (tmp_path / "state-00000003" / "sums.parquet").write_bytes(b"damaged")
    with pytest.raises(InputError, match="the state cannot be read"):
        states.load(tmp_path)
