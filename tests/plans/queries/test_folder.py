"""A merge plan on disk comes back as it was."""

from __future__ import annotations

import pytest

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.model.plan import load, save
from narrowcast.plans.queries.result import as_plan


@pytest.mark.parametrize("procedure", ["rectangle", "polygon", "exact"])
def test_a_plan_is_written_and_read_with_every_set_and_piece(tmp_path, procedure):
    boxes = nc.workloads.rectangles(n=15, space=150.0, seed=3)
    merged = nc.queries.merge(boxes, procedure=procedure, km=1e-3)
    read = load(save(as_plan(merged, ["x", "y"], boxes=boxes), tmp_path / "plan"))
    sets: dict[int, list[int]] = {}
    for row in read.tables["merges"].to_pylist():
        sets.setdefault(row["set"], []).append(int(row["query"]))
    assert tuple(tuple(sets[at]) for at in range(len(sets))) == merged.sets
    sides: dict[tuple[int, int], list[list[float]]] = {}
    for row in read.tables["channels"].to_pylist():
        sides.setdefault((row["set"], row["piece"]), []).append([row["low"], row["high"]])
    expected = {(at, p): box.tolist() for at, pieces in enumerate(merged.pieces) for p, box in enumerate(pieces)}
    assert sides == expected
    asked = read.tables["queries"].to_pylist()
    assert [[row["low"], row["high"]] for row in asked] == boxes.reshape(-1, 2).tolist()
    assert [(row["query"], row["dimension"]) for row in asked[:3]] == [("0", "x"), ("0", "y"), ("1", "x")]
    assert read.cost["total"] == merged.cost
    assert read.baselines["apart"] == merged.baseline


def test_no_queries_make_an_empty_plan_and_dimensions_need_names(tmp_path):
    assert load(save(as_plan(nc.queries.merge([]), ["x"], boxes=[]), tmp_path / "plan")).tables["merges"].num_rows == 0
    with pytest.raises(InputError, match="2 names for 1 dimensions"):
        as_plan(nc.queries.merge([[[0, 1]]]), ["x", "y"], boxes=[[[0, 1]]])
    with pytest.raises(InputError, match="boxes has 2 queries"):
        as_plan(nc.queries.merge([[[0, 1]]]), ["x"], boxes=[[[0, 1]], [[2, 3]]])
