"""What a client extracts is what it would have got directly: row for row, on every procedure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from narrowcast.errors import InputError

CONSTANTS = {"km": 1e-2, "kt": 1e-2, "ku": 1e-4}


def a_table(rng, n=120):
    """Whole coordinates, so that rows repeat and lie on borders; some are null or NaN."""

    def column():
        values = rng.integers(0, 9, n).astype(float)
        values[rng.random(n) < 0.05] = np.nan
        return pa.array(values.tolist(), mask=rng.random(n) < 0.1, type=pa.float64(), from_pandas=False)

    return pa.table({"x": column(), "y": column(), "name": pa.array(rng.choice(["a", "b"], n).tolist())})


def a_query(rng):
    low, high = np.sort(rng.integers(0, 9, 2))
    parts = [f"x BETWEEN {low} AND {high}"]
    match rng.integers(0, 6):
        case 0:
            parts.append(f"y > {rng.integers(0, 9)}")
        case 1:
            parts.append(f"y <= {rng.integers(0, 9)} AND name = 'a'")
        case 2:
            parts = [f"x < {high}"]
        case _:
            low, high = np.sort(rng.integers(0, 9, 2))
            parts.append(f"y BETWEEN {low} AND {high}")
    return " AND ".join(parts)


def direct(table, profile):
    """The answer by testing every row."""
    keep = [i for i, row in enumerate(table.to_pylist()) if profile.matches(row)]
    return table.take(pa.array(keep, pa.int64()))


def same(one, other):
    """Equal rows in equal order; NaN is itself."""
    return [str(row) for row in one.to_pylist()] == [str(row) for row in other.to_pylist()]


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(["rectangle", "polygon", "exact"]), st.sampled_from(["pair", "cluster"]))
def test_extracted_answers_equal_direct_answers(seed, procedure, method):
    rng = np.random.default_rng(seed)
    table = a_table(rng)
    queries = [
        nc.queries.Query(f"q{i}", f"client{i % 3}", nc.Profile.parse(a_query(rng)))
        for i in range(int(rng.integers(1, 8)))
    ]
    boxes = nc.queries.range_boxes([q.profile for q in queries], ["x", "y"])
    rows = np.array([[r["x"], r["y"]] for r in table.to_pylist()], float)
    counts = nc.queries.PointCounts(np.nan_to_num(rows))
    plan = nc.queries.merge(boxes, method, procedure=procedure, size=counts, **CONSTANTS)
    channels = nc.queries.headers(queries, boxes, plan, ["x", "y"])
    answers = nc.queries.answer(table, channels)
    clients = {name: nc.queries.Client(name) for name in {q.client for q in queries}}
    for client in clients.values():
        for got in answers:
            client.receive(got)
    for query in queries:
        assert same(clients[query.client].answers[query.query], direct(table, query.profile))
    if procedure == "exact":
        for got in answers:  # disjoint pieces: a closed range hears nothing outside itself
            for query in got.header.queries:
                box = boxes[queries.index(query)]
                assert same(got.table, direct(got.table, nc.queries.box_profile(box, ["x", "y"])))
        by_set = {members: [] for members in plan.sets}
        for got in answers:
            ids = {queries.index(q) for q in got.header.queries}
            by_set[next(members for members in plan.sets if ids <= set(members))].extend(got.rows.tolist())
        for places in by_set.values():
            assert len(places) == len(set(places))
        assert len(channels) == plan.terms.amounts.channels


def test_no_row_is_lost_where_null_or_nan_meets_open_ranges():
    table = pa.table({"x": pa.array([None, float("nan"), 0.0, -1.0, 5.0])})
    texts = ["x >= 0", "x <= 0", "TRUE"]
    queries = [nc.queries.Query(t, "c", nc.Profile.parse(t)) for t in texts]
    boxes = nc.queries.range_boxes([q.profile for q in queries], ["x"])
    counts = nc.queries.PointCounts([[0.0], [-1.0], [5.0]])
    plan = nc.queries.merge(boxes, "partition", procedure="exact", size=counts, km=0, kt=1, ku=1)
    assert plan.sets == ((0, 1, 2),)
    client = nc.queries.Client("c")
    for got in nc.queries.answer(table, nc.queries.headers(queries, boxes, plan, ["x"])):
        client.receive(got)
    for query in queries:
        assert same(client.answers[query.query], direct(table, query.profile))


def test_a_query_that_a_cover_answers_twice_is_extracted_once():
    table = pa.table({"x": [1, 1, 2, 3]})
    queries = [nc.queries.Query(f"q{i}", "c", nc.Profile.parse(f"x BETWEEN {i} AND {i + 1}")) for i in range(3)]
    boxes = nc.queries.range_boxes([q.profile for q in queries], ["x"])
    plan = nc.queries.merge(boxes, "partition", km=0, kt=1, ku=1)
    from dataclasses import replace

    both = replace(plan, sets=((0, 1), (1, 2)), pieces=(np.array([[[0.0, 2]]]), np.array([[[1.0, 3]]])))
    client = nc.queries.Client("c")
    for got in nc.queries.answer(table, nc.queries.headers(queries, boxes, both, ["x"])):
        client.receive(got)
    assert client.answers["q1"].to_pydict() == {"x": [1, 1, 2]}


def test_without_the_sources_order_pieces_come_one_after_another_with_nothing_lost():
    table = pa.table({"x": [3, 1, 2, 2]})
    queries = [nc.queries.Query(t, "c", nc.Profile.parse(t)) for t in ("x BETWEEN 1 AND 2", "x BETWEEN 2 AND 3")]
    boxes = nc.queries.range_boxes([q.profile for q in queries], ["x"])
    counts = nc.queries.PointCounts([[3], [1], [2], [2]])
    plan = nc.queries.merge(boxes, "partition", procedure="exact", size=counts, km=0, kt=1, ku=1)
    assert plan.sets == ((0, 1),)
    client = nc.queries.Client("c")
    for got in nc.queries.answer(table, nc.queries.headers(queries, boxes, plan, ["x"])):
        client.receive(nc.queries.Answer(got.header, got.table))
    assert sorted(client.answers["x BETWEEN 1 AND 2"]["x"].to_pylist()) == [1, 2, 2]


def test_a_header_names_its_clients_and_survives_as_text():
    queries = [
        nc.queries.Query("q", "bob", nc.Profile.parse("x > 1")),
        nc.queries.Query("p", "ann", nc.Profile.parse("x > 2")),
    ]
    header = nc.queries.Header(7, nc.Profile.parse("x >= 1.0"), tuple(queries))
    assert header.clients == ("ann", "bob")
    assert nc.queries.Header.from_json(header.to_json()) == header


def test_a_plan_of_other_queries_is_refused():
    with pytest.raises(InputError, match="plan must be made for these 1 queries"):
        nc.queries.headers(
            [nc.queries.Query("q", "c", nc.Profile.parse("x > 1"))], np.zeros((2, 1, 2)), nc.queries.merge([]), ["x"]
        )


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("x > 1 AND x <= 2", [1, 2]),
        ("x = 3", [3, 3]),
        ("x < 1 OR x > 5", [-np.inf, np.inf]),
        ("x BETWEEN 1 AND 2 OR x BETWEEN 4 AND 5", [1, 5]),
        ("y = 1", [-np.inf, np.inf]),
        ("x > 1 OR x IS NULL", [-np.inf, np.inf]),
        ("x = 'a'", [-np.inf, np.inf]),
        ("x > 2 AND x < 1", [0, 0]),
        ("x >= 9007199254740993", [9007199254740992, np.inf]),
        ("x <= 9007199254740993", [-np.inf, 9007199254740994]),
    ],
)
def test_the_box_of_a_profile_is_never_narrower(text, box):
    assert nc.queries.range_boxes([nc.Profile.parse(text)], ["x"]).tolist() == [[box]]
