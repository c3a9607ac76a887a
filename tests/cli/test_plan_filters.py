"""`narrowcast plan filters`, from tables to a plan, a picture and one clear line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

import narrowcast as nc
from narrowcast.cli.plan.filters import filters
from narrowcast.errors import InputError
from narrowcast.model.folder import read_tables
from narrowcast.plans.filters.judge.faults import filters_cost, filters_faults

app = typer.Typer()
app.command()(filters)


def run(*arguments: object) -> None:
    typer.main.get_command(app).main([str(a) for a in arguments], standalone_mode=False)


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    tree, demand = tmp_path / "tree.csv", tmp_path / "demand.csv"
    tree.write_text("node,parent\nw,\n[a],w\nb,w\nc,[a]\nd,[a]\ne,b\nf,b\n")
    demand.write_text("node,item\nc,1\nd,2\ne,1\ne,2\nf,1\nf,2\nx,9\n")
    return tree, demand


def test_a_plan_is_written_checked_and_shown_with_its_curve(tables, tmp_path, capsys):
    run(*tables, "--k", 1, "--out", tmp_path / "plan", "--json")
    result = json.loads(capsys.readouterr().out)
    assert result["filters"] == ["[a]"]
    assert result["curve"] == [12.0, 10.0]
    assert (result["cost"]["traffic"], result["gap"], result["method"], result["set_aside"]) == (10.0, 0.0, "exact", 1)
    plan = read_tables(tmp_path / "plan")
    assert filters_faults(plan) == []
    assert filters_cost(plan) == {"traffic": 10.0, "total": 10.0}
    assert (tmp_path / "plan" / "quarantine.parquet").exists()


def test_people_see_where_the_filters_go_and_what_they_save(tables, capsys):
    run(*tables, "--k", 2)
    shown = capsys.readouterr().out
    assert "1 filter on a tree of 7 vertices" in shown
    assert "16.7% below no filter" in shown
    assert "At: [a]" in shown


@pytest.mark.parametrize(
    ("objective", "value"), [("delay", 2 * 8 - 2 + 2 * 0.5), ("both", 10 + 2 * 8 - 2 + 2 * 0.5 + 0.25)]
)
def test_delay_and_both_place_as_many_filters_as_pay(tables, capsys, objective, value):
    price = ("--price", 0.25) if objective == "both" else ()
    run(*tables, "--objective", objective, "--filter-delay", 0.5, *price, "--json")
    result = json.loads(capsys.readouterr().out)
    assert result["filters"] == ["[a]"]
    assert result["cost"]["total"] == value
    assert result["baselines"]["no filter"] > value < result["baselines"]["every vertex"]


def test_both_pictures_are_drawn(tables, tmp_path, capsys):
    run(*tables, "--k", 2, "--curve", tmp_path / "curve.svg", "--picture", tmp_path / "tree.svg")
    assert "Total traffic by number of filters" in (tmp_path / "curve.svg").read_text()
    tree = (tmp_path / "tree.svg").read_text()
    assert tree.count('class="node filter"') == 1


def test_a_large_tree_is_drawn_by_its_upper_levels(tmp_path):
    from narrowcast.reports.tree import MOST
    from narrowcast.workloads.tree_demand import complete_tree

    tree = complete_tree(13)
    flow = 1.0 + tree.depth.max() - tree.depth
    drawn = nc.filters.place(tree, flow, 5).picture(tmp_path / "tree.svg").read_text()
    assert drawn.count('class="node') == 2**10 - 1 <= MOST
    assert f"The {tree.n - 2**10 + 1:,} deepest vertices are not drawn." in drawn


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--objective", "delay", "--k", 3), "k must be left out for objective 'delay', got 3"),
        (("--k", 1, "--curve", "curve.txt"), "picture must end in .png"),
        (("--k", 1, "--picture", "nowhere/tree.png"), "no such folder"),
        (("--k", 1, "--strict"), "node is not in the tree"),
    ],
)
def test_bad_options_stop_with_one_line(tables, options, says):
    with pytest.raises(InputError, match=says):
        run(*tables, *options)
