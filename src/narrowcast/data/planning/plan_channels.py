"""Plan channels from tables of any size: on the driver while the wishes fit there, else over shards on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from narrowcast.data.ingest.read import FILE, ROW
from narrowcast.data.ingest.take_in import Ingested, ingest
from narrowcast.data.planning.check_plan import plan_cost, plan_faults
from narrowcast.data.planning.classes import FlowClasses, SparkShards
from narrowcast.data.planning.clusters import SessionClusters
from narrowcast.data.planning.minibatch import Effort, cluster
from narrowcast.data.spark.home import is_connect, job_named
from narrowcast.data.spark.output import pieces
from narrowcast.data.spark.progress import TaskReporter, watched
from narrowcast.data.spark.sizing import sized
from narrowcast.errors import InputError, PlanError, UnsupportedError
from narrowcast.model import Interest
from narrowcast.model.arrays import Ints
from narrowcast.model.cost import Cost
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.api import plan as plan_here
from narrowcast.plans.channels.cost import check_prices
from narrowcast.plans.channels.judge.faults import channels_cost, channels_faults, differences
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.lower_bound import one_level_bound
from narrowcast.plans.channels.plan import check_budgets

# Wishes (flow, subscriber) that the driver plans by itself; its planner holds some 40 bytes for each.
DRIVER_PAIRS = 20_000_000


@dataclass(frozen=True)
class PlannedOnSpark:
    """A checked plan, where it was made (`driver` or `shards`), and the tables it was made from."""

    plan: Tables
    made_on: str
    tables: Mapping[str, Ingested]


def plan_channels(
    spark: SparkSession,
    flows: str | Path,
    interest: str | Path,
    groups: int = 50,
    sessions: int = 500,
    method: str = "search",
    alpha: float = 1,
    beta: float = 1,
    seed: int = 0,
    *,
    driver_pairs: int = DRIVER_PAIRS,
    effort: Effort | None = None,
    strict: bool = False,
    inputs: Mapping[str, str] | None = None,
    key: Sequence[str] = (),
    progress: TaskReporter | None = None,
) -> PlannedOnSpark:
    """`channels.plan` from the tables flows and interest, for more wishes than one machine holds.

    Up to `driver_pairs` wishes the plan is the one that `channels.plan` makes. Above, flows with the
    same audience become one point each and are clustered in passes over shards of them (`minibatch`);
    then only `method="search"` is there, and the plan's tables are read from disk as they are needed.
    Its excess cost has been within 5 % of the driver's on workloads that fit both ways. Either plan is
    checked from its tables before it is returned, and does not depend on partitions or workers.

        planned = plan_channels(session(), "flows.parquet", "interest.parquet", groups=50, sessions=300)
        write_tables(planned.plan, "plan")
    """
    groups, sessions = check_budgets(groups, sessions)
    check_prices(alpha, beta)
    with watched(spark, progress), sized(spark, [flows, interest]) as spark, job_named(spark, "planning"):
        taken: dict[str, Ingested] = {}
        for name, source in (("flows", flows), ("interest", interest)):
            taken[name] = ingest(spark, source, name, known=taken, strict=strict)
        if taken["interest"].n_accepted == 0:
            raise InputError(f"{interest}: nobody wants any flow, so there is nothing to plan", name="interest")
        if taken["interest"].n_accepted <= driver_pairs:
            found = _on_driver(taken, groups, sessions, method, alpha, beta, seed, inputs or {}, tuple(key))
            return PlannedOnSpark(found, "driver", taken)
        if method != "search":
            raise UnsupportedError(f"method {method!r} takes at most {driver_pairs} interest rows", works=("search",))
        if is_connect(spark):
            raise UnsupportedError(
                f"Spark Connect takes at most {driver_pairs} interest rows", works=("a session of the classic kind",)
            )
        chosen = effort or Effort(driver_pairs=driver_pairs)
        found = _on_shards(taken, groups, sessions, alpha, beta, seed, chosen, inputs or {}, tuple(key))
        return PlannedOnSpark(found, "shards", taken)


def _on_driver(
    taken: Mapping[str, Ingested],
    groups: int,
    sessions: int,
    method: str,
    alpha: float,
    beta: float,
    seed: int,
    inputs: Mapping[str, str],
    key: tuple[str, ...],
) -> Tables:
    wants = interest_at_driver(taken["flows"].rows, taken["interest"].rows)
    demand = Demand(wants, key, inputs=inputs)
    made = plan_here(demand, groups, sessions, method, alpha=alpha, beta=beta, seed=seed).to_tables()
    cost = channels_cost(made, wants)
    return _checked(made, channels_faults(made, wants), cost)


def interest_at_driver(flows: DataFrame, interest: DataFrame) -> Interest:
    """The accepted rows as `model.intake.read_demand_tables` would have them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rates = flows.orderBy(FILE, ROW).select("flow", "rate").toArrow()
    pairs = interest.select("flow", "subscriber").toArrow()
    names = rates["flow"].combine_chunks().cast(pa.string())
    users = pc.unique(pairs["subscriber"].cast(pa.string()))
    users = users.take(pc.sort_indices(users))
    return Interest.from_pairs(
        pc.index_in(pairs["flow"].cast(pa.string()), value_set=names).to_numpy(),
        pc.index_in(pairs["subscriber"].cast(pa.string()), value_set=users).to_numpy(),
        rates["rate"].to_numpy(),
        flow_names=names.to_pylist(),
        user_names=users.to_pylist(),
    )


