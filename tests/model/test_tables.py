"""Tables come in from three formats, and what cannot be read is told in one line."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from narrowcast.errors import InputError
from narrowcast.model.tables import as_table, find_table, read_table


def test_the_three_formats_give_the_same_table(tmp_path: Path) -> None:
    rows = pa.table({"flow": ["IBM", "MSFT"], "rate": [1.5, 2.5]})
    pq.write_table(rows, tmp_path / "flows.parquet")
    (tmp_path / "flows.csv").write_text("flow,rate\nIBM,1.5\nMSFT,2.5\n")
    (tmp_path / "flows.jsonl").write_text('{"flow": "IBM", "rate": 1.5}\n{"flow": "MSFT", "rate": 2.5}\n')
    for name in ("flows.parquet", "flows.csv", "flows.jsonl"):
        assert read_table(tmp_path / name, name="flows", columns=("flow", "rate")) == rows


def test_a_folder_of_parts_is_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "flows"
    folder.mkdir()
    for i in range(2):
        pq.write_table(pa.table({"flow": [f"f{i}"]}), folder / f"part-{i:05}.parquet")
    (folder / "_SUCCESS").touch()
    assert read_table(folder, name="flows")["flow"].to_pylist() == ["f0", "f1"]


def test_an_empty_csv_cell_is_null_and_an_empty_quoted_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "messages.csv"
    path.write_text('venue,price\n,1\n"",2\nNYSE,3\n')
    assert read_table(path, name="messages")["venue"].to_pylist() == [None, "", "NYSE"]


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("flows.csv", "", "the file is empty"),
        ("flows.csv", "name,rate\na,1\n", "no column 'flow'; it has name, rate"),
        ("flows.csv", "flow,rate,rate\na,1,1\n", "'rate' appears more than once"),
        ("flows.csv", "flow,rate\na\n", "not a readable csv"),
        ("flows.parquet", "this is text", "not a readable parquet"),
        ("flows.jsonl", "{flow: 1", "not a readable jsonl"),
        ("flows.xls", "x", "cannot tell the format"),
    ],
)
def test_what_cannot_be_read_says_why_in_one_line(tmp_path: Path, file: str, content: str, says: str) -> None:
    path = tmp_path / file
    path.write_text(content)
    with pytest.raises(InputError, match=says) as caught:
        read_table(path, name="flows", columns=("flow",))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_folder_where_a_file_is_expected_and_a_missing_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("flow\na\n")
    with pytest.raises(InputError, match=r"a folder where the flows file is expected.*flows\.csv\?"):
        read_table(tmp_path, name="flows")
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "absent.csv", name="flows")


def test_a_table_may_be_given_as_a_path_or_in_memory(tmp_path: Path) -> None:
    import pandas as pd

    rows = pa.table({"flow": ["IBM", "MSFT"], "rate": [1.5, 2.5]})
    pq.write_table(rows, tmp_path / "flows.parquet")
    frame = pd.DataFrame({"flow": ["IBM", "MSFT"], "rate": [1.5, 2.5]}, index=[7, 8])
    for given in (tmp_path / "flows.parquet", str(tmp_path / "flows.parquet"), rows, frame):
        assert as_table(given, name="flows", columns=("flow", "rate")) == rows
    for given in (rows, frame):
        with pytest.raises(InputError, match=r"the flows table has no column 'rates'.*rename 'rate' to 'rates'"):
            as_table(given, name="flows", columns=("rates",))
    with pytest.raises(InputError, match=r"flows must be a path, a pyarrow\.Table or a pandas DataFrame, got list"):
        as_table([1], name="flows")


def test_numbered_parts_of_any_name_are_one_table_and_anything_else_among_them_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "flows.parquet"
    folder.mkdir()
    for i in range(2):
        pq.write_table(pa.table({"flow": [f"f{i}"]}), folder / f"data_{i}.parquet")
    assert read_table(folder, name="flows")["flow"].to_pylist() == ["f0", "f1"]
    assert find_table(tmp_path, "flows") == folder
    (folder / "day=1").mkdir()
    with pytest.raises(InputError, match="day=1 is no numbered part of the flows table"):
        read_table(folder, name="flows")
    (folder / "day=1").rmdir()
    pq.write_table(pa.table({"other": [1]}), folder / "data_2.parquet")
    with pytest.raises(InputError, match="parts of the flows table have different columns"):
        read_table(folder, name="flows")


@pytest.mark.parametrize(("end", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_packed_text_is_unpacked(tmp_path: Path, end: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / f"flows.csv{end}").write_bytes(pack(b"flow,rate\na,1\n"))
    (tmp_path / f"interest.jsonl{end}").write_bytes(pack(b'{"flow": "a", "subscriber": "x"}\n'))
    assert find_table(tmp_path, "flows") == tmp_path / f"flows.csv{end}"
    assert read_table(tmp_path / f"flows.csv{end}", name="flows")["rate"].to_pylist() == [1]
    assert read_table(tmp_path / f"interest.jsonl{end}", name="interest").num_rows == 1


def test_a_quoted_empty_cell_of_a_number_column_is_null(tmp_path: Path) -> None:
    path = tmp_path / "messages.csv"
    path.write_text('year,symbol\n"1999","a"\n"",""\n2001,c\n')
    table = read_table(path, name="messages")
    assert table["year"].to_pylist() == [1999, None, 2001]
    assert table["symbol"].to_pylist() == ["a", "", "c"]
