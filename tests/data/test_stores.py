"""Results on an object store: complete with their manifest, or not there; nothing is started that cannot end well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.data.s3_server import ObjectStore, serving
from tests.data.test_commands import narrowcast

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.model.intake import read_measured
from narrowcast.model.quarantine import Quarantine
from narrowcast.model.stores import HALF, StorePlace, destination, whole_copy

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with serving() as running:
        for name, value in running.settings.items():
            monkeypatch.setenv(name, value)
        yield running


def put(url: str, files: dict[str, bytes], *, overwrite: bool = False) -> None:
    with destination(url, overwrite=overwrite) as (half, _):
        half.mkdir()
        for name, content in files.items():
            (half / name).parent.mkdir(exist_ok=True)
            (half / name).write_bytes(content)


TABLES = {"manifest.json": b"{}", "flows.parquet": b"flows" * 10, "channel-1/part-0.parquet": b"rows"}


def test_data_is_put_first_and_the_manifest_last(store: ObjectStore) -> None:
    put("s3a://shop/day/measured", TABLES)
    written = dict.fromkeys(key for how, key in store.asked if how in ("PUT", "POST") and not key.endswith("/"))
    assert [key.removeprefix("shop/day/measured/") for key in written] == [
        HALF,
        "channel-1/part-0.parquet",
        "flows.parquet",
        "manifest.json",
    ]
    assert {key.removeprefix("shop/day/measured/") for key in store.files} == TABLES.keys()


def test_a_large_file_arrives_whole(store: ObjectStore) -> None:
    large = bytes(range(256)) * 50_000
    put("s3://shop/out", TABLES | {"overlap.parquet": large})
    assert store.objects["shop/out/overlap.parquet"] == large


def test_a_result_is_replaced_only_when_told_and_leaves_nothing_of_the_old(store: ObjectStore) -> None:
    put("s3://shop/out", TABLES | {"classes.parquet": b"old"})
    with pytest.raises(InputError, match="s3://shop/out already exists"):
        put("s3://shop/out", TABLES)
    put("s3://shop/out", TABLES | {"flows.parquet": b"new"}, overwrite=True)
    assert store.objects["shop/out/flows.parquet"] == b"new"
    assert "shop/out/classes.parquet" not in store.objects


def test_what_somebody_else_put_there_stays(store: ObjectStore) -> None:
    store.objects["shop/out/holiday.jpg"] = b"sea"
    with pytest.raises(InputError, match=r"has no manifest\.json, so it will not be overwritten"):
        put("s3://shop/out", TABLES, overwrite=True)
    assert store.files == {"shop/out/holiday.jpg": b"sea"}


@pytest.mark.parametrize("refused", ["flows.parquet", "manifest.json"])
def test_a_store_that_refuses_in_the_middle_is_left_as_before(store: ObjectStore, refused: str) -> None:
    store.fail = {f"shop/out/{refused}"}
    with pytest.raises(InputError, match="out cannot be reached: s3://shop/out"):
        put("s3://shop/out", TABLES)
    assert store.files == {}
    store.fail = set()
    put("s3://shop/out", TABLES)
    assert store.files.keys() == {f"shop/out/{name}" for name in TABLES}


def test_a_failure_before_anything_is_put_keeps_the_earlier_result(store: ObjectStore) -> None:
    put("s3://shop/out", TABLES)
    before = store.files
    with pytest.raises(KeyboardInterrupt), destination("s3://shop/out", overwrite=True):
        raise KeyboardInterrupt
    assert store.files == before


def test_what_a_killed_run_left_is_no_result_and_is_replaced(store: ObjectStore, tmp_path: Path) -> None:
    store.objects |= {f"shop/out/{HALF}": b"{}", "shop/out/flows.parquet": b"half", "shop/out/old.parquet": b"x"}
    with pytest.raises(InputError, match="no complete result here"):
        whole_copy("s3://shop/out", tmp_path, "demand")
    put("s3://shop/out", TABLES)
    assert store.files.keys() == {f"shop/out/{name}" for name in TABLES}


def test_a_reader_refuses_files_of_another_run(store: ObjectStore, tmp_path: Path) -> None:
    put("s3://shop/out", TABLES)
    store.objects["shop/out/flows.parquet"] += b"more"
    with pytest.raises(InputError, match=r"flows\.parquet is not the file that its manifest\.json tells of"):
        whole_copy("s3://shop/out", tmp_path, "demand")


def test_places_that_cannot_be_written_are_refused_by_name(store: ObjectStore) -> None:
    with (
        pytest.raises(InputError, match=r"out cannot be reached: s3://nobody/out: .*BUCKET"),
        destination("s3://nobody/out"),
    ):
        pass
    with pytest.raises(InputError, match="out must be a folder, or a URL of s3, s3a"), destination("ftp://host/out"):
        pass
    store.objects["shop/file"] = b"x"
    with pytest.raises(InputError, match="out must be a folder, got a file"), destination("s3://shop/file"):
        pass


def test_a_file_system_with_folders_gets_them(tmp_path: Path) -> None:
    from pyarrow import fs

    from narrowcast.model import stores

    store = StorePlace("hdfs://name/out", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "out", "out")
    stores._claim(store, overwrite=False)
    half = tmp_path / "half"
    (half / "channel-1").mkdir(parents=True)
    for name, content in TABLES.items():
        (half / name).write_bytes(content)
    stores._put_all(half, store)
    assert store.files().keys() == TABLES.keys()


@pytest.fixture
def market(tmp_path: Path) -> Path:
    nc.workloads.write("market", tmp_path / "market", messages=600, users=20, symbols=60, seed=6)
    for name in ("flows", "interest", "topology", "nodes"):
        (tmp_path / "market" / f"{name}.parquet").unlink()
    return tmp_path / "market"


@pytest.mark.slow
def test_nothing_is_started_for_a_place_that_cannot_be_written(store: ObjectStore, market: Path) -> None:
    (market.parent / "there").mkdir()
    (market.parent / "there" / "note.txt").write_text("mine")
    # A master that no Spark could start at: nobody comes as far.
    for out, why in (
        ("s3://nobody/out", "out cannot be reached: s3://nobody/out"),
        (market.parent / "there", "no manifest.json"),
    ):
        done = narrowcast("measure", market, "--out", out, "--master", "nonsense://")
        assert (done.returncode, done.stdout) == (2, "")
        assert why in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.spark
def test_a_market_on_a_store_is_measured_onto_it_as_on_disk(
    spark: Any, store: ObjectStore, market: Path, tmp_path: Path
) -> None:
    for path in sorted(market.iterdir()):
        store.objects[f"shop/market/{path.name}"] = path.read_bytes()
    here = nc.measure(market / "messages.parquet", market / "subscriptions.parquet", out=tmp_path / "here", spark=spark)
    there = nc.measure(
        "s3a://shop/market/messages.parquet",
        "s3://shop/market/subscriptions.parquet",
        out="s3a://shop/out",
        spark=spark,
    )
    assert there.key == here.key or not there.key
    names = sorted(path.name for path in (tmp_path / "here").glob("*.parquet"))
    assert len(names) >= 9
    differ = [n for n in names if store.objects.get(f"shop/out/{n}") != (tmp_path / "here" / n).read_bytes()]
    assert differ == []
    assert json.loads(store.objects["shop/out/manifest.json"])["sizes_bytes"].keys() == {*names}
    read = read_measured("s3://shop/out", Quarantine(strict=True))
    assert read.interest.n_flows == here.interest.n_flows


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_commands_read_and_write_stores(store: ObjectStore, market: Path) -> None:
    for path in sorted(market.iterdir()):
        store.objects[f"shop/market/{path.name}"] = path.read_bytes()
    store.objects["shop/market/notes.txt"] = b"not a table"
    del store.objects["shop/market/subscriptions.parquet"]
    store.objects["shop/market/subscriptions.csv"] = b"subscriber,profile\nann,price > 10\nbob,price >\n"
    done = narrowcast("measure", "s3a://shop/market", "--out", "s3a://shop/out", "--master", "local[1]", "--json")
    assert done.returncode == 0, done.stderr
    assert "measure ignores notes.txt" in done.stderr
    said = json.loads(done.stdout)
    assert said["folder"] == "s3a://shop/out"
    assert [row["file"] for row in said["bad_rows"]] == ["s3a://shop/market/subscriptions.csv"]
    assert f"shop/out/{HALF}" not in store.objects
    assert "shop/out/manifest.json" in store.objects
    done = narrowcast("plan", "channels", "s3://shop/out", "--groups", "3", "--json")
    assert done.returncode == 0, done.stderr