def _on_shards(
    taken: Mapping[str, Ingested],
    groups: int,
    sessions: int,
    alpha: float,
    beta: float,
    seed: int,
    effort: Effort,
    inputs: Mapping[str, str],
    key: tuple[str, ...],
) -> Tables:
    flows = taken["flows"].rows.select("flow", "rate")
    interest = taken["interest"].rows.select("flow", "subscriber")
    classes = FlowClasses.of(flows, interest)
    shards = classes.shards()
    prices = Prices(float(alpha), float(beta), 0.0, np.inf)
    session_of, clusters = cluster(classes.table, shards, groups, sessions, prices, seed, effort)
    frames = {
        "flow_session": _flow_session(classes, session_of),
        "session_group": _frame(flows, {"session": np.arange(clusters.n_sessions), "group": clusters.group_of}),
        "subscriber_group": _subscriber_group(flows, classes.users, clusters),
        "flows": flows,
        "interest": interest,
    }
    orders = {
        "flow_session": ("flow",),
        "session_group": ("session",),
        "subscriber_group": ("subscriber", "group"),
        "flows": ("flow",),
        "interest": ("flow", "subscriber"),
    }
    cost = _cost(classes, clusters, alpha, beta)
    bound = _lower_bound(classes, shards, effort, min(groups, sessions), sessions, alpha, beta)
    made = Tables(
        kind="channels",
        tables={name: _on_disk(frame, orders[name]) for name, frame in frames.items()},
        cost=dict(cost.terms),
        parameters={"method": "search", "groups": groups, "sessions": sessions, "alpha": alpha, "beta": beta},
        baselines=_baselines(classes, alpha, beta),
        inputs=inputs,
        lower_bound=bound,
        gap=1 - bound / cost.excess if cost.excess > 0 else 0.0,
        seed=seed,
        key=key,
    )
    return _checked(made, plan_faults(frames), plan_cost(frames, alpha, beta))


def _checked(made: Tables, faults: list[str], cost: Mapping[str, float]) -> Tables:
    """The plan with its checks; an unsound one is never handed out."""
    found = faults + differences(made.cost, cost)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise PlanError(f"the plan is unsound: {found[0]}{more}")
    return replace(made, checks={"sound": True, "cost": dict(cost)})


def _frame(like: DataFrame, columns: Mapping[str, Any]) -> DataFrame:
    import pyarrow as pa

    return like.sparkSession.createDataFrame(pa.table(dict(columns)))


def _flow_session(classes: FlowClasses, session_of: Ints) -> DataFrame:
    placed = _frame(classes.of_flow, {"number": np.arange(session_of.size), "session": session_of.astype(np.int64)})
    return classes.of_flow.join(placed, "number").select("flow", "session")


def _subscriber_group(like: DataFrame, names: tuple[str, ...], clusters: SessionClusters) -> DataFrame:
    import pyarrow as pa

    users, groups = clusters.joins()
    return _frame(like, {"subscriber": pa.array(names, pa.string()).take(pa.array(users)), "group": groups})


def _cost(classes: FlowClasses, clusters: SessionClusters, alpha: float, beta: float) -> Cost:
    table = classes.table
    useful = float(table.rates @ table.sizes)
    c1, c2 = clusters.costs()
    flooding = (alpha + beta) * (float(table.rates.sum()) * table.n_users - useful)
    excess = alpha * (c1 - useful) + beta * (c2 - useful)
    relative = excess / flooding if flooding > 0 else 0.0
    terms = {"c1": alpha * c1, "c2": beta * c2, "useful": useful, "excess": excess, "flooding": flooding}
    return Cost(alpha * c1 + beta * c2, terms | {"relative": relative})


def _baselines(classes: FlowClasses, alpha: float, beta: float) -> dict[str, dict[str, float]]:
    """Those that need no look at single flows."""
    table = classes.table
    sent, useful = float(table.rates.sum()), float(table.rates @ table.sizes)
    flooding = (alpha + beta) * (sent * table.n_users - useful)
    return {
        "flooding": {"excess": flooding, "relative": 1.0 if flooding > 0 else 0.0, "sent": sent},
        "unicast": {"excess": 0.0, "relative": 0.0, "sent": useful},
        "perfect multicast": {"excess": 0.0, "relative": 0.0, "sent": sent},
    }


def _lower_bound(
    classes: FlowClasses, shards: SparkShards, effort: Effort, groups: int, sessions: int, alpha: float, beta: float
) -> float:
    """A bound for the classes that weigh most, as many as fit: flows left out only lower the waste."""
    rates, sizes = classes.table.rates, classes.table.sizes
    order = np.argsort(-rates * sizes, kind="stable")
    chosen = np.sort(order[np.cumsum(sizes[order]) <= effort.driver_pairs])
    if chosen.size == 0:
        return 0.0
    points = shards.gather(chosen)
    extra = [max(one_level_bound(points, n) - points.useful, 0.0) for n in (groups, sessions)]
    return alpha * extra[0] + beta * extra[1]


def _on_disk(frame: DataFrame, order: tuple[str, ...]) -> Any:
    """The rows in order as an Arrow table that the system reads from a file as it is needed."""
    import pyarrow as pa

    with tempfile.TemporaryDirectory(prefix="narrowcast-plan-") as folder:
        path = Path(folder) / "table.arrow"
        writer: Any = None
        for piece in pieces(frame, list(order)):
            writer = writer or pa.ipc.new_file(path, piece.schema)
            writer.write_table(piece)
        writer.close()
        # The file lives on without a name while the table is in use.
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
