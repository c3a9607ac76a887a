"""Statistics measured at several sources, merged, plan as the messages themselves would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from naive import semantic_system as naive
from naive.measured import matches, measured
from narrowcast.errors import InputError
from narrowcast.plans.semantic.api import Statistics
from narrowcast.plans.semantic.judge.faults import semantic_faults


def from_sources(small: naive.Small, folder: Path) -> Statistics:
    """Each source's messages measured apart."""
    brokers = np.broadcast_to(small.sources, small.window.num_rows)
    parts = []
    for source in np.unique(brokers).tolist():
        mine = small.window.filter(pa.array(brokers == source))
        parts.append(Statistics.from_folder(measured(folder / str(source), small.profiles, mine), source))
    return Statistics.merged(parts)


@pytest.mark.parametrize("variant", nc.semantic.METHODS)
def test_a_plan_from_merged_statistics_is_as_good_and_sound_as_one_from_the_messages(variant, tmp_path) -> None:
    for seed in range(12):
        small = naive.small_system(seed)
        if not small.window.num_rows or not small.clients:
            continue
        (tmp_path / str(seed)).mkdir()
        found = from_sources(small, tmp_path / str(seed))
        args = (small.topology, small.profiles, small.clients)
        ours = nc.semantic.plan(*args, found, variant=variant)
        theirs = nc.semantic.plan(*args, small.window, small.sources, variant=variant)
        assert naive.missed(ours, small.clients, small.profiles, small.later, small.later_sources) == []
        assert naive.missed(ours, small.clients, small.profiles, small.window, small.sources) == []
        plan = ours.to_tables()
        assert semantic_faults(plan) == []
        if variant == "search":  # others depend on the order in which messages came
            cost = [nc.semantic.bandwidth(made, small.window, small.sources) for made in (ours, theirs)]
            assert cost[0] == pytest.approx(cost[1]), seed
            assert plan.cost["full"] == pytest.approx(cost[0])


def test_selectivity_and_overlap_of_merged_statistics_are_those_of_all_messages(tmp_path) -> None:
    small = naive.small_system(11)
    found = from_sources(small, tmp_path)
    profiles = [nc.Profile.parse(text) for text in found.profiles]
    sets = matches(profiles, small.window)
    for i in range(len(profiles)):
        mine = [found for found in sets if i in found]
        assert found.selectivity(i) == pytest.approx(len(mine) / len(sets))
        for j in range(len(profiles)):
            share = sum(j in each for each in mine) / len(mine) if mine else 0.0
            assert found.overlap(i, j) == pytest.approx(share)


def test_folders_without_the_tables_are_refused_in_one_line(tmp_path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        Statistics.from_folder(tmp_path / "nowhere")
    small = naive.small_system(11)
    folder = measured(tmp_path / "some", small.profiles, small.window)
    (folder / "classes.parquet").unlink()
    with pytest.raises(InputError, match="measure without --key"):
        Statistics.from_folder(folder)


@pytest.mark.spark
def test_what_spark_measured_at_each_source_merges_to_what_all_messages_say(spark, tmp_path) -> None:
    from narrowcast.data.statistics.measure import measure_folder

    topology = nc.workloads.overlay(40, sources=0.05, seed=1)
    made = nc.workloads.overlay_clients(topology, clients=80, messages=400, selectivity=4, overlap=0.1, seed=1)
    wishes = {
        "subscriber": [f"c{i}" for i in range(len(made.clients))],
        "profile": [made.profiles[p] for p, _ in made.clients.tolist()],
    }
    pq.write_table(pa.table(wishes), tmp_path / "subscriptions.parquet")
    parts = []
    for source in np.unique(made.sources).tolist():
        table = made.messages.filter(pa.array(made.sources == source))
        pq.write_table(table, tmp_path / f"{source}.parquet")
        inputs = {"subscriptions": tmp_path / "subscriptions.parquet", "messages": tmp_path / f"{source}.parquet"}
        measure_folder(spark, inputs, tmp_path / f"out{source}")
        parts.append(Statistics.from_folder(tmp_path / f"out{source}", source))
    assert len(parts) == 2
    found = Statistics.merged(parts)
    assert found.total == pytest.approx(400)
    profiles = [nc.Profile.parse(text) for text in found.profiles]
    sets = matches(profiles, made.messages)
    for i in range(len(profiles)):
        mine = [each for each in sets if i in each]
        assert found.selectivity(i) == pytest.approx(len(mine) / 400)
        for j in range(len(profiles)):
            share = sum(j in each for each in mine) / len(mine) if mine else 0.0
            assert found.overlap(i, j) == pytest.approx(share)
    args = (topology, made.profiles, made.clients)
    ours = nc.semantic.plan(*args, found)
    theirs = nc.semantic.plan(*args, made.messages, made.sources)
    cost = [nc.semantic.bandwidth(plan, made.messages, made.sources) for plan in (ours, theirs)]
    assert cost[0] == pytest.approx(cost[1])
