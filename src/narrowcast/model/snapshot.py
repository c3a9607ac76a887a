"""A snapshot: the statistics as they stood at one place of the log, in a folder that needs no Spark to be read.

Whoever follows a log leaves a row of folders, `OUT/snapshot-00000012`, each there whole or not at all. The
tables have the names and columns that `narrowcast measure` gives them, and a few more for what decays:

    flows          flow, rate, size, messages, bytes       + weight, recent_rate
    interest       flow, subscriber                        + weight
    flow_profile   flow, profile, messages, bytes          + weight
    profiles       profile, text, n_subscribers
    holders        profile, subscriber
    profile_rates  profile, messages, bytes, rate, rate_bytes_s
    selectivity    profile, weight, selectivity
    overlap        profile, other, weight, share, share_of_other

`rate` is over the whole log, as `measure` has it; `recent_rate` is the decayed rate, messages a second now.
`weight` counts messages, each by its age. `manifest.json` comes last: where in the log, and when.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrowcast.errors import InputError
from narrowcast.model.interest import Interest
from narrowcast.model.tables import MANIFEST
from narrowcast.model.whole_folder import whole_folder
from narrowcast.version import __version__

TABLES: Mapping[str, tuple[str, ...]] = {
    "flows": ("flow", "rate", "size", "messages", "bytes", "weight", "recent_rate"),
    "interest": ("flow", "subscriber", "weight"),
    "flow_profile": ("flow", "profile", "messages", "bytes", "weight"),
    "profiles": ("profile", "text", "n_subscribers"),
    "holders": ("profile", "subscriber"),
    "profile_rates": ("profile", "messages", "bytes", "rate", "rate_bytes_s"),
    "selectivity": ("profile", "weight", "selectivity"),
    "overlap": ("profile", "other", "weight", "share", "share_of_other"),
}
_NAME = re.compile(r"snapshot-(\d{8,})")
_BODY = ("number", "messages", "weight", "log_seconds", "first_us", "newest_us", "half_life_s", "key", "written_at")


@dataclass(frozen=True)
class Snapshot:
    """Statistics of everything in the log up to `position` (the last entry of each shard that is in them).

    `number` orders the snapshots of one folder. `first_us` and `newest_us` are the oldest and newest times
    that messages bear, in microseconds since 1970; ages are counted from `newest_us`. `log_seconds` lies
    between them, and is None without times. `tables` are pyarrow tables by name.
    """

    number: int
    position: Mapping[int, int]
    messages: int
    weight: float
    log_seconds: float | None
    first_us: int | None
    newest_us: int | None
    half_life_s: float | None
    key: tuple[str, ...]
    tables: Mapping[str, Any]
    written_at: float = 0.0

    @property
    def flows(self) -> Any:
        return self.tables["flows"]

    @property
    def interest(self) -> Any:
        return self.tables["interest"]

    def as_interest(self, *, recent: bool = True, least_weight: float = 0.0) -> Interest:
        """Who wants which flow, with the rates of now (or of the whole log): what planners of channels take.

        Pairs that weigh no more than `least_weight` are left out, once it is above 0.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        pairs, flows = self.interest, self.flows
        if least_weight > 0:
            pairs = pairs.filter(pc.greater(pairs["weight"], least_weight))
        names = flows["flow"].cast(pa.string()).combine_chunks()
        users = pairs["subscriber"].cast(pa.string()).combine_chunks().unique().sort()
        return Interest.from_pairs(
            pc.index_in(pairs["flow"].cast(pa.string()), value_set=names).to_numpy(),
            pc.index_in(pairs["subscriber"].cast(pa.string()), value_set=users).to_numpy(),
            flows["recent_rate" if recent else "rate"].to_numpy(),
            flow_names=names.to_pylist(),
            user_names=users.to_pylist(),
        )


def folder_of(out: str | Path, number: int) -> Path:
    """Where a snapshot stands.

    >>> str(folder_of("out", 12))
    'out/snapshot-00000012'
    """
    return Path(out) / f"snapshot-{number:08d}"


def save(snapshot: Snapshot, out: str | Path, *, keep: int = 5) -> Path:
    """Write a snapshot into the folder `out`, whole or not at all; all but the last `keep` are removed."""
    import pyarrow.parquet as pq

    place = folder_of(out, snapshot.number)
    with whole_folder(place, marker=MANIFEST, overwrite=True) as half:
        for name, columns in TABLES.items():
            pq.write_table(snapshot.tables[name].select(list(columns)), half / f"{name}.parquet", compression="zstd")
        rows = {name: snapshot.tables[name].num_rows for name in TABLES}
        body = {name: getattr(snapshot, name) for name in _BODY} | {"written_at": snapshot.written_at or time.time()}
        position = {str(shard): at for shard, at in sorted(snapshot.position.items())}
        whole = {"narrowcast": __version__, "tables": rows, "position": position} | body
        (half / MANIFEST).write_text(json.dumps(whole, indent=2, sort_keys=True, allow_nan=False) + "\n")
    for number in numbers(out)[: -max(keep, 1)]:
        shutil.rmtree(folder_of(out, number), ignore_errors=True)
    return place


def load(folder: str | Path) -> Snapshot:
    """Read one snapshot; a folder that is none is refused with one line."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = Path(folder)
    try:
        body = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
        tables = {name: pq.read_table(source / f"{name}.parquet", partitioning=None) for name in TABLES}
        plain = {name: body[name] for name in _BODY} | {"key": tuple(body["key"])}
    except (OSError, ValueError, KeyError, pa.ArrowInvalid) as error:
        raise InputError(f"{source}: no complete snapshot here: {error}", name="snapshot", got=str(source)) from None
    return Snapshot(position={int(shard): at for shard, at in body["position"].items()}, tables=tables, **plain)


def numbers(out: str | Path) -> list[int]:
    """The numbers of the complete snapshots in a folder, ascending."""
    if not Path(out).is_dir():
        return []
    found = [match for path in Path(out).iterdir() if (match := _NAME.fullmatch(path.name))]
    return sorted(int(match[1]) for match in found if (Path(out) / match[0] / MANIFEST).is_file())


def latest(out: str | Path, *, after: int = -1) -> Snapshot | None:
    """The newest snapshot in a folder, if there is one with a number above `after`.

    Should it be removed while it is read, by a writer that is far ahead, the next one is taken.
    """
    for _ in range(10):
        found = numbers(out)
        if not found or found[-1] <= after:
            return None
        try:
            return load(folder_of(out, found[-1]))
        except InputError:
            if numbers(out)[-1:] == found[-1:]:
                raise
    return None
