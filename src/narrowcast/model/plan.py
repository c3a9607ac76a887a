"""A plan on disk: a folder with `plan.json` beside Parquet tables, complete or not there at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from narrowcast.errors import InputError
from narrowcast.model.whole_folder import whole_folder
from narrowcast.version import __version__

FORMAT = 1
HEAD = "plan.json"

# The tables a plan of each kind has, with their columns: what was decided, and the demand it was decided for,
# so that a plan can be checked, explained and moved from with nothing else at hand.
TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "channels": {
        "flow_session": ("flow", "session"),
        "session_group": ("session", "group"),
        "subscriber_group": ("subscriber", "group"),
        "flows": ("flow", "rate"),
        "interest": ("flow", "subscriber"),
    },
    "hybrid": {
        "flow_session": ("flow", "session"),
        "session_group": ("session", "group"),
        "subscriber_group": ("subscriber", "group"),
        "unicast": ("flow", "subscriber"),
        "flows": ("flow", "rate"),
        "interest": ("flow", "subscriber"),
    },
    "filters": {"trees": ("node", "parent", "flow", "load"), "filters": ("node",)},
    "queries": {
        "queries": ("query", "dimension", "low", "high"),
        "merges": ("query", "set"),
        "channels": ("set", "piece", "dimension", "low", "high"),
    },
    "semantic": {
        "channels": ("channel", "expression", "rendezvous", "rate", "kind", "content"),
        "channel_members": ("channel", "gateway", "core"),
        "trees": ("channel", "u", "v"),
        "contents": ("part", "operation", "operands"),
        "profiles": ("profile", "text"),
        "clients": ("client", "profile", "gateway", "latency_bound"),
        "topology": ("u", "v", "cost", "delay"),
        "nodes": ("node", "role"),
        "window": ("profiles", "source", "weight", "channels"),
        "sample": ("_broker", "_channels"),
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
        text = json.dumps(head | body | {"tables": digests}, indent=2, allow_nan=False, default=plain)
        (half / HEAD).write_text(text + "\n", encoding="utf-8")
    return Path(folder)


_BODY = ("parameters", "inputs", "cost", "baselines", "lower_bound", "gap", "checks")


def load(folder: str | Path) -> Plan:
    """Read a plan; one that is damaged, incomplete or from a newer narrowcast is refused with one line."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = Path(folder)
    head = _head(source)
    tables = {}
    for name, digest in head["tables"].items():
        path = source / f"{name}.parquet"
        if not path.is_file() or fingerprint(path) != digest:
            state = "was changed after the plan was written" if path.is_file() else "is missing"
            raise InputError(f"{path} {state}", name="plan", got=str(path), hint="plan again")
        try:
            tables[name] = pq.read_table(path, partitioning=None)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}", name="plan") from None
    return Plan(kind=head["kind"], tables=tables, seed=head["seed"], **{name: head[name] for name in _BODY})


def schema() -> dict[str, Any]:
    """The JSON schema of `plan.json` in this format.

    >>> schema()["title"]
    'narrowcast plan, format 1'
    """
    text = files("narrowcast.model").joinpath(f"plan-{FORMAT}.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _head(source: Path) -> dict[str, Any]:
    """What stands in `plan.json`, every field there and of its type: as the schema has it."""
    if not (source / HEAD).is_file():
        raise InputError(f"{source}: no plan here (no plan.json in it)", name="plan", got=str(source))
    try:
        head = json.loads((source / HEAD).read_text(encoding="utf-8"))
        written = int(head["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{source}/plan.json is damaged: {error}", name="plan", got=str(source)) from None
    if written > FORMAT:
        raise InputError(
            f"{source}: written by narrowcast {head.get('narrowcast')} in plan format {written}; this reads {FORMAT}",
            name="plan",
            hint="upgrade narrowcast",
        )
    for name, types in _TYPES.items():
        if name not in head:
            raise InputError(f"{source}/plan.json is damaged: it has no {name!r}", name="plan", got=str(source))
        if not isinstance(head[name], types) or isinstance(head[name], bool):
            found = type(head[name]).__name__
            raise InputError(f"{source}/plan.json is damaged: its {name} is of type {found}", name="plan")
    for name in ("tables", "inputs", "cost"):
        wanted = (int, float) if name == "cost" else (str,)
        for key, value in head[name].items():
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise InputError(f"{source}/plan.json is damaged: its {name} has {key}: {value!r}", name="plan")
    return dict(head)


_TYPES: dict[str, tuple[type, ...]] = {
    "format": (int,),
    "narrowcast": (str,),
    "kind": (str,),
    "seed": (int,),
    "parameters": (dict,),
    "inputs": (dict,),
    "cost": (dict,),
    "baselines": (dict,),
    "lower_bound": (int, float, type(None)),
    "gap": (int, float, type(None)),
    "checks": (dict,),
    "tables": (dict,),
}


def plain(value: Any) -> Any:
    """What JSON has no word for: NumPy's numbers and arrays, paths."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
