"""A system on one machine: what it is made of follows from its plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import narrowcast as nc
from narrowcast.deliver.processes.planner import with_key
from narrowcast.deliver.processes.supervise import Supervisor, brokers_of, local_system
from narrowcast.plans.filters.result import TreeDemand, placed


def test_the_brokers_of_a_plan_are_those_of_its_trees_each_with_a_port_of_its_own() -> None:
    tree = nc.Tree([-1, 0, 0], names=["w", "a", "b"])
    found = brokers_of(placed(TreeDemand(tree, np.array([2.0, 1, 1])), [0], {"objective": "traffic", "k": 1}))
    assert set(found) == {"w", "a", "b"}
    assert len(set(found.values())) == 3
    interest = nc.Interest.from_pairs([0], [0], [1.0])
    channels = with_key(nc.channels.plan(interest, groups=1, sessions=1, method="gf"), ["symbol"])
    assert brokers_of(channels) == brokers_of(None) == {}


def test_there_is_a_source_for_each_shard_and_one_process_for_all_brokers_and_a_gate(tmp_path: Path) -> None:
    plain = Supervisor(local_system(tmp_path, shards=2))
    assert plain._roles() == ["coordinator", "source-0", "source-1", "gate"]
    with_brokers = Supervisor(local_system(tmp_path, brokers={"b": "tcp://127.0.0.1:1"}))
    assert with_brokers._roles() == ["coordinator", "brokers", "source-0", "gate"]
