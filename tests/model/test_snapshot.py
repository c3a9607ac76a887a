"""Snapshots in folders: whole or not there, the newest first, old ones gone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from narrowcast.errors import InputError
from narrowcast.model.snapshot import TABLES, Snapshot, folder_of, latest, load, numbers, save


def made(number: int) -> Snapshot:
    """Two flows; ann wants both, bob has not wanted his for long."""
    tables = {
        name: pa.table({column: pa.array([], pa.float64()) for column in columns}) for name, columns in TABLES.items()
    }
    flows = {"flow": ["x", "y"], "rate": [2.0, 1.0], "size": [1.0, 1.0], "messages": [8, 4], "bytes": [8.0, 4.0]}
    tables["flows"] = pa.table(flows | {"weight": [4.0, 0.5], "recent_rate": [3.0, 0.25]})
    pairs = {"flow": ["x", "x", "y"], "subscriber": ["ann", "bob", "ann"], "weight": [4.0, 1e-6, 0.5]}
    tables["interest"] = pa.table(pairs)
    return Snapshot(number, {0: 7, 1: 9}, 12, 4.5, 4.0, 10, 4_000_010, 60.0, ("symbol",), tables)


def test_a_snapshot_is_read_as_it_was_written(tmp_path: Path) -> None:
    place = save(made(12), tmp_path)
    assert place == tmp_path / "snapshot-00000012"
    again = load(place)
    assert again.tables == made(12).tables
    assert (again.position, again.key, again.half_life_s) == ({0: 7, 1: 9}, ("symbol",), 60.0)
    assert again.written_at > 1.7e9


def test_the_newest_complete_one_is_taken_and_old_ones_go(tmp_path: Path) -> None:
    assert latest(tmp_path / "nowhere") is None
    for number in range(6):
        save(made(number), tmp_path, keep=3)
    folder_of(tmp_path, 9).mkdir()  # somebody's, without a manifest
    assert numbers(tmp_path) == [3, 4, 5]
    found = latest(tmp_path)
    assert found is not None
    assert found.number == 5
    assert latest(tmp_path, after=5) is None


def test_interest_has_the_rates_of_now_and_without_who_hardly_wants_it(tmp_path: Path) -> None:
    interest = made(0).as_interest(least_weight=1e-3)
    assert (interest.flow_names, interest.user_names, interest.rates.tolist()) == (("x", "y"), ("ann",), [3.0, 0.25])
    everybody = made(0).as_interest(recent=False)
    assert (everybody.user_names, everybody.rates.tolist(), everybody.n_pairs) == (("ann", "bob"), [2.0, 1.0], 3)


def test_a_folder_that_is_no_snapshot_is_refused_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no complete snapshot here"):
        load(tmp_path)
    place = save(made(1), tmp_path)
    (place / "flows.parquet").write_bytes(b"damaged")
    with pytest.raises(InputError, match="no complete snapshot here"):
        latest(tmp_path)
