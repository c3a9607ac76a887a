"""Semantic channels, merged queries and filters for NATS and Cyclone DDS: the files bring it to whoever wants it."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.exports import TARGETS, Options
from narrowcast.plans.filters.result import TreeDemand
from narrowcast.plans.queries.result import QueryDemand

WINDOW = pa.table({"x": [n % 12 for n in range(48)]})


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def semantic(method: str) -> nc.Plan:
    star = nc.Topology([(0, 1), (0, 2), (0, 3)], names=["s", "a", "b", "c"])
    texts = ["x < 4", "x BETWEEN 3 AND 7", "x > 5", "x = 11"]
    return nc.semantic.plan(star, texts, [(0, 1), (1, 2), (2, 3), (3, 1)], WINDOW, 0, method)


def queries(**options: object) -> nc.Plan:
    boxes = [[[0, 4]], [[3, 7]], [[5, 9]], [[9, 11]]]
    return nc.plan(QueryDemand(boxes, ("x",)), "queries", **options)


def filters() -> nc.Plan:
    tree = nc.Tree([-1, 0, 0, 1, 1, 2], names=["hub", "a", "b", "a1", "a2", "b1"])
    return nc.plan(TreeDemand(tree, np.array([9.0, 2.0, 8.0, 1.0, 1.0, 8.0])), "filters", k=2)


PLANS = [semantic("search"), semantic("merge"), queries(), queries(procedure="exact"), queries(channels=2)]


@pytest.mark.parametrize("target", ["nats", "cyclonedds"])
@pytest.mark.parametrize("plan", PLANS, ids=["search", "merge", "rectangles", "exact", "physical"])
def test_whoever_wants_a_message_takes_a_session_that_carries_it(plan: nc.Plan, target: str) -> None:
    texts = TARGETS[target](plan, Options(memberships=4)).texts
    contents = {row["session"]: nc.Profile.parse(row["profile"], limits=None) for row in rows(texts["contents.csv"])}
    takes: dict[str, set[str]] = {}
    for row in rows(texts["subscribers.csv"]):
        takes.setdefault(row["subscriber"], set()).add(row["session"])
    if plan.kind == "semantic":
        wishes = [(row["gateway"], row["profile"]) for row in rows(texts["clients.csv"])]
    else:
        wishes = [(row["subscriber"], row["profile"]) for row in rows(texts["extractors.csv"])]
    assert wishes
    for x in range(12):
        carried = {session for session, profile in contents.items() if profile.matches({"x": x})}
        for who, text in wishes:
            if nc.Profile.parse(text).matches({"x": x}):
                assert carried & takes[who], (x, who)
    groups = {row["group"] for row in rows(texts["flows.csv"])}
    assert len(groups) <= (2 if plan is PLANS[-1] else 3)
    if target == "cyclonedds":
        configured = ET.fromstring(texts["cyclonedds.xml"].encode()).iter("{https://cdds.io/config}NetworkPartition")
        assert {f"g{group}" for group in groups} <= {each.get("name") for each in configured}
    else:
        published = {row["flow"] for row in rows(texts["subjects.csv"])}
        assert published == {row["flow"] for row in rows(texts["contents.csv"])}


def test_every_node_has_the_server_of_the_filter_above_it() -> None:
    plan = filters()
    assert [plan.tree.names[v] for v in plan.filters] == ["hub", "a"]
    files = TARGETS["nats"](plan, Options())
    where = {row["node"]: row["server"] for row in rows(files.texts["servers.csv"])}
    assert where == {"hub": "hub", "a": "a", "b": "hub", "a1": "a", "a2": "a", "b1": "hub"}
    assert 'url: "nats-leaf://hub:7422"' in files.texts["nats-a.conf"]
    assert "remotes" not in files.texts["nats-hub.conf"]
    assert "listen: 0.0.0.0:7422" in files.texts["nats-hub.conf"]
    assert "7422" not in files.texts["nats-a.conf"].replace("nats-leaf://hub:7422", "")


def test_what_a_target_has_no_notion_of_is_said_with_what_there_is() -> None:
    with pytest.raises(UnsupportedError, match=r"Cyclone DDS has no notion of a filters plan; it can .* nats, csv$"):
        TARGETS["cyclonedds"](filters(), Options())
    with pytest.raises(UnsupportedError, match=r"can be exported to cyclonedds, nats, csv$"):
        TARGETS["aeron"](semantic("merge"), Options())
    tree = nc.Tree([-1, 0], names=["a b", "c"])
    with pytest.raises(InputError, match="must be a host name, got 'a b'"):
        TARGETS["nats"](nc.plan(TreeDemand(tree, np.array([1.0, 1.0])), "filters", k=0), Options())
