"""Text tables in another encoding, or with other separators: one line that says what to do, and doing it helps."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from narrowcast import cli
from narrowcast.data.ingest.find import find_inputs
from narrowcast.errors import InputError
from narrowcast.model.tables import read_table

ROWS = "site,kind\ntromsø,wind\nbergen,rain\n"


def refused(path: Path) -> str:
    with pytest.raises(InputError) as told:
        read_table(path, name="messages")
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize(
    ("data", "says", "with_what"),
    [
        (ROWS.encode("latin-1"), "must be UTF-8, got another encoding in line 2", "iconv -f ISO-8859-1"),
        (ROWS.encode("utf-16"), "must be UTF-8, got another encoding in line 1", "iconv -f UTF-16"),
        (ROWS.replace(",", ";").encode(), "must be separated by commas, got semicolons", "delimiter=';'"),
        (ROWS.replace(",", "\t").encode(), "must be separated by commas, got tabs", r"delimiter='\t'"),
    ],
    ids=["latin-1", "utf-16", "semicolons", "tabs"],
)
def test_what_the_line_says_to_do_makes_the_table_readable(
    tmp_path: Path, data: bytes, says: str, with_what: str
) -> None:
    path = tmp_path / "messages.csv"
    path.write_bytes(data)
    line = refused(path)
    assert says in line
    assert with_what in line
    command, out = re.search(r"convert it: (.* > (\S+))\)$", line).groups()
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert read_table(tmp_path / out, name="messages")["site"].to_pylist() == ["tromsø", "bergen"]


def test_measure_says_it_before_it_starts_spark(tmp_path: Path, capsys) -> None:
    (tmp_path / "messages.csv").write_bytes(ROWS.encode("latin-1"))
    (tmp_path / "subscriptions.csv").write_text("subscriber,profile\nann,kind = 'wind'\n")
    assert cli.run(["measure", str(tmp_path), "--out", str(tmp_path / "out"), "--key", "site"]) == 2
    assert "must be UTF-8" in capsys.readouterr().err


def test_a_character_across_two_pieces_a_mark_at_the_start_and_packed_files_are_no_trouble(tmp_path: Path) -> None:
    long = "site\n" + "x" * ((1 << 20) - 6) + "ø\n"
    assert long.encode().index("ø".encode()) == (1 << 20) - 1
    (tmp_path / "a.csv").write_text(long)
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbf" + ROWS.encode())
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(ROWS.encode()))
    assert [read_table(tmp_path / name, name="messages").num_rows for name in ("a.csv", "b.csv", "c.csv.gz")] == [
        1,
        2,
        2,
    ]
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(ROWS.encode("latin-1")))
    assert "unpack and convert it" in refused(tmp_path / "d.csv.gz")


def test_semicolons_inside_cells_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("flow,rate\na;b,3\n")
    assert find_inputs(tmp_path) == {"flows": tmp_path / "flows.csv"}
