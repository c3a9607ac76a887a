"""The service over a running system: answers by multicast on the plan's channels, each client exactly its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from data.test_serve import direct, places, queries, written
from narrowcast.data.answer.serve import serve_periods
from narrowcast.plans.network.queries import AskedQueries
from narrowcast.plans.queries.api import Query, QueryDemand, QueryService, receive_answers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]
CLIENTS, PERIODS = 5, 3


async def received(url: Path, client: str, periods: int) -> tuple[dict[int, dict[str, Counter[str]]], dict[str, int]]:
    """What a client got, by period, and by which ways it came."""
    found: dict[int, dict[str, Counter[str]]] = {}
    async with nc.connect(url, name=f"desk-{client}") as connection:
        async with aclosing(receive_answers(connection, client)) as answers:
            async for each in answers:
                found[each.period] = {q: Counter(map(repr, t.to_pylist())) for q, t in each.answers.items()}
                if len(found) == periods:
                    break
        return found, connection.ways


@pytest.mark.long
def test_answers_come_by_the_planned_channels_while_queries_change(spark: Any, tmp_path: Path) -> None:
    asked = queries(30, 1, CLIENTS)
    plan = written(tmp_path, asked, rows=2000)
    expected: dict[int, dict[tuple[str, str], Counter[str]]] = {}

    async def all_of_them(folder: Path) -> list[Any]:
        waiting = [asyncio.ensure_future(received(folder, f"c{i}", PERIODS)) for i in range(CLIENTS)]
        await asyncio.sleep(3.0)  # edges come up and prepare for the plan
        await asyncio.to_thread(serve, folder)
        return await asyncio.wait_for(asyncio.gather(*waiting), 60)

    def serve(folder: Path) -> None:
        nonlocal asked
        with nc.connect(folder, name="server") as connection:
            paths = tmp_path / "queries.parquet", tmp_path / "places.parquet"
            served = serve_periods(spark, *paths, QueryService(plan), connection.publish, first=0)
            for index, _ in enumerate(islice(served, PERIODS)):
                expected[index] = direct(asked, pq.read_table(paths[1]), index)
                asked = pa.concat_tables([asked.slice(1), queries(1, 20 + index, CLIENTS)])
                pq.write_table(asked, paths[0])
                pq.write_table(places(2000, index + 1), paths[1])
                time.sleep(2.0)

    with nc.up(plan) as system:
        found = asyncio.run(all_of_them(system.folder))
    assert sum(ways["channel"] for _, ways in found) > 0  # the rest came while edges joined, from the log
    for i, (answers, _) in enumerate(found):
        assert answers.keys() == expected.keys()
        for period, mine in answers.items():
            assert mine == {q: rows for (c, q), rows in expected[period].items() if c == f"c{i}"}


def _near(n: int) -> pa.Table:
    """Queries that share much, so that merging pays."""
    texts = [f"x BETWEEN {i % 4} AND {40 + i % 3} AND y >= {i % 5}.5 AND y < 60.5" for i in range(n)]
    names, clients = [f"q{i}" for i in range(n)], [f"c{i % CLIENTS}" for i in range(n)]
    return pa.table({"query": names, "client": clients, "profile": texts, "every": [1 + i % 2 for i in range(n)]})


def _network(asked: pa.Table) -> nc.NetworkDemand:
    """Three sites in a row; the table is at one end, clients are everywhere, and one also wants a flow."""
    found = [Query(r["query"], r["client"], nc.Profile.parse(r["profile"]), r["every"]) for r in asked.to_pylist()]
    boxes = nc.queries.range_boxes([q.profile for q in found], ["x", "y"])
    wanted = QueryDemand(boxes, ("x", "y"), tuple(q.query for q in found), tuple(q.client for q in found))
    names = [f"c{i}" for i in range(CLIENTS)]
    return nc.NetworkDemand(
        nc.Topology([(0, 1), (1, 2)], cost=[1.0, 1.0], names=["a", "b", "c"]),
        nc.Interest.from_pairs([0], [0], [1.0], n_users=CLIENTS, flow_names=["IBM"], user_names=names),
        sites=["A", "B", "C"], gateway=[0, 1, 2], groups=4, sessions=8, hosts=["h", "i", "j"], host_site=[0, 1, 2],
        host=[i % 3 for i in range(CLIENTS)], source=[0], key=("symbol",),
        queries=AskedQueries(wanted, "A", [q.every for q in found], period_s=2.0),
    )  # fmt: skip


@pytest.mark.long
def test_merged_answers_travel_as_flows_of_a_network_and_clients_get_exactly_theirs(spark: Any, tmp_path: Path) -> None:
    asked = _near(20)
    pq.write_table(asked, tmp_path / "queries.parquet")
    pq.write_table(places(2000, 0), tmp_path / "places.parquet")
    plan = nc.plan(_network(asked), "network", channels=4, price_group=0.0)
    assert len(plan.demand.queries.sets) < asked.num_rows
    service = QueryService(plan.demand.queries.merged)
    expected = {index: direct(asked, places(2000, 0), index) for index in range(PERIODS)}

    def serve(folder: Path) -> None:
        with nc.connect(folder, name="server") as connection:
            paths = tmp_path / "queries.parquet", tmp_path / "places.parquet"
            served = serve_periods(spark, *paths, service, connection.publish, first=0, key=plan.key)
            for _ in islice(served, PERIODS):
                time.sleep(3.0)

    async def all_of_them(folder: Path) -> list[Any]:
        waiting = [asyncio.ensure_future(received(folder, f"c{i}", PERIODS)) for i in range(CLIENTS)]
        await asyncio.sleep(3.0)
        await asyncio.to_thread(serve, folder)
        return await asyncio.wait_for(asyncio.gather(*waiting), 60)

    with nc.up(plan) as system:
        found = asyncio.run(all_of_them(system.folder))
    for i, (answers, ways) in enumerate(found):
        assert answers.keys() == expected.keys()
        for period, mine in answers.items():
            assert mine == {q: rows for (c, q), rows in expected[period].items() if c == f"c{i}"}
        assert ways["channel"] + ways["unicast"] > 0, ways


@pytest.mark.long
def test_the_commands_serve_and_receive(tmp_path: Path) -> None:
    asked = queries(12, 3, 2)
    written(tmp_path, asked, rows=500).save(tmp_path / "plan")
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            ["narrowcast", *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    with nc.up(tmp_path / "plan", tmp_path / "system", multicast=False):
        run("serve", "queries.parquet", "places.parquet", "--plan", "plan", "--system", "system", "--periods", "1",
            "--save", "plan2", "--master", "local[1]")  # fmt: skip
        lines = [json.loads(line) for line in run("receive", "c1", "--system", "system", "--periods", "1").splitlines()]
        run("receive", "c1", "--system", "system", "--periods", "1", "--out", "mine")
    wanted = {q: rows for (c, q), rows in direct(asked, places(500, 0), 0).items() if c == "c1" and rows}
    assert Counter(line["query"] for line in lines) == Counter({q: rows.total() for q, rows in wanted.items()})
    (period,) = (tmp_path / "mine").iterdir()
    names = json.loads((period / "queries.json").read_text())
    counted = {q: pq.read_table(period / file).num_rows for q, file in names.items()}
    assert {q: n for q, n in counted.items() if n} == {q: rows.total() for q, rows in wanted.items()}
    assert nc.check(tmp_path / "plan2").sound
