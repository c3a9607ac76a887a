"""Bad rows are found exactly, with file, row and reason; good rows all arrive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from narrowcast.data.ingest.take_in import ingest, quarantined
from narrowcast.errors import InputError

pytestmark = pytest.mark.spark


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def bad(table: Any) -> list[tuple[int, str]]:
    return sorted((r["row"], r["kind"]) for r in table.quarantine.collect())


FLOWS = [
    ('{"flow": "a", "rate": 1.5, "size": 100}', "a,1.5,100", None),
    ('{"flow": "b", "rate": -1}', "b,-1,", "negative"),
    ('{"flow": "a", "rate": 2}', "a,2,", "duplicate"),
    ('{"flow": null, "rate": 2}', ",2,", "missing"),
    ('{"flow": "c", "rate": "many"}', "c,many,", "wrong type"),
    ('{"flow": "d", "rate": "NaN"}', "d,NaN,", "not finite"),
    ('{"flow": "e", "rate": "Infinity"}', "e,Infinity,", "not finite"),
    ('{"flow": "f", "rate": 3, "size": -4}', "f,3,-4", "negative"),
    ("not a row", '"only, one cell"', "malformed"),
    ('{"flow": "b", "rate": 4}', "b,4,", None),
    ('{"flow": "g"}', "g,,", "missing"),
    ('{"flow": "h", "rate": 1e3}', "h,1e3,", None),
]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_each_bad_flow_is_found_and_each_good_one_arrives(spark: Any, tmp_path: Path, form: str) -> None:
    column = {"jsonl": 0, "csv": 1}[form]
    lines = ["flow,rate,size"] * (form == "csv") + [row[column] for row in FLOWS]
    table = ingest(spark, write(tmp_path / f"flows.{form}", "\n".join(lines) + "\n"), "flows")
    assert bad(table) == [(i, kind) for i, (_, _, kind) in enumerate(FLOWS, 1) if kind]
    good = sorted((r["flow"], r["rate"], r["size"]) for r in table.rows.collect())
    assert good == [("a", 1.5, 100.0), ("b", 4.0, None), ("h", 1000.0, None)]
    assert table.n_in == len(FLOWS)
    assert table.n_in == table.n_accepted + table.n_quarantined


def test_parquet_rows_are_numbered_across_row_groups_and_files(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "flows"
    folder.mkdir()
    for k in range(3):
        names = [f"{k}-{i}" for i in range(500)]
        rates = [float("nan") if i % 100 == k else 1.0 for i in range(500)]
        pq.write_table(pa.table({"flow": names, "rate": rates}), folder / f"part-{k}.parquet", row_group_size=37)
    table = ingest(spark, folder, "flows")
    found = {(Path(r["file"]).name, r["row"]) for r in table.quarantine.collect()}
    assert found == {(f"part-{k}.parquet", i + 1) for k in range(3) for i in range(500) if i % 100 == k}
    assert table.n_accepted == 1500 - 15


def test_rows_of_text_are_numbered_the_same_however_spark_cuts_the_file(spark: Any, tmp_path: Path) -> None:
    lines = [json.dumps({"flow": f"f{i}", "rate": -1 if i % 97 == 0 else i}) for i in range(5000)]
    path = write(tmp_path / "flows.jsonl", "\n".join(lines))
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    found = []
    try:
        for size in (before, "20000", "7001"):
            spark.conf.set("spark.sql.files.maxPartitionBytes", size)
            found.append(bad(ingest(spark, path, "flows")))
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    assert found[0] == [(i + 1, "negative") for i in range(0, 5000, 97)]
    assert found[0] == found[1] == found[2]


def test_the_first_of_a_repeated_key_by_file_and_row_stays(spark: Any, tmp_path: Path) -> None:
    for name, rate in (("b.csv", 2), ("a.csv", 1), ("c.csv", 3)):
        write(tmp_path / name, f"flow,rate\nx,{rate}\nx,{rate + 10}\n")
    table = ingest(spark, tmp_path, "flows")
    assert [r["rate"] for r in table.rows.collect()] == [1.0]
    assert table.n_bad == {"duplicate": 5}


def test_a_bad_row_does_not_make_the_next_good_one_a_duplicate(spark: Any, tmp_path: Path) -> None:
    table = ingest(spark, write(tmp_path / "flows.csv", "flow,rate\nx,-1\nx,1\n"), "flows")
    assert bad(table) == [(1, "negative")]


def test_profiles_that_do_not_parse_are_set_aside_with_the_reason(spark: Any, tmp_path: Path) -> None:
    rows = [("ann", "price > 100"), ("bob", "price >"), ("cid", ""), ("dan", "price > 100"), ("ann", "price > 100")]
    pq.write_table(
        pa.table({"subscriber": [r[0] for r in rows], "profile": [r[1] for r in rows]}), tmp_path / "s.parquet"
    )
    table = ingest(spark, tmp_path / "s.parquet", "subscriptions")
    assert bad(table) == [(2, "bad profile"), (3, "missing"), (5, "duplicate")]
    reasons = {r["row"]: r["reason"] for r in table.quarantine.collect()}
    assert reasons[2].startswith("profile: ")
    assert "\n" not in reasons[2]


def test_names_are_checked_against_the_table_that_lists_them(spark: Any, tmp_path: Path) -> None:
    nodes = ingest(spark, write(tmp_path / "nodes.csv", "node,role\na,source\nb,gateway\nc,boss\n"), "nodes")
    assert bad(nodes) == [(3, "not allowed")]
    path = write(tmp_path / "topology.csv", "u,v,cost\na,b,1\nb,a,2\na,c,1\na,a,1\nb,a,0\n")
    topology = ingest(spark, path, "topology", known={"nodes": nodes})
    assert bad(topology) == [(2, "duplicate"), (3, "unknown name"), (4, "self loop"), (5, "negative")]


def test_a_tree_keeps_what_reaches_its_root(spark: Any, tmp_path: Path) -> None:
    text = "node,parent\nr,\na,r\nb,a\nx,y\ny,x\nz,x\nq,\na,b\nm,gone\n"
    tree = ingest(spark, write(tmp_path / "tree.csv", text), "tree")
    assert bad(tree) == [
        (4, "not in the tree"),
        (5, "not in the tree"),
        (6, "not in the tree"),
        (7, "second root"),
        (8, "duplicate"),
        (9, "not in the tree"),
    ]
    demand = ingest(
        spark, write(tmp_path / "d.csv", "node,item,size\nb,1,2\na,1,2\nx,1,2\nb,1,3\n"), "demand", known={"tree": tree}
    )
    assert bad(demand) == [(2, "not a leaf"), (3, "unknown name"), (4, "duplicate")]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_attributes_of_text_get_the_type_that_nearly_all_cells_have(spark: Any, tmp_path: Path, form: str) -> None:
    rows = [
        {"symbol": f"{600000 + i}", "price": i / 4, "size": 10, "ok": i % 2 == 0, "ts": 1000 + i, "n": i}
        for i in range(200)
    ]
    rows[7]["price"] = "soon"
    rows[9]["ts"] = "yesterday"
    rows[11]["n"] = None
    if form == "csv":
        names = list(rows[0])
        cells = [",".join("" if row[n] is None else str(row[n]) for n in names) for row in rows]
        path = write(tmp_path / "m.csv", "\n".join([",".join(names), *cells]))
    else:
        path = write(tmp_path / "m.jsonl", "\n".join(json.dumps(row) for row in rows))
    table = ingest(spark, path, "messages", types={"symbol": "string"})
    assert dict(table.types) == {"symbol": "string", "price": "double", "ok": "boolean", "n": "bigint"}
    assert bad(table) == [(8, "wrong type"), (10, "wrong type")]
    good = {r["_row"]: r for r in table.rows.collect()}
    assert good[1]["symbol"] == "600000"
    assert good[2]["price"] == 0.25
    assert good[1]["ok"] is True
    assert good[12]["n"] is None
    assert good[3]["ts"].timestamp() == 1002


def test_json_numbers_in_quotes_stay_text(spark: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", "\n".join(json.dumps({"symbol": str(i)}) for i in range(50)))
    assert dict(ingest(spark, path, "messages").types) == {"symbol": "string"}


def test_strict_stops_at_the_first_bad_row_and_names_it(spark: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "flows.csv", "flow,rate\nx,1\ny,-1\nz,-2\n")
    with pytest.raises(InputError, match=r"flows\.csv, row 2: rate is -1"):
        ingest(spark, path, "flows", strict=True)


def test_a_spark_table_can_be_named_instead_of_a_file(spark: Any) -> None:
    spark.createDataFrame([("a", 1.0), ("b", -1.0)], "flow string, rate double").createOrReplaceTempView("my_flows")
    table = ingest(spark, "my_flows", "flows")
    assert table.n_accepted == 1
    assert table.n_bad == {"negative": 1}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("gone.parquet", None, r"gone\.parquet: no such file \(the flows table\)"),
        ("empty.csv", "", "the file is empty"),
        ("flows.csv", "flow,speed\na,1\n", "has no column 'rate'; it has flow, speed"),
        ("flows.csv", "flow,rate,rate\na,1,2\n", "column 'rate' appears more than once"),
        ("flows.txt", "flow,rate\n", "cannot tell the format"),
        ("flows.parquet", "this is no parquet", "not a readable parquet file"),
        ("no_such_table", None, "no such file"),
    ],
)
def test_what_cannot_be_read_stops_with_one_line(
    spark: Any, tmp_path: Path, name: str, content: str | None, says: str
) -> None:
    if content is not None:
        write(tmp_path / name, content)
    source = name if name == "no_such_table" else tmp_path / name
    with pytest.raises(InputError, match=says) as caught:
        ingest(spark, source, "flows")
    assert "\n" not in str(caught.value)


def test_a_folder_without_data_stops_with_one_line(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder without data files"):
        ingest(spark, tmp_path, "flows")


def test_all_bad_rows_come_together_in_order(spark: Any, tmp_path: Path) -> None:
    flows = ingest(spark, write(tmp_path / "flows.csv", "flow,rate\nx,-1\ny,1\n"), "flows")
    nodes = ingest(spark, write(tmp_path / "nodes.csv", "node,role\na,boss\n"), "nodes")
    rows = quarantined({"nodes": nodes, "flows": flows}, spark).collect()
    assert [(r["table"], r["row"]) for r in rows] == [("flows", 1), ("nodes", 1)]
    assert json.loads(rows[0]["raw"]) == {"flow": "x", "rate": "-1"}
