"""What measuring messages writes, by its definition, in plain Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import narrowcast as nc


def matches(profiles: list[nc.Profile], table: pa.Table) -> list[tuple[int, ...]]:
    return [tuple(i for i, p in enumerate(profiles) if p.matches(m)) for m in table.to_pylist()]


def measured(folder: Path, profiles: list[nc.Profile], table: pa.Table) -> Path:
    """The tables that measuring would write, by their definitions, without decay."""
    texts = sorted({str(profile) for profile in profiles})
    distinct = [nc.Profile.parse(text) for text in texts]
    sets = Counter(found for found in matches(distinct, table) if found)
    own = Counter(p for found, n in sets.items() for p in found for _ in range(n))
    both = Counter((p, q) for found, n in sets.items() for p in found for q in found if p < q for _ in range(n))
    n = len(texts)
    weight = [float(own[i]) for i in range(n)]
    tables = {
        "profiles": {"profile": list(range(n)), "text": texts},
        "selectivity": {
            "profile": list(range(n)),
            "weight": weight,
            "selectivity": [w / max(1, table.num_rows) for w in weight],
        },
        "overlap": {
            "profile": pa.array([p for p, _ in both], pa.int64()),
            "other": pa.array([q for _, q in both], pa.int64()),
            "weight": pa.array([float(w) for w in both.values()], pa.float64()),
        },
        "classes": {
            "flow": pa.array([f"class{i}" for i in range(len(sets))], pa.string()),
            "profiles": pa.array([list(found) for found in sets], pa.list_(pa.int32())),
        },
        "flows": {
            "flow": pa.array([f"class{i}" for i in range(len(sets))], pa.string()),
            "messages": pa.array(list(sets.values()), pa.int64()),
        },
    }
    folder.mkdir()
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder
