"""A plan on disk: a folder with `plan.json` beside Parquet tables, complete or not there at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrowcast.errors import InputError
from narrowcast.model.whole_folder import whole_folder
from narrowcast.version import __version__

FORMAT = 1
HEAD = "plan.json"

# The tables a plan of each kind has, with their columns.
TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "channels": {
        "flow_session": ("flow", "session"),
        "session_group": ("session", "group"),
        "subscriber_group": ("subscriber", "group"),
    },
    "hybrid": {
        "flow_session": ("flow", "session"),
        "session_group": ("session", "group"),
        "subscriber_group": ("subscriber", "group"),
        "unicast": ("flow", "subscriber"),
    },
    "filters": {"trees": ("node", "parent", "flow", "load"), "filters": ("node",)},
    "queries": {
        "queries": ("query", "dimension", "low", "high"),
        "merges": ("query", "set"),
        "channels": ("set", "piece", "dimension", "low", "high"),
    },
    "semantic": {
        "channels": ("channel", "expression", "rendezvous", "rate"),
        "channel_members": ("channel", "gateway"),
        "trees": ("channel", "u", "v"),
    },
}


@dataclass(frozen=True)
class Plan:
    """What a planner decided, with all that is needed to judge it.

    `cost` holds the terms of the cost and their `total`; `baselines` the cost of doing it otherwise;
    `inputs` a fingerprint of each input table; `checks` what the soundness check found.
    """

    kind: str
    tables: Mapping[str, Any]
    cost: Mapping[str, float]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    baselines: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)
    lower_bound: float | None = None
    gap: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        expected = TABLES.get(self.kind)
        if expected is None:
            raise InputError(f"no plan of kind {self.kind!r}; kinds: {', '.join(TABLES)}", name="kind", got=self.kind)
        if set(self.tables) != set(expected):
            raise InputError(f"a {self.kind} plan has the tables {', '.join(expected)}, not {', '.join(self.tables)}")
        for name, columns in expected.items():
            missing = [c for c in columns if c not in self.tables[name].column_names]
            if missing:
                raise InputError(f"table {name} of a {self.kind} plan lacks column {missing[0]!r}", name=name)


def fingerprint(path: str | Path) -> str:
    """The SHA-256 of a file, or of all files of a folder in the order of their names."""
    source = Path(path)
    digest = hashlib.sha256()
    for part in sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]:
        with part.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def save(plan: Plan, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write the plan whole or not at all, so that a half-written plan is never read."""
    import pyarrow.parquet as pq

    with whole_folder(folder, marker=HEAD, overwrite=overwrite) as half:
        digests = {}
        for name, table in plan.tables.items():
            pq.write_table(table, half / f"{name}.parquet")
            digests[name] = fingerprint(half / f"{name}.parquet")
        head = {"format": FORMAT, "narrowcast": __version__, "kind": plan.kind, "seed": plan.seed}
        body = {name: getattr(plan, name) for name in _BODY}
        text = json.dumps(head | body | {"tables": digests}, indent=2, allow_nan=False, default=_plain)
        (half / HEAD).write_text(text + "\n", encoding="utf-8")
    return Path(folder)


_BODY = ("parameters", "inputs", "cost", "baselines", "lower_bound", "gap", "checks")


def load(folder: str | Path) -> Plan:
    """Read a plan; one that is damaged, incomplete or from a newer narrowcast is refused with one line."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = Path(folder)
    if not (source / HEAD).is_file():
        raise InputError(f"{source}: no plan here (no plan.json in it)", name="plan", got=str(source))
    try:
        head = json.loads((source / HEAD).read_text(encoding="utf-8"))
        written, kind, digests = int(head["format"]), str(head["kind"]), dict(head["tables"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{source}/plan.json is damaged: {error}", name="plan", got=str(source)) from None
    if written > FORMAT:
        raise InputError(
            f"{source}: written by narrowcast {head.get('narrowcast')} in plan format {written}; this reads {FORMAT}",
            name="plan",
            hint="upgrade narrowcast",
        )
    tables = {}
    for name, digest in digests.items():
        path = source / f"{name}.parquet"
        if not path.is_file() or fingerprint(path) != digest:
            state = "was changed after the plan was written" if path.is_file() else "is missing"
            raise InputError(f"{path} {state}", name="plan", got=str(path), hint="plan again")
        try:
            tables[name] = pq.read_table(path, partitioning=None)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}", name="plan") from None
    try:
        return Plan(kind=kind, tables=tables, seed=int(head["seed"]), **{name: head[name] for name in _BODY})
    except KeyError as error:
        raise InputError(f"{source}/plan.json is damaged: it has no {error}", name="plan") from None


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
