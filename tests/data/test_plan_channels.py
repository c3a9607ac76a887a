"""Channel plans from tables on Spark: the same as in one process, sound, and written whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from naive.shards_here import ShardsHere
from narrowcast.data.ingest.set_aside import write_set_aside
from narrowcast.data.planning.check_plan import plan_cost, plan_faults
from narrowcast.data.planning.minibatch import Effort, Table, cluster
from narrowcast.data.planning.plan_channels import plan_channels
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model import Interest
from narrowcast.model.folder import read_tables, write_tables
from narrowcast.model.interest_tables import interest_of, interest_tables
from narrowcast.plans.channels.judge.faults import channels_cost, channels_faults, differences
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.points import collapse

pytestmark = pytest.mark.spark

QUICK = Effort(driver_pairs=200, placings=1, coolings=1, settlings=0, batches=1, sweeps=2, polishes=1, work=1e6)


def write(interest: Interest, folder: Path) -> tuple[Path, Path]:
    for name, table in interest_tables(interest).items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder / "flows.parquet", folder / "interest.parquet"


def market(seed: int) -> Interest:
    """Users and flows in the order of their names, as Spark numbers them."""
    made = nc.workloads.market(symbols=600, users=30, share=0.06, seed=seed)
    names = [f"f{k:04d}" for k in range(made.n_flows)], [f"u{k:04d}" for k in range(made.n_users)]
    return Interest.from_pairs(made.flow_of_pair, made.users, made.rates, flow_names=names[0], user_names=names[1])


@pytest.mark.long
def test_shards_on_spark_make_the_plan_of_shards_in_one_process(spark: Any, tmp_path: Path) -> None:
    interest = market(1)
    made = plan_channels(spark, *write(interest, tmp_path), 4, 12, seed=5, driver_pairs=200, effort=QUICK)
    assert made.made_on == "shards"
    points, point_of_flow = collapse(interest)
    table = Table(points.rates, points.sizes, points.n_users)
    session, clusters = cluster(table, ShardsHere(points, 4), 4, 12, Prices(1.0, 1.0, 0.0, np.inf), 5, QUICK)
    rows = made.plan.tables["flow_session"].to_pylist()
    assert interest.flow_names is not None
    want = {interest.flow_names[k]: int(session[p]) for k, p in enumerate(point_of_flow) if p >= 0}
    assert {row["flow"]: row["session"] for row in rows} == want
    assert made.plan.tables["session_group"]["group"].to_pylist() == clusters.group_of.tolist()
    write_tables(made.plan, tmp_path / "plan")
    read = read_tables(tmp_path / "plan")
    wants = interest_of(read)
    assert channels_faults(read, wants) == []
    assert differences(read.cost, channels_cost(read, wants)) == []
    assert read.checks["sound"] is True
    assert read.lower_bound is not None
    assert 0 < read.lower_bound <= read.cost["excess"] < read.cost["flooding"]


def test_bad_rows_are_kept_beside_a_plan_made_on_shards(spark: Any, tmp_path: Path) -> None:
    flows, wants = write(market(1), tmp_path)
    good = pq.read_table(wants)
    bad = pa.table({"flow": ["nowhere", None], "subscriber": ["u0001", "u0002"]}, schema=good.schema)
    pq.write_table(pa.concat_tables([good, bad]), wants)
    made = plan_channels(spark, flows, wants, 4, 12, driver_pairs=200, effort=QUICK)
    assert made.made_on == "shards"
    assert write_set_aside(made.tables, tmp_path / "quarantine.parquet") == 2
    rows = pq.read_table(tmp_path / "quarantine.parquet").to_pylist()
    assert [(Path(row["file"]).name, row["row"]) for row in rows] == [
        ("interest.parquet", len(good) + 1),
        ("interest.parquet", len(good) + 2),
    ]
    assert rows[0]["reason"] == "flow is nowhere: not in the flows table"
    assert rows[1]["reason"] == "flow is missing"
    assert made.tables["interest"].n_accepted == len(good)


def test_what_fits_is_planned_as_on_one_machine(spark: Any, tmp_path: Path) -> None:
    interest = market(2)
    flows, wants = write(interest, tmp_path)
    made = plan_channels(spark, flows, wants, 4, 12, "gf", seed=5)
    assert made.made_on == "driver"
    here = nc.channels.plan(interest, 4, 12, "gf", seed=5)
    assert made.plan.cost["excess"] == pytest.approx(here.cost.excess, rel=1e-12)
    with pytest.raises(UnsupportedError, match="method 'gf' takes at most 10 interest rows"):
        plan_channels(spark, flows, wants, 4, 12, "gf", driver_pairs=10)
    (tmp_path / "none.csv").write_text("flow,subscriber\nnowhere,x\n")
    with pytest.raises(InputError, match="nobody wants any flow"):
        plan_channels(spark, flows, tmp_path / "none.csv")


def test_spark_finds_every_fault_that_a_plan_can_have(spark: Any) -> None:
    def frames(**changed: list[tuple[Any, ...]]) -> dict[str, Any]:
        rows: dict[str, list[tuple[Any, ...]]] = {
            "flow_session": [("a", 0), ("b", 0), ("c", 1)],
            "session_group": [(0, 0), (1, 0)],
            "subscriber_group": [("x", 0), ("y", 0)],
            "flows": [("a", 4.0), ("b", 2.0), ("c", 1.0), ("d", 1.0)],
            "interest": [("a", "x"), ("b", "y"), ("c", "y")],
        }
        schemas = {
            "flow_session": "flow string, session long",
            "session_group": "session long, group long",
            "subscriber_group": "subscriber string, group long",
            "flows": "flow string, rate double",
            "interest": "flow string, subscriber string",
        }
        return {name: spark.createDataFrame((rows | changed)[name], schemas[name]) for name in rows}

    assert plan_faults(frames()) == []
    # Both get 7 from the group; x passes session 0 (6), y both (7).
    assert plan_cost(frames(), 1.0, 1.0) == {"c1": 14.0, "c2": 13.0, "useful": 7.0, "excess": 13.0}
    assert plan_faults(frames(subscriber_group=[("x", 0)])) == ["2 wanted flows do not reach their subscriber"]
    wrong = frames(
        flow_session=[("a", 0), ("a", 1), ("b", 0), ("c", 1), ("d", 1)],
        session_group=[(0, 0), (1, 0), (2, 1)],
        subscriber_group=[("x", 0), ("y", 0), ("y", 0), ("x", 1)],
    )
    assert plan_faults(wrong) == [
        "1 flows are in two sessions",
        "1 joins stand twice",
        "1 joins serve nobody",
        "1 sessions are empty",
        "1 flows that nobody wants are sent",
    ]


@pytest.mark.nightly
def test_any_number_of_partitions_makes_the_same_plan(spark: Any, tmp_path: Path) -> None:
    flows, wants = write(market(3), tmp_path)
    table = pq.read_table(wants)
    found = []
    for cuts in (1, 7):
        folder = tmp_path / f"interest{cuts}"
        folder.mkdir()
        for k in range(cuts):
            pq.write_table(table.take(np.arange(k, len(table), cuts)), folder / f"part-{k}.parquet")
        made = plan_channels(spark, flows, folder, 4, 12, driver_pairs=200, effort=QUICK)
        found.append({name: rows.to_pydict() for name, rows in made.plan.tables.items()})
    assert found[0] == found[1]
