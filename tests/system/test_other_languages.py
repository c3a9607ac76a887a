"""A client in another language, written from docs/wire.md: Node reads what Python published, dicts and columns."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import narrowcast as nc
from narrowcast.deliver.processes.backbone import url_of
from narrowcast.deliver.wire import bare_of, index_of, sequence_of

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "examples" / "node"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("node")
    for name in ("narrowcast.mjs", "package.json"):
        shutil.copy(CLIENT / name, folder)
    made = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"npm could not install nats and apache-arrow: {made.stderr.strip()[-200:]}")
    return folder / "narrowcast.mjs"


def run_node(*arguments: str) -> list[Any]:
    done = subprocess.run(["node", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_node_decodes_every_vector_of_the_page(client: Path, tmp_path: Path) -> None:
    text = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "wire.md").read_text(), re.S)[-1]
    (tmp_path / "vectors.json").write_text(text)
    found = run_node(str(client), "--vectors", str(tmp_path / "vectors.json"))
    assert found == [{"name": each["name"], "found": each["found"]} for each in json.loads(text)]


def plain(value: Any) -> Any:
    """A value as the Node client prints it."""
    if isinstance(value, datetime):
        return {"time": round(value.timestamp() * 1e6)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    return {name: plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def test_node_and_python_read_the_same_subscription(client: Path, tmp_path: Path) -> None:
    noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    rows = [{"s": "ab"[k % 2], "p": k % 7, "n": k, "t": noon, "d": Decimal("1.50")} for k in range(400)]
    table = pa.Table.from_pylist(rows[200:])
    assert table.schema.field("p").type == pa.int64()
    table = table.set_column(1, "p", table["p"].cast(pa.int8()))
    with nc.up(system=tmp_path / "data", multicast=False) as system, system.connect() as connection:
        connection.publish(rows[:200])
        connection.publish(table)
        got: list[Any] = []
        types = set()
        for batch in connection.subscribe("s = 'a' AND p > 3", from_start=True, timeout=10):
            places = [[bare_of(sequence_of(at)), index_of(at)] for at in batch.places]
            got += [[*at, plain(row)] for at, row in zip(places, batch, strict=True)]
            types.add(batch.arrow().schema.field("p").type)
            wanted = [row for row in rows if row["s"] == "a" and row["p"] > 3]
            if len(got) >= len(wanted):
                break
        url = url_of(tmp_path / "data")
        found = run_node(str(client), url, "m => m.s === 'a' && m.p > 3", "--count", str(len(wanted)))
    assert [row for _, _, row in got] == [plain(row) for row in wanted]
    assert found == got
    assert types == {pa.int64(), pa.int8()}  # columns keep their types
