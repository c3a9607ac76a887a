"""What holds for every entry of the dict of workloads."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.workloads.tables.write import TABLES

SMALL: dict[str, dict[str, Any]] = {
    "market": {"symbols": 800, "users": 40},
    "random": {"flows": 300, "users": 20},
    "mechanical": {"processes": 20, "topics": 100},
    "tree_demand": {"levels": 5},
    "overlay": {"brokers": 40},
    "rectangles": {"n": 20},
    "commuter": {"users": 20, "sites": 4, "topics": 10, "wishes": 3},
    "network": {"sites": 3, "users": 20, "symbols": 100},
}
EVERY = pytest.mark.parametrize("kind", nc.workloads.WORKLOADS)


def arrays(made: Any) -> list[Any]:
    """Everything a workload is made of, as something to compare."""
    if isinstance(made, np.ndarray):
        return [made]
    if isinstance(made, nc.Interest):
        return [made.offsets, made.users, made.rates]
    if isinstance(made, nc.Topology):
        return [made.edges, made.cost, made.delay, np.array(made.roles)]
    if isinstance(made, nc.workloads.Commuter):
        return [made.user, made.flow, made.place, made.base, made.leaves, made.returns]
    if isinstance(made, NetworkDemand):
        return [made.interest.users, made.host, made.bound, made.multicast, made.source]
    return [made.words, made.flow, made.chance]


@EVERY
def test_the_same_seed_gives_the_same_and_another_seed_something_else(kind: str) -> None:
    make = nc.workloads.WORKLOADS[kind]
    once, again, other = (arrays(make(**SMALL[kind], seed=seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(once, other, strict=True))


@EVERY
@pytest.mark.parametrize("seed", [-1, 1.5, None, "x"])
def test_a_seed_is_a_whole_number_from_zero(kind: str, seed: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="seed"):
        nc.workloads.WORKLOADS[kind](seed=seed)
    with pytest.raises(InputError, match="seed"):
        nc.workloads.write(kind, tmp_path / "w", seed=seed)


@EVERY
def test_what_comes_out_does_not_depend_on_what_was_drawn_before(kind: str) -> None:
    make = nc.workloads.WORKLOADS[kind]
    once = arrays(make(**SMALL[kind]))
    np.random.seed(99)
    assert all(np.array_equal(a, b) for a, b in zip(once, arrays(make(**SMALL[kind])), strict=True))


def test_every_workload_can_be_called_by_name_and_written_as_tables() -> None:
    assert set(nc.workloads.WORKLOADS) == set(TABLES)
    for kind, make in nc.workloads.WORKLOADS.items():
        assert getattr(nc.workloads, kind) is make
        assert {"messages", "users", "seed"} <= set(inspect.signature(TABLES[kind]).parameters)


@EVERY
def test_nothing_that_comes_out_can_be_changed_by_accident(kind: str) -> None:
    for array in arrays(nc.workloads.WORKLOADS[kind](**SMALL[kind])):
        if kind not in ("rectangles",) and array.dtype.kind in "iufb":
            with pytest.raises(ValueError, match="read-only"):
                array[:1] = 0


@EVERY
def test_writing_twice_gives_the_same_bytes(kind: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        nc.workloads.write(kind, tmp_path / name, messages=300, users=16, seed=5, bad_rows=0.05)
    for file in sorted((tmp_path / "a").iterdir()):
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name
