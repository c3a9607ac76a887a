"""Writing a workload's tables into a folder that is either complete or not there."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from narrowcast.model.tables import MANIFEST, key_in
from narrowcast.model.whole_folder import whole_folder
from narrowcast.workloads.checks import choice, share, whole
from narrowcast.workloads.tables.commuter import commuter_tables
from narrowcast.workloads.tables.market import market_tables
from narrowcast.workloads.tables.network import network_tables
from narrowcast.workloads.tables.places import overlay_tables, rectangles_tables, tree_demand_tables
from narrowcast.workloads.tables.plant import Planted, Planter
from narrowcast.workloads.tables.sink import open_sink
from narrowcast.workloads.tables.source import TableSource
from narrowcast.workloads.tables.topics import mechanical_tables, random_tables

TABLES: dict[str, Callable[..., list[TableSource]]] = {
    "market": market_tables,
    "random": random_tables,
    "mechanical": mechanical_tables,
    "tree_demand": tree_demand_tables,
    "overlay": overlay_tables,
    "rectangles": rectangles_tables,
    "commuter": commuter_tables,
    "network": network_tables,
}
FORMATS = ("parquet", "csv", "jsonl")
HEAD = "workload.json"
PLANTED = "planted.jsonl"

#: Told (table, rows written so far, rows expected or None) after every batch.
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table on disk: `rows` data rows in all, `planted` of them bad."""

    path: Path
    rows: int
    planted: int


def write(
    kind: str,
    out_dir: str | os.PathLike[str],
    *,
    messages: int | None = None,
    users: int | None = None,
    format: str = "parquet",
    seed: int = 0,
    bad_rows: float = 0.0,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, WrittenTable]:
    """Write the full tables of a workload: subscriptions with profiles, a message log sorted by `ts`, and the rest.

    | kind | tables |
    |---|---|
    | market | subscriptions, messages, flows, interest, topology, nodes |
    | random, mechanical | subscriptions, messages, flows, interest |
    | tree_demand | subscriptions, messages, tree, demand |
    | overlay | subscriptions, messages, topology, nodes |
    | rectangles | queries, subscriptions, messages |
    | network | sites, hosts, topology, nodes, sources, subscriptions, messages, flows, interest |

    Any size: messages are made and written in batches of 131,072, so memory does not grow with them.
    Everything else the workload's generator takes may be given as an option (`symbols=…`, `model=…`).
    Tables go to a temporary folder beside `out_dir` that is renamed when complete, with a `workload.json`
    that says how they were made and a `manifest.json` with the flow key: the attributes of a message that make
    its flow, none for workloads without flows; Parquet says it in the metadata of flows too. A folder with
    something in it is refused; `overwrite` replaces it, but only if it holds a workload. Same arguments, same rows.

    `bad_rows` adds that share of bad rows to every table, of each kind in turn, for testing quarantine:
    the good rows stay exactly as without it, and `planted.jsonl` lists table, file,
    row (counted from 1) and kind of each bad one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write("mechanical", f"{folder}/cell", messages=1000, users=20, topics=50)
    >>> {name: table.rows for name, table in made.items()}["messages"]
    1000
    """
    choice("kind", kind, TABLES)
    choice("format", format, FORMATS)
    share("bad_rows", bad_rows)
    whole("seed", seed)
    arguments = _arguments(kind, options, messages=messages, users=users, seed=seed)
    out = Path(out_dir)
    with whole_folder(out, marker=HEAD, overwrite=overwrite) as partial:
        made, planted = {}, []
        sources = TABLES[kind](**arguments)
        for source in sources:
            made[source.name], bad = _write_table(source, partial, format, bad_rows, seed, progress)
            planted += bad
        if bad_rows:
            lines = (json.dumps(asdict(p)) + "\n" for p in planted)
            (partial / PLANTED).write_text("".join(lines), encoding="utf-8")
        _write_head(partial, kind, format, bad_rows, arguments, made)
        _write_manifest(partial, sources)
    return {name: WrittenTable(out / table.path.name, table.rows, table.planted) for name, table in made.items()}


def _arguments(kind: str, options: dict[str, Any], **common: int | None) -> dict[str, Any]:
    allowed = inspect.signature(TABLES[kind]).parameters
    for name in options:
        choice(f"option of {kind}", name, allowed)
    if common["messages"] is not None:
        whole("messages", common["messages"])
    return {name: value for name, value in common.items() if value is not None} | options


def _write_table(
    source: TableSource, folder: Path, format: str, bad_rows: float, seed: int, progress: Progress | None
) -> tuple[WrittenTable, list[Planted]]:
    path = folder / f"{source.name}.{format}"
    sink = open_sink(path, source.schema, planting=bad_rows > 0)
    planter = Planter(source, path.name, bad_rows, seed, typed=sink.typed)
    try:
        for batch in source.batches():
            sink.write(batch, planter.inserts(batch))
            if progress is not None:
                progress(source.name, planter.good, source.rows)
    finally:
        sink.close()
    n_bad = len(planter.planted)
    return WrittenTable(path, planter.good + n_bad, n_bad), planter.planted


def _write_head(
    folder: Path, kind: str, format: str, bad_rows: float, arguments: dict[str, Any], made: dict[str, WrittenTable]
) -> None:
    content = {
        "kind": kind,
        "format": format,
        "arguments": arguments,
        "bad_rows": bad_rows,
        "tables": {n: {"file": t.path.name, "rows": t.rows, "planted": t.planted} for n, t in made.items()},
    }
    (folder / HEAD).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _write_manifest(folder: Path, sources: Sequence[TableSource]) -> None:
    """Which attributes of a message make its flow, for formats that cannot say it themselves."""
    keys = (key_in(source.schema) for source in sources)
    content = {"key": next((key for key in keys if key is not None), ())}
    (folder / MANIFEST).write_text(json.dumps(content) + "\n", encoding="utf-8")
