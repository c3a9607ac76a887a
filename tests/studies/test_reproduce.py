"""The papers' experiments at quick size: orderings hold, work goes on where it stopped, and gives the same anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from narrowcast.cli.app import app
from narrowcast.errors import InputError
from narrowcast.studies import EXPERIMENTS, run
from narrowcast.studies.results import write_results

# Where the quick size is too small for the claim, or where the full run differs as well (docs/results.md says why).
DIFFERS = {
    "filters.fig4": {"both at the same locality"},
    "channels.fig7": {"with many sessions GF is clearly below SF"},
    "hybrid.fig4": {
        "K-means is the best channelizer (market)",
        "K-means is the best channelizer (market, equal rates)",
    },
    "hybrid.fig5": {"greedy choices are below the simple ones"},
    "semantic.fig3": {
        "SPT is about 23 % above SemCast-O on disjoint profiles (tree count)",
        "unicast is about 41 % above SemCast-O (tree count)",
    },
    "semantic.fig5": {
        "SemCast is below SPT at every overlap (tree count)",
        "the variants never beat SemCast where profiles overlap",
    },
    "semantic.fig10": {"a latency bound costs about 10 % at most"},
    "semantic.table2": {"a gateway's filter table is a small share of SPT's root table"},
    "queries.fig15": {"clustering is much faster"},
}
SLOW = {
    "channels.fig7",
    "hybrid.fig5",
    "queries.fig10",
    "queries.fig14",
    "semantic.fig3",
    "semantic.fig5",
    "semantic.fig8",
}


def quick(name: str, folder: Path, **options: Any) -> Any:
    return run(name, EXPERIMENTS[name], folder, quick=True, pictures=False, **options)


@pytest.mark.parametrize("name", [n for n in EXPERIMENTS if n not in SLOW])
def test_the_published_orderings_hold_at_quick_size(name: str, tmp_path: Path) -> None:
    found = quick(name, tmp_path)
    assert found.claims
    assert {claim.says for claim in found.claims if not claim.agrees} <= DIFFERS.get(name, set())


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(SLOW))
def test_the_published_orderings_hold_at_quick_size_in_the_slower_ones_too(name: str, tmp_path: Path) -> None:
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


def test_the_page_of_results_has_every_claim_and_figure(tmp_path: Path) -> None:
    name = "filters.fig3"
    run(name, EXPERIMENTS[name], tmp_path / "runs" / name, quick=True)
    page = write_results(tmp_path / "runs", tmp_path / "docs", tuple(EXPERIMENTS)).read_text()
    for claim in json.loads((tmp_path / "runs" / name / "claims.json").read_text())["claims"]:
        assert claim["ours"] in page
    assert (tmp_path / "docs/results/filters.fig3.png").stat().st_size > 10_000
    interactive = (tmp_path / "runs" / name / "figure.html").read_text()
    assert "Plotly.newPlot" in interactive
    with pytest.raises(InputError, match="no finished experiment"):
        write_results(tmp_path, tmp_path / "docs", tuple(EXPERIMENTS))


def test_the_command_lists_runs_and_refuses_unknown_names(tmp_path: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["reproduce"])
    assert listed.exit_code == 0
    assert "filters.fig3" in listed.output
    ran = runner.invoke(app, ["reproduce", "filters.fig7", "--quick", "--here", "--json", "--out", str(tmp_path)])
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["filters.fig7"][0]["agrees"] is True
    wrong = runner.invoke(app, ["reproduce", "filters.fig99"])
    assert isinstance(wrong.exception, InputError)
    assert "filters.fig3" in str(wrong.exception)
