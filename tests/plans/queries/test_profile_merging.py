"""Queries of any kind, merged through the profile algebra."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from naive.query_cost import partitions
from narrowcast.errors import InputError

K = {"km": 30, "kt": 1, "ku": 0.05}


def trades(seed, n=400):
    rng = np.random.default_rng(seed)
    return pa.table({"symbol": rng.choice(list("ABCDE"), n).tolist(), "price": rng.integers(0, 100, n).tolist()})


def wishes(seed, n=6):
    rng = np.random.default_rng(seed)
    return [
        f"symbol IN ('{rng.choice(list('ABC'))}', '{rng.choice(list('CDE'))}') AND price > {rng.integers(0, 90)}"
        for _ in range(n)
    ]


def cost_of(profiles, sets, table):
    def rows(members):
        return sum(any(profiles[i].matches(row) for i in members) for row in table.to_pylist())

    total = 0.0
    for members in sets:
        size = rows(members)
        total += K["km"] + K["kt"] * size + K["ku"] * sum(size - rows([i]) for i in members)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_partition_of_profiles_is_the_best_of_all_partitions(seed):
    table, texts = trades(seed, 120), wishes(seed, 4)
    profiles = [nc.Profile.parse(t) for t in texts]
    best = min(cost_of(profiles, sets, table) for sets in partitions(list(range(4))))
    plan = nc.queries.merge_profiles(texts, "partition", size=table, **K)
    assert plan.cost == pytest.approx(best)
    assert plan.cost == pytest.approx(cost_of(profiles, plan.sets, table))


@pytest.mark.parametrize("method", ["pair", "directed", "cluster", "partition"])
def test_merged_profiles_cover_their_members_whatever_the_method(method):
    texts = wishes(7, 8)
    plan = nc.queries.merge_profiles(texts, method, size=trades(7), starts=4, **K)
    assert sorted(i for members in plan.sets for i in members) == list(range(8))
    assert len(plan.sets) < 8
    for members, merged in zip(plan.sets, plan.profiles, strict=True):
        assert all(merged.covers(nc.Profile.parse(texts[i])) for i in members)
    assert plan.cost <= plan.baseline


def test_a_function_of_the_profile_can_say_its_size():
    table = trades(1)

    def size(profile):
        return len(nc.Matcher([profile]).match(table)[0])

    by_function = nc.queries.merge_profiles(wishes(1), size=size, **K)
    assert by_function == nc.queries.merge_profiles(wishes(1), size=table, **K)


def test_a_size_that_is_none_is_refused():
    with pytest.raises(InputError, match=r"size must be .*, got int"):
        nc.queries.merge_profiles(["x > 1"], size=3)
    with pytest.raises(InputError, match=r"size must return .*, got -1"):
        nc.queries.merge_profiles(["x > 1"], size=lambda profile: -1)
