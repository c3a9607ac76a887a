"""Every command and every snippet on every page runs as it stands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from docs.snippets import ELSEWHERE, ROOT, blocks, run_python, run_shell

DOCS = ROOT / "docs"
TABLES = """
import narrowcast as nc, pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"symbol": ["IBM", "SAP"] * 20, "price": [101.0, 99.0] * 20}), "messages.parquet")
pq.write_table(pa.table({"subscriber": ["ann", "bob"], "profile": ["symbol = 'IBM' AND price > 100", "price > 50"]}),
               "subscriptions.parquet")
"""
# What a page takes as given: a running system, a Spark session, a table and a stream of rows.
RUNNING = """
import contextlib, time
stack = contextlib.ExitStack()
stack.enter_context(nc.up(None, ".narrowcast", multicast=False))
from narrowcast.data.spark.session import session
spark = session(quick=True)
url, folder = ".narrowcast", "checkpoint"
rows = ["'IBM' AS symbol", "CAST(value % 200 AS double) AS price", "timestamp AS ts"]
stream = spark.readStream.format("rate").option("rowsPerSecond", 20).load().selectExpr(*rows)
"""
STOPPED = """
for each in spark.streams.active:
    each.stop()
print(spark.read.format("narrowcast").option("url", url).load().count(), "in the log")
spark.stop()
stack.close()
"""
PLANS = """
import narrowcast as nc
interest = nc.workloads.market(symbols=40, users=8, share=0.3, seed=1)
for name, groups in (("plan", 4), ("plan-tuesday", 6)):
    nc.plan(nc.Demand(interest, ("symbol",)), groups=groups, sessions=10, method="gf").save(name)
"""
BANK = """
import narrowcast as nc
nc.workloads.write("network", "bank", users=60, sites=5, symbols=400)
from narrowcast.plans.verbs import demand_in
demand = demand_in("bank")
"""
BATCH = 'df = spark.createDataFrame([("IBM", 101.0), ("SAP", 99.0)], "symbol string, price double")\n'
SPARK = [pytest.mark.spark, pytest.mark.timeout(600)]
ON_SPARK = {"tutorial.md", "adapting.md", "streaming.md", "README.md"}


def pages(language: str) -> list[object]:
    """Every page with a block in this language; those on Spark go where the JVMs are."""
    found = [page for page in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))] if blocks(page, language)]
    return [pytest.param(page, id=page.name, marks=SPARK if page.name in ON_SPARK else []) for page in found]


@pytest.mark.snippets
@pytest.mark.parametrize("page", pages("sh"))
def test_every_command_of_a_page_runs_in_order(page: Path, tmp_path: Path) -> None:
    if page.name in ("console.md", "metrics.md"):  # they go on from a plan
        run_python(page, tmp_path, PLANS)
    said = run_shell(page, tmp_path)
    if page.name == "tutorial.md":
        assert '{"ts": "2026-01-05 09:00:40+00:00", "site": "bergen", "kind": "wind", "value": 17.9}' in said
        assert "'value': 21.5" in run_python(page, tmp_path)


@pytest.mark.snippets
@pytest.mark.parametrize("page", [each for each in pages("python") if "tutorial" not in str(each)])
def test_every_python_block_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    if page.name == "README.md":
        said = run_python(page, tmp_path, TABLES, STOPPED, {"df.writeStream": RUNNING + "df = stream\n"})
        assert "{'symbol': 'IBM', 'price': 101}" in said
    elif page.name == "streaming.md":
        assert "in the log" in run_python(page, tmp_path, TABLES + RUNNING + BATCH, STOPPED)
    else:
        run_python(page, tmp_path, BANK if page.name == "network.md" else "")


@pytest.mark.parametrize("page", pages("sh"))
def test_what_a_page_has_people_install_and_copy_exists(page: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    for named in re.findall(r"narrowcast\[([a-z,]+)\]", text):
        assert set(named.split(",")) <= set(extras), named
    for target in re.findall(r"\bmake ([a-z]+)", "\n".join(blocks(page, "sh"))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for line in "\n".join(blocks(page, "sh")).splitlines():
        for path in re.findall(r"\bexamples/[\w./@-]+", line) if line.startswith(ELSEWHERE) else []:
            assert (ROOT / path.rstrip("/*")).exists(), line


def test_every_block_says_its_language() -> None:
    """So that none that should run is passed over; text, tables and drawings say nothing."""
    for page in [ROOT / "README.md", *DOCS.glob("*.md")]:
        languages = set(re.findall(r"^```(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert languages <= {"sh", "python", "text", "toml", "yaml", "json"}, page.name
        for block in re.findall(r"^```\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            assert not re.search(r"^(narrowcast |import |>>> )", block, re.MULTILINE), f"{page.name}: {block}"
