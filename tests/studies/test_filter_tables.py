"""Filter tables, on a system a person can draw."""

from __future__ import annotations

import numpy as np
from studies.filter_tables import covering, filter_tables

import narrowcast as nc
from naive import semantic_system as naive
from narrowcast.network import shortest_paths
from narrowcast.plans.semantic.window import system

# 0 - 1 - 2, 1 - 3: a client of "x > 1" at 2, of "x > 5" and "x < 0" at 3.
Y = nc.Topology([(0, 1), (1, 2), (1, 3)])
PROFILES = ["x > 1", "x > 5", "x < 0"]
CLIENTS = [(0, 2), (1, 3), (2, 3)]


def test_a_broker_keeps_what_is_wanted_below_it_and_covering_shortens_that() -> None:
    made = system(Y, PROFILES, CLIENTS)
    assert filter_tables(made, 0).tolist() == [3, 3, 1, 2]
    # At 0 and 1 "x > 1" covers "x > 5".
    assert filter_tables(made, 0, covering(made)).tolist() == [2, 2, 1, 2]


def test_equal_profiles_cover_each_other_and_one_of_them_stays() -> None:
    made = system(Y, ["x > 1", "x > 1", "1 < x"], [(0, 2), (1, 2), (2, 2)])
    assert filter_tables(made, 0, covering(made)).tolist() == [1, 1, 1, 0]


def test_a_window_only_saves_tests_and_never_changes_what_covers() -> None:
    for seed in range(15):
        small = naive.small_system(seed)
        made = system(small.topology, small.profiles, small.clients)
        assert np.array_equal(covering(made), covering(made, made.match(small.window)))


def test_tables_are_those_of_the_definition_on_random_systems() -> None:
    for seed in range(30):
        small = naive.small_system(seed)
        made = system(small.topology, small.profiles, small.clients)
        paths = shortest_paths(small.topology)
        for source in range(small.topology.n_brokers):
            below: dict[int, set[int]] = {}
            for profile, gateway in small.clients:
                for broker in paths.path(gateway, source):
                    below.setdefault(broker, set()).add(profile)
            expected = [len(below.get(broker, ())) for broker in range(small.topology.n_brokers)]
            assert filter_tables(made, source).tolist() == expected
