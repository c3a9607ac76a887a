"""Whether a snapshot says what `measure` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from narrowcast.model.snapshot import Snapshot

TABLES = ("profiles", "holders", "profile_rates", "selectivity", "overlap", "flows", "flow_profile", "interest")


def assert_same(found: Snapshot, measured: Path) -> None:
    """The same rows in the same order, counts and bytes exactly.

    Weights agree to 1e-9 of the weight of everything, and what is a share of a profile's weight as well as that allows:
    both sides round each message's weight to 2⁻³⁰.
    """
    own = np.maximum(found.tables["selectivity"]["weight"].to_numpy(), 1e-300)
    fine = 1e-9 * found.weight
    for name in TABLES:
        want = pq.read_table(measured / f"{name}.parquet")
        got = found.tables[name]
        assert got.num_rows == want.num_rows > 0, name
        slack: dict[str, Any] = {"weight": fine}
        if name == "overlap":
            slack |= {"share": fine / own[want["profile"].to_numpy()]}
            slack |= {"share_of_other": fine / own[want["other"].to_numpy()]}
        for column in want.column_names:
            a, b = (table[column].to_pandas().to_numpy() for table in (got, want))
            if a.dtype.kind != "f":
                assert a.tolist() == b.tolist(), f"{name}.{column}"
            elif column == "bytes":
                assert np.array_equal(a, b), f"{name}.{column}"
            else:
                assert np.all(np.abs(a - b) <= 1e-9 * np.abs(b) + slack.get(column, 1e-9)), f"{name}.{column}"
