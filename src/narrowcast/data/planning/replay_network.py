"""Replay of network plans: the cost by term, the links and the sites, with the rates that a log has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.take_in import Ingested
from narrowcast.data.planning.replay_sums import flow_sums, wanted_sums
from narrowcast.data.statistics.partials import BYTE
from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.interest_tables import names_of
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.methods.sites import site_terms
from narrowcast.plans.network.result import NetworkPlan

Rows = list[tuple[str, float, float, float]]


def network_replayed(
    plan: NetworkPlan, log: DataFrame, asked: Ingested | None
) -> tuple[dict[str, float], dict[str, Rows]]:
    """The cost per hour with the log's rates and sizes, and messages by link and by site.

    A log without times is as long as the plan's rates say. `unplanned` are messages of flows that the plan does not
    know, which go to every site; with subscriptions, `missed` are those that somebody wants who was not planned for
    them: they come all the same, by the channels for the rest, but the plan did not count them.
    """
    if not plan.key:
        raise InputError("the plan does not say which attributes make a flow", name="key", hint="plan it with a key")
    d = plan.demand
    flows, users = _names(d)
    count, size, unplanned = _flows(log, plan.key, flows)
    count_all = float(count.sum()) + unplanned
    seconds = _seconds(log) or float(count.sum()) / (float(d.interest.rates.sum()) or 1.0) or 1.0
    real = replace(d, interest=replace(d.interest, rates=count / seconds), size=np.where(size > 0, size, d.size))
    problem = replace(plan.problem, demand=real)
    found = priced(problem, plan.decisions)
    messages = priced(replace(problem, demand=replace(real, size=np.ones(count.size))), plan.decisions)
    cost = {"total": found.total, **found.terms, "messages": count_all, "unplanned": unplanned}
    useful, missed = np.zeros(d.n_sites), np.zeros(d.n_sites)
    if asked is not None:
        useful, missed = _wanted(plan, log, asked, flows, users)
        cost |= {"useful": float(useful.sum()), "missed": float(missed.sum())}
    names = list(d.topology.names or map(str, range(d.topology.n_brokers)))
    links = [
        (f"{names[u]} {names[v]}", float(n) * seconds, float(n) * seconds, 0.0)
        for (u, v), n in zip(d.topology.edges.tolist(), messages.loads, strict=True)
    ]
    copies = [
        site_terms(site, its)["copies"] * seconds for site, its in zip(problem.sites, plan.decisions.sites, strict=True)
    ]
    sites = list(zip(d.sites, map(float, copies), useful.tolist(), missed.tolist(), strict=True))
    return cost, {"replay_links": links, "replay_sites": sites}


def _names(d: NetworkDemand) -> tuple[pa.Array, pa.Array]:
    n = d.interest
    return names_of(n.flow_names, range(n.n_flows)), names_of(n.user_names, range(n.n_users))


def _places(values: Any, names: pa.Array) -> Ints:
    """Where each value stands among the names, −1 for none."""
    import pyarrow.compute as pc

    found = pc.index_in(values.combine_chunks().cast(pa.string()), value_set=names.cast(pa.string()))
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)


def _flows(log: DataFrame, key: tuple[str, ...], names: pa.Array) -> tuple[Floats, Floats, float]:
    """Messages and mean bytes of the plan's flows, and how many messages are of others."""
    sums = flow_sums(log, key).toArrow()
    at = _places(sums["flow"], names)
    messages, size = sums["messages"].to_numpy().astype(np.float64), sums["bytes"].to_numpy() / BYTE
    known = at >= 0
    count, total = np.zeros(len(names)), np.zeros(len(names))
    count[at[known]], total[at[known]] = messages[known], size[known]
    return count, total / np.maximum(count, 1), float(messages[~known].sum())


def _seconds(log: DataFrame) -> float | None:
    if "time" not in log.columns:
        return None
    row = log.agg(F.min("time").alias("first"), F.max("time").alias("last")).collect()[0]
    return None if row["first"] is None else float((row["last"] - row["first"]).total_seconds())


def _wanted(
    plan: NetworkPlan, log: DataFrame, asked: Ingested, flows: pa.Array, users: pa.Array
) -> tuple[Floats, Floats]:
    """By site, messages times those who want them, and those of them that the plan did not count with."""
    d = plan.demand
    sums = wanted_sums(log.sparkSession, log, asked, plan.key).toArrow()
    flow, user = _places(sums["flow"], flows), _places(sums["subscriber"], users)
    amount = sums["messages"].to_numpy().astype(np.float64)
    n = d.interest.n_users + 1
    planned = np.isin(flow * n + user, d.interest.flow_of_pair * n + d.interest.users) & (flow >= 0) & (user >= 0)
    here = user >= 0
    site = d.site_of[user[here]]
    useful = np.bincount(site, amount[here], minlength=d.n_sites)
    missed = np.bincount(site, np.where(planned, 0.0, amount)[here], minlength=d.n_sites)
    return useful.astype(np.float64), missed.astype(np.float64)
