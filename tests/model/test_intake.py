"""Input tables become nouns; every row is used or set aside with its place and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from narrowcast.errors import InputError
from narrowcast.model.folder import fingerprint
from narrowcast.model.intake import read_demand, read_demand_tables, read_measured, read_tree
from narrowcast.model.quarantine import Quarantine
from narrowcast.model.tables import key_metadata

FLOWS = "flow,rate\nIBM,5\nMSFT,2\n,1\nBAD,-1\nWORSE,fast\nIBM,9\nNAN,nan\n"
PAIRS = "flow,subscriber\nIBM,ann\nMSFT,bob\nIBM,bob\nNOPE,ann\n,bob\nMSFT,\nIBM,ann\nBAD,ann\n"


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    flows, pairs = tmp_path / "flows.csv", tmp_path / "interest.csv"
    flows.write_text(FLOWS)
    pairs.write_text(PAIRS)
    return flows, pairs


def test_good_rows_make_the_interest_and_bad_rows_are_all_named(tables: tuple[Path, Path]) -> None:
    flows, pairs = tables
    aside = Quarantine()
    interest = read_demand_tables(flows, pairs, aside).interest
    assert interest.flow_names == ("IBM", "MSFT")
    assert interest.user_names == ("ann", "bob")
    assert [interest.users_of(k).tolist() for k in (0, 1)] == [[0, 1], [1]]
    assert sorted((Path(file).name, row, reason) for file, row, reason in aside.rows) == [
        ("flows.csv", 3, "flow is empty"),
        ("flows.csv", 4, "rate is negative"),
        ("flows.csv", 5, "rate is not a number"),
        ("flows.csv", 6, "flow appears twice"),
        ("flows.csv", 7, "rate is not a number"),
        ("interest.csv", 4, "flow is not in the flows table"),
        ("interest.csv", 5, "flow is empty"),
        ("interest.csv", 6, "subscriber is empty"),
        ("interest.csv", 7, "the pair appears twice"),
        ("interest.csv", 8, "flow is not in the flows table"),
    ]
    assert interest.n_flows + interest.n_pairs + len(aside.rows) == 7 + 8


def test_strict_stops_at_the_first_bad_row(tables: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match=r"flows\.csv, row 3: flow is empty"):
        read_demand_tables(*tables, Quarantine(strict=True))


def test_quarantine_is_written_as_a_table(tables: tuple[Path, Path], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    aside = Quarantine()
    read_demand_tables(*tables, aside)
    aside.write(tmp_path / "quarantine.parquet")
    back = pq.read_table(tmp_path / "quarantine.parquet")
    assert back.column_names == ["file", "row", "reason"]
    assert back.num_rows == len(aside.rows)
    Quarantine().write(tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_a_tree_and_its_demand_come_from_tables(tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_text("node,parent,users\nw,,0\na,w,3\nb,w,2\n")
    (tmp_path / "demand.csv").write_text("node,item,size\na,x,2\nb,x,2\nb,y,1\nw,x,2\nq,x,2\nb,,1\nb,z,-1\n")
    aside = Quarantine()
    tree = read_tree(tmp_path / "tree.csv")
    assert tree.names == ("w", "a", "b")
    assert tree.users.tolist() == [0, 3, 2]
    leaf, item, size = read_demand(tmp_path / "demand.csv", tree, aside)
    assert (leaf.tolist(), item.tolist(), size.tolist()) == ([1, 2, 2], [0, 0, 1], [2, 1])
    assert [(row, reason) for _, row, reason in sorted(aside.rows)] == [
        (4, "node is not a leaf"),
        (5, "node is not in the tree"),
        (6, "item is empty"),
        (7, "size is negative"),
    ]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("w,\na,w\na,w\n", "row 3: node appears twice"),
        ("w,\na,q\n", "row 2: parent is not a node"),
        ("w,\nv,\n", "one root"),
        ("w,\n,w\n", "row 2: node is empty"),
    ],
)
def test_a_broken_tree_stops_with_its_row(tmp_path: Path, rows: str, says: str) -> None:
    (tmp_path / "tree.csv").write_text("node,parent\n" + rows)
    with pytest.raises(InputError, match=says):
        read_tree(tmp_path / "tree.csv")


@pytest.mark.parametrize(
    ("flows", "pairs", "says"),
    [
        ("", "", "nothing to plan"),
        ("A,1\n", "B,x\n", "nothing to plan"),
        ("A,1e308\nB,1e308\n", "A,x\nB,y\n", "too large"),
    ],
)
def test_no_wishes_and_huge_rates_stop_with_one_line(tmp_path: Path, flows: str, pairs: str, says: str) -> None:
    (tmp_path / "flows.csv").write_text("flow,rate\n" + flows)
    (tmp_path / "interest.csv").write_text("flow,subscriber\n" + pairs)
    with pytest.raises(InputError, match=says):
        read_demand_tables(tmp_path / "flows.csv", tmp_path / "interest.csv", Quarantine())


def test_the_key_is_the_one_given_or_what_the_file_or_its_manifest_says(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flows, pairs = tmp_path / "flows.parquet", tmp_path / "interest.csv"
    table = pa.table({"flow": ["IBM"], "rate": [2.0]})
    pq.write_table(table, flows)
    pairs.write_text("flow,subscriber\nIBM,ann\n")
    assert read_demand_tables(flows, pairs, Quarantine()).key == ()
    (tmp_path / "manifest.json").write_text('{"key": ["venue"]}')
    assert read_demand_tables(flows, pairs, Quarantine()).key == ("venue",)
    pq.write_table(table.replace_schema_metadata(key_metadata(["symbol"])), flows)
    found = read_demand_tables(flows, pairs, Quarantine())
    assert (found.key, found.folder, found.inputs["flows"]) == (("symbol",), None, fingerprint(flows))
    assert read_demand_tables(flows, pairs, Quarantine(), key=("a", "b")).key == ("a", "b")
    assert read_measured(tmp_path, Quarantine()).folder == tmp_path


@pytest.mark.parametrize(
    ("manifest", "says"),
    [('{"key": "symbol"}', "key must be a list of attribute names, got 'symbol'"), ("{", "not readable as JSON")],
)
def test_a_manifest_that_cannot_be_used_stops_with_one_line(tmp_path: Path, manifest: str, says: str) -> None:
    (tmp_path / "flows.csv").write_text("flow,rate\nIBM,1\n")
    (tmp_path / "interest.csv").write_text("flow,subscriber\nIBM,ann\n")
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match=says):
        read_measured(tmp_path, Quarantine())


def test_a_folder_without_a_table_stops_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        read_measured(tmp_path / "nowhere", Quarantine())
    (tmp_path / "flows.csv").write_text("flow,rate\nIBM,1\n")
    with pytest.raises(InputError, match=r"no interest table here \(no interest\.parquet") as caught:
        read_measured(tmp_path, Quarantine())
    assert "\n" not in str(caught.value)
    (tmp_path / "flows.jsonl").write_text('{"flow": "IBM", "rate": 1}\n')
    with pytest.raises(InputError, match=r"both flows\.csv and flows\.jsonl are the flows table"):
        read_measured(tmp_path, Quarantine())
