"""`narrowcast plan semantic`, from tables to a checked plan, a map and one clear line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import narrowcast as nc
from naive.measured import measured
from narrowcast.cli.app import app
from narrowcast.errors import InfeasibleError, InputError
from narrowcast.model.folder import read_tables
from narrowcast.plans.semantic.judge.faults import semantic_cost, semantic_faults
from narrowcast.plans.semantic.plan import METHODS


def run(*arguments: object) -> None:
    import typer

    typer.main.get_command(app).main(["plan", "semantic", *map(str, arguments)], standalone_mode=False)


TOPOLOGY = "u,v,cost,delay\na,b,1,5\nb,c,1,5\na,c,9,1\nb,d,2,2\n"
NODES = "node,role,x,y\na,source,0,0\nb,interior,1,0\nc,gateway,2,1\nd,gateway,2,-1\n"
SUBSCRIPTIONS = "subscriber,profile,node\nann,x > 1,c\nbob,x > 2,d\ncid,x > 2,c\n"
MESSAGES = "x,colour,source\n1,red,a\n2,red,a\n3,blue,a\n9,,a\n"


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    texts = {"topology": TOPOLOGY, "nodes": NODES, "subscriptions": SUBSCRIPTIONS, "messages": MESSAGES}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return {name: tmp_path / f"{name}.csv" for name in texts}


def three(tables: dict[str, Path]) -> list[Path]:
    return [tables[name] for name in ("topology", "subscriptions", "messages")]


@pytest.mark.parametrize("variant", METHODS)
def test_a_plan_is_made_checked_and_written(variant, tables, tmp_path, capsys):
    out = tmp_path / "plan"
    run(*three(tables), "--nodes", tables["nodes"], "--method", variant, "--out", out, "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["clients"], told["profiles"], told["brokers"], told["set_aside"]) == (3, 2, 4, 0)
    plan = read_tables(out)
    assert semantic_faults(plan) == []
    assert semantic_cost(plan)["total"] == pytest.approx(plan.cost["total"]) == pytest.approx(told["cost"]["total"])
    assert plan.checks["sound"] is True
    # x = 2 goes to c alone (a-b-c costs 2), 3 and 9 to c and d (4 links of cost 1, 1, 2).
    if variant == "search":
        assert plan.cost["total"] == 2 + 4 + 4
        assert plan.baselines == {"spt": 10, "unicast": 12}
    used = [channel for channel in told["channels"] if channel["rate"]]
    assert all("messages make" in channel["why"] and channel["profiles"] for channel in used)


def test_what_was_measured_of_the_messages_gives_the_same_plan_as_the_messages(tables, tmp_path, capsys):
    profiles = [nc.Profile.parse(text) for text in ("x > 1", "x > 2")]
    folder = measured(tmp_path / "measured", profiles, csv.read_csv(tables["messages"]))
    plans = []
    for messages, more in ((tables["messages"], ()), (folder, ("--source", "a"))):
        run(tables["topology"], tables["subscriptions"], messages, "--nodes", tables["nodes"], "--json", *more)
        plans.append(json.loads(capsys.readouterr().out))
    assert plans[0]["cost"]["total"] == plans[1]["cost"]["total"] == 10
    rates = [[(c["gateways"], c["rendezvous"], c["rate"]) for c in told["channels"] if c["rate"]] for told in plans]
    assert rates[0] == rates[1]
    with pytest.raises(InputError, match="--half-life needs messages"):
        run(tables["topology"], tables["subscriptions"], folder, "--half-life", 5)


def test_people_get_a_headline_a_table_and_reasons_and_a_map(tables, tmp_path, capsys):
    picture = tmp_path / "map.png"
    run(*three(tables), "--nodes", tables["nodes"], "--picture", picture)
    said = capsys.readouterr().out
    assert "3 clients of 2 profiles at 2" in said
    assert "Costliest channels" in said
    assert "of a channel for each profile" in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    run(*three(tables), "--picture", tmp_path / "map.svg")
    assert "<svg" in (tmp_path / "map.svg").read_text()


def test_bad_rows_of_every_table_are_set_aside_with_a_reason(tables, tmp_path, capsys):
    bad = {
        "topology": "a,a,1,1\na,,1,1\na,zz,1,1\nc,d,0,1\nc,d,x,1\nc,d,1,-1\nb,a,1,1\n",
        "nodes": "a,source,0,0\ne,boss,0,0\n,source,0,0\n",
        "subscriptions": "dan,x >,c\n,x > 1,c\neve,,c\nfay,x > 1,\ngus,x > 1,zz\nann,x > 1,c\n"
        "hal,y = 1,c\nian,x = 'a',c\n",
        "messages": "4,red,\n4,red,zz\nfour,red,a\n",
    }
    for name, rows in bad.items():
        with tables[name].open("a") as file:
            file.write(rows)
    run(*three(tables), "--nodes", tables["nodes"], "--out", tmp_path / "plan", "--json")
    told = json.loads(capsys.readouterr().out)
    rows = pq.read_table(tmp_path / "plan" / "quarantine.parquet").to_pylist()
    reasons = {}
    for row in rows:
        reasons.setdefault(Path(row["file"]).stem, {})[row["row"]] = row["reason"]
    assert {name: sorted(found) for name, found in reasons.items()} == {
        "topology": [5, 6, 7, 8, 9, 10, 11],
        "nodes": [5, 6, 7],
        "subscriptions": [4, 5, 6, 7, 8, 9, 10, 11],
        "messages": [5, 6, 7],
    }
    assert told["set_aside"] == 21
    assert told["cost"]["total"] == 10
    assert reasons["messages"][7] == "x is not a number"
    assert "no column 'y'" in reasons["subscriptions"][10]
    with pytest.raises(InputError, match="row"):
        run(*three(tables), "--nodes", tables["nodes"], "--strict")


def test_generated_tables_with_planted_faults_lose_exactly_those(tmp_path, capsys):
    from narrowcast.workloads.tables import write

    write("overlay", tmp_path / "in", messages=200, users=60, brokers=30, bad_rows=0.05, seed=3)
    folder = tmp_path / "in"
    names = [folder / f"{name}.parquet" for name in ("topology", "subscriptions", "messages")]
    run(*names, "--nodes", folder / "nodes.parquet", "--out", tmp_path / "plan", "--json")
    planted = [json.loads(line) for line in (folder / "planted.jsonl").read_text().splitlines()]
    found = pq.read_table(tmp_path / "plan" / "quarantine.parquet").to_pylist()
    assert {(Path(row["file"]).name, row["row"]) for row in found} == {(row["file"], row["row"]) for row in planted}


def test_xpath_subscriptions_read_the_xml_column(tables, tmp_path, capsys):
    tables["subscriptions"].write_text("subscriber,profile,node\nann,//order[@v='N'],c\nbob,/order,d\n")
    tables["messages"].write_text("xml,source\n<order v='N'/>,a\n<order/>,a\n<order,a\n<!DOCTYPE a><a/>,a\n<b/>,a\n")
    run(*three(tables), "--out", tmp_path / "plan", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["set_aside"] == 2
    # Both go to d over a-b-d (3), the first to c as well (1 more).
    assert told["cost"]["total"] == 7
    assert semantic_faults(read_tables(tmp_path / "plan")) == []


def test_a_client_that_asks_for_the_impossible_is_told_and_served_as_quickly_as_can_be(tables, tmp_path, capsys):
    tables["subscriptions"].write_text("subscriber,profile,node,latency_bound\nann,x > 1,c,4\nbob,x > 2,d,3\n")
    run(*three(tables), "--out", tmp_path / "plan", "--json")
    told = capsys.readouterr()
    assert "bob: asks for 3; the quickest way takes 7" in told.err
    # To c in time is the direct link of cost 9, not 2 over b.
    assert json.loads(told.out)["cost"]["total"] == 9 + 2 * (9 + 3)
    assert semantic_faults(read_tables(tmp_path / "plan")) == []
    with pytest.raises(InfeasibleError, match="latency_bound 3 cannot be kept at broker d") as caught:
        run(*three(tables), "--strict")
    assert caught.value.smallest == 7


@pytest.mark.parametrize(
    ("table", "text", "says"),
    [
        ("topology", "u,w\na,b\n", "no column 'v'"),
        ("topology", "u,v\na,a\n", "no valid link: the link joins a node to itself"),
        ("subscriptions", "subscriber,profile\nann,x > 1\n", "no column 'node'"),
        ("subscriptions", "subscriber,profile,node\nann,x >,c\n", "no valid row: profile: "),
        ("subscriptions", "subscriber,profile,node\nann,y > 1,c\n", "no column 'y'"),
        ("messages", "x,source\n1,zz\n", "no valid row: source is not a node"),
        ("messages", "x,colour\n", "no valid row: the table is empty"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(table, text, says, tables):
    tables[table].write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        run(*three(tables))
    assert "\n" not in str(caught.value)


def test_messages_without_a_source_are_planned_and_a_source_can_be_named(tables, capsys):
    tables["messages"].write_text("x\n2\n3\n")
    run(*three(tables), "--json")
    without = json.loads(capsys.readouterr().out)
    assert without["baselines"] == {}
    assert set(without["cost"]) == {"total", "tree"}
    run(*three(tables), "--source", "a", "--json")
    assert json.loads(capsys.readouterr().out)["cost"]["full"] == 2 + 4
    with pytest.raises(InputError, match="no such broker"):
        run(*three(tables), "--source", "zz")
