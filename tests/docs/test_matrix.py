"""The page of what works with what says what the code can do; the whole of it is run by tools/docs/matrix.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evaluate.plans import MAKERS
from narrowcast.data.planning.replay_kinds import REPLAYS
from narrowcast.errors import UnsupportedError
from narrowcast.exports import TARGETS, Options
from narrowcast.plans.kinds import KINDS
from narrowcast.plans.verbs import decoded

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "docs"))
import matrix  # noqa: E402

STAGES = {
    "plan": "plan", "check": "judge", "explain": "explain", "whatif": "whatif", "diff": "migrate", "report": "report",
    "deliver": "route", "adapt": "replan",
}  # fmt: skip


def cells() -> dict[str, dict[str, str]]:
    lines = [line for line in (ROOT / "docs" / "matrix.md").read_text().splitlines() if line.startswith("| ")]
    head, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_the_page_has_every_kind_and_verb() -> None:
    found = cells()
    assert set(found) == {*KINDS, "hybrid"} == set(matrix.KINDS)
    assert all(tuple(row) == matrix.VERBS for row in found.values())


@pytest.mark.parametrize("kind", matrix.KINDS)
def test_a_cell_is_ticked_where_the_kind_has_the_stage(kind: str) -> None:
    row, folder = cells()[kind], KINDS["channels" if kind == "hybrid" else kind]
    for verb, stage in STAGES.items():
        assert (row[verb] == "✓") == folder.has(stage), verb
    assert hasattr(folder.judge, "message_faults")
    assert (row["replay"] == "✓") == (folder.name in ("channels", *REPLAYS))
    assert (row["generate"], row["measure"]) == ("✓", "✓")
    text = (ROOT / "docs" / "matrix.md").read_text()
    for verb, cell in row.items():
        if cell == "—":
            assert f"- **{kind}, {verb}**: {matrix.REASONS[kind, verb]}" in text, "every empty cell has its reason"


@pytest.mark.parametrize("kind", [kind for kind in matrix.KINDS if kind in MAKERS])
def test_export_goes_where_the_page_says(kind: str) -> None:
    plan = decoded(MAKERS[kind](3))
    for target, write in TARGETS.items():
        try:
            at = "lo" if target == "cyclonedds" else "10.0.0.0/8"
            write(plan, Options(memberships=1000, interface=at, key="symbol"))
            works = True
        except UnsupportedError:
            works = False
        assert works == (target in matrix.KINDS[kind]["export"].split()), target
