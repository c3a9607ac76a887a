"""The papers' experiments at quick size: orderings hold, work goes on where it stopped, and gives the same anywhere."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from studies.__main__ import app
from studies.filters import FILTER_DELAYS
from studies.results import write_results
from typer.testing import CliRunner

from narrowcast.cli import run as run_app
from narrowcast.errors import InputError, UnsupportedError
from studies import EXPERIMENTS, Experiment, run

# Where the quick size is too small for the claim, or where the full run differs as well (docs/results.md says why).
DIFFERS = {
    "filters.fig4": {"both at the same locality"},
    "filters.fig6": {"as few filters are mostly placed in the left subtree, where users want much, at first"},
    "channels.fig5": {
        "α ≈ β at h = 8, so that the second level pays",
        "α(h) = α0 + α1/h and β(h) = β0 + β1/h fit what a receiver spends",  # other work on the machine shows
    },
    "channels.fig7": {
        "with many sessions GF is clearly below SF",
        "the same relations with 10, 20 and 100 groups",
    },
    "hybrid.fig4": {
        "with the market's rates K-means is noticeably better than the others tried",
        "beyond the paper: flow merging (Adler et al.) against the two K-means, equal rates",
    },
    "hybrid.small": {
        "on small systems BMD is reasonable (200 flows, 100 users, 10 groups)",
        "heaviest-user is below lightest-user",
        "from unicast to multicast (reverse) is not as good as the other way, both are below multicast alone",
    },
    "hybrid.fig5": {
        "greedy choices are below the simple ones",
        "without a cap greedy drifts to unicast; one flow per group is below it",
    },
    "hybrid.fig8": {
        "the greedy heuristics reach most of their improvement at very little unicast",
    },
    "beyond.films": {
        "with many sessions GF is clearly below SF",
        "IT and RRA are best, with minor differences",
    },
    "beyond.market": {
        "greedy user is below greedy flow on the market at equal share",
        "greedy choices are below the simple ones",
    },
    "beyond.networks": {"SPT is 23 % above SemCast-O on disjoint profiles (tree count)"},
    "semantic.fig3": {
        "SemCast is within 6.4 % of SemCast-O",
        "SPT is 23 % above SemCast-O on disjoint profiles (tree count)",
    },
    "semantic.fig5": {
        "SemCast is below SPT at every overlap (tree count)",  # 80 brokers are too few for trees to gain
        "by up to 50 %",
        "the advantage over SPT falls as the overlap grows, and stays to the end",
        "SemCast-NoiseMerge costs more than SemCast at 25–95 % overlap",
        "above 95 % SemCast-Merge comes nearer to SemCast again, with most on one channel",
    },
    "semantic.fig10": {"the penalty falls as bounds relax"},  # two graphs of 100 brokers are too few
    "semantic.table2": {
        "channels, at gateways: profiles kept, as a share of SPT's root table",
        "a gateway of SemCast keeps far fewer profiles than SPT's brokers at hop 1",
    },
    "hybrid.text": {
        "heaviest-user is below lightest-user, on the market of the figures",
        "from multicast is better than from unicast (reverse)",
        "K-means takes about five passes on problems of thousands",
    },
    "semantic.fig7": {
        "at low overlap the variants have as many channels as one another (figure 7)",
        "at 25–95 % the channels of SemCast-Merge stay almost constant",
        "the difference between SPT and SemCast is always above 10 % (§5.2)",
        "a selectivity of two lies at the knees of the curves (figure 3)",
    },
    "queries.text": {"the base parameters are hard, and pair merging is nearer to the optimum under others"},
}
SLOW = {
    "beyond.market",
    "beyond.networks",
    "channels.fig7",
    "hybrid.fig5",
    "hybrid.fig7",
    "queries.fig10",
    "queries.fig14",
    "semantic.fig3",
    "semantic.fig5",
    "semantic.fig8",
}


def quick(name: str, folder: Path, **options: Any) -> Any:
    return run(name, EXPERIMENTS[name], folder, quick=True, pictures=False, **options)


def needed(name: str) -> None:
    if lacking := EXPERIMENTS[name].missing():
        pytest.skip(f"{name} {lacking}")


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in EXPERIMENTS if n not in SLOW])
def test_the_published_orderings_hold_at_quick_size(name: str, tmp_path: Path) -> None:
    needed(name)
    found = quick(name, tmp_path)
    assert found.claims
    assert {claim.says for claim in found.claims if not claim.agrees} <= DIFFERS.get(name, set())


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(SLOW))
def test_the_published_orderings_hold_at_quick_size_in_the_slower_ones_too(name: str, tmp_path: Path) -> None:
    needed(name)
    found = quick(name, tmp_path)
    assert {claim.says for claim in found.claims if not claim.agrees} <= DIFFERS.get(name, set())


def test_an_interrupted_run_goes_on_and_ends_with_the_same_files(tmp_path: Path) -> None:
    name, whole, cut = "filters.fig7", tmp_path / "whole", tmp_path / "cut"
    quick(name, whole)

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(name, cut, progress=stop)
    with (cut / "points.jsonl").open("a") as kept:
        kept.write('{"point": {"P": 0.')  # the line a kill cut short
    again = quick(name, cut)
    assert again.fresh == again.points - 5
    for file in ("rows.parquet", "rows.csv", "claims.json"):
        assert (cut / file).read_bytes() == (whole / file).read_bytes()
    assert quick(name, cut).fresh == 0


def test_quick_and_full_results_do_not_mix(tmp_path: Path) -> None:
    quick("filters.fig7", tmp_path)
    with pytest.raises(InputError, match="holds a quick run"):
        run("filters.fig7", EXPERIMENTS["filters.fig7"], tmp_path, pictures=False)


@pytest.mark.spark
def test_points_spread_over_spark_give_the_same_rows(tmp_path: Path, spark: Any) -> None:
    here, there = quick("filters.fig6", tmp_path / "here"), quick("filters.fig6", tmp_path / "there", spark=spark)
    assert here.claims == there.claims
    assert (tmp_path / "here/rows.parquet").read_bytes() == (tmp_path / "there/rows.parquet").read_bytes()


@pytest.mark.spark
def test_a_run_on_spark_keeps_every_point_as_it_is_done_and_stops_at_once(tmp_path: Path, spark: Any) -> None:
    usual = EXPERIMENTS["filters.fig7"]
    points, work = list(usual.points(True)), usual.run

    def three(point: Any) -> Any:
        """Three points like the others but slower, so that each is a job; and then some that take for ever."""
        time.sleep(600 if points.index(point) >= 3 else 1.1)
        return work(point)

    def stop(done: int, _: int) -> None:
        kept = len((tmp_path / "points.jsonl").read_text().splitlines()) - 1
        assert kept == done
        if done == 3:
            raise KeyboardInterrupt

    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        run("slow", replace(usual, run=three), tmp_path, quick=True, pictures=False, spark=spark, progress=stop)
    assert time.perf_counter() - begin < 60, "what is not wanted any more is not waited for"
    assert not spark.sparkContext.statusTracker().getActiveStageIds()
    assert run("slow", usual, tmp_path, quick=True, pictures=False, spark=spark).fresh == len(points) - 3 > 3


def tiny(experiment: Experiment) -> Experiment:
    """The same with its quick points as the full ones, so that a full run takes seconds."""
    return replace(experiment, points=lambda _: experiment.points(True))


def test_the_page_of_results_has_every_claim_and_figure_and_names_what_was_not_run(tmp_path: Path) -> None:
    name = "filters.fig3"
    run(name, tiny(EXPERIMENTS[name]), tmp_path / "runs" / name)
    run("filters.fig7", EXPERIMENTS["filters.fig7"], tmp_path / "runs/filters.fig7", quick=True)
    page = write_results(tmp_path / "runs", tmp_path / "docs", EXPERIMENTS).read_text()
    for claim in json.loads((tmp_path / "runs" / name / "claims.json").read_text())["claims"]:
        assert claim["ours"] in page
    above = page.partition("## filters.fig3")[0]
    assert "Not yet run at full size" in above
    assert all(f"`{other}`" in above for other in EXPERIMENTS if other != name), "a quick run is no full run"
    assert "## filters.fig7" not in page
    assert 10_000 < (tmp_path / "docs/results/filters.fig3.png").stat().st_size < 150_000
    interactive = (tmp_path / "runs" / name / "figure.html").read_text()
    assert "Plotly.newPlot" in interactive
    with pytest.raises(InputError, match="no finished experiment"):
        write_results(tmp_path, tmp_path / "docs", EXPERIMENTS)
    run("filters.fig4", tiny(EXPERIMENTS["filters.fig4"]), tmp_path / "later/filters.fig4")
    later = write_results(tmp_path / "later", tmp_path / "docs", EXPERIMENTS).read_text()
    before = page.partition("## filters.fig3")[2].partition("## Said in")[0]
    assert before.strip(), "the section is there"
    assert before in later, "what was run before stays on the page"
    assert "## filters.fig4" in later
    assert f"{later.count('| agrees') + later.count('| **differs**')} claims in 2 experiments" in later
    assert later.count("## Said in the papers and not checked") == 1, "once, however often the page is written"
    assert later.rstrip().endswith("in the extended version only |")


def test_an_experiment_says_what_has_to_be_installed_and_all_goes_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = replace(EXPERIMENTS["filters.fig7"], needs={"no_such_package": "such"})
    with pytest.raises(UnsupportedError, match=r"films needs no_such_package: pip install 'such'"):
        run("films", lacking, tmp_path / "films", quick=True)
    assert not (tmp_path / "films").exists()
    monkeypatch.setitem(EXPERIMENTS, "filters.films", lacking)
    for name in [n for n in EXPERIMENTS if n.startswith("filters.") and n not in ("filters.fig7", "filters.films")]:
        monkeypatch.delitem(EXPERIMENTS, name)
    ran = CliRunner().invoke(app, ["filters", "--quick", "--here", "--json", "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert "Left out: filters.films needs no_such_package" in ran.stderr
    assert list(json.loads(ran.stdout)) == ["filters.fig7"]


@pytest.mark.spark
def test_what_measures_the_machine_does_not_run_on_spark_and_others_tell_their_cpu(tmp_path: Path, spark: Any) -> None:
    apart = replace(EXPERIMENTS["filters.fig7"], alone=True, run=_where)
    here = run("alone", apart, tmp_path / "alone", quick=True, pictures=False, spark=spark)
    assert {row["pid"] for row in pq.read_table(here.folder / "rows.parquet").to_pylist()} == {os.getpid()}
    there = quick("filters.fig6", tmp_path / "there", spark=spark)
    assert there.cpu_s > 0


def _where(point: Any) -> Any:
    return [{**point, "pid": os.getpid(), "F": F, "delay": 1.0, "none": 1.0, "filters": 1} for F in FILTER_DELAYS]


def test_results_cannot_go_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert run_app(["filters.fig7", "--quick", "--here", "--out", str(taken)], app) == 2
    assert "cannot be a folder for results" in capsys.readouterr().err
    assert taken.read_text() == "mine"


def test_the_command_lists_runs_and_refuses_unknown_names(tmp_path: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(app, [])
    assert listed.exit_code == 0
    assert "filters.fig3" in listed.output
    ran = runner.invoke(app, ["filters.fig7", "--quick", "--here", "--json", "--out", str(tmp_path)])
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["filters.fig7"][0]["agrees"] is True
    wrong = runner.invoke(app, ["filters.fig99"])
    assert isinstance(wrong.exception, InputError)
    assert "filters.fig3" in str(wrong.exception)
