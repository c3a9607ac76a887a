"""A plan on disk: a folder with `plan.json` beside Parquet tables, complete or not there at all."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from narrowcast.errors import InputError
from narrowcast.model.plan import Tables
from narrowcast.model.whole_folder import whole_folder
from narrowcast.version import __version__

FORMAT = 2  # 1 had no key
HEAD = "plan.json"


def fingerprint(path: str | Path) -> str:
    """The SHA-256 of a file, or of all files of a folder in the order of their names."""
    source = Path(path)
    digest = hashlib.sha256()
    for part in sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]:
        with part.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def write_tables(plan: Tables, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write the plan whole or not at all, so that a half-written plan is never read."""
    import pyarrow.parquet as pq

    with whole_folder(folder, marker=HEAD, overwrite=overwrite) as half:
        digests = {}
        for name, table in plan.tables.items():
            pq.write_table(table, half / f"{name}.parquet")
            digests[name] = fingerprint(half / f"{name}.parquet")
        head = {"format": FORMAT, "narrowcast": __version__, "kind": plan.kind, "seed": plan.seed}
        head |= {"key": list(plan.key)}
        body = {name: getattr(plan, name) for name in _BODY}
        text = json.dumps(head | body | {"tables": digests}, indent=2, allow_nan=False, default=plain)
        (half / HEAD).write_text(text + "\n", encoding="utf-8")
    return Path(folder)


_BODY = ("parameters", "inputs", "cost", "baselines", "lower_bound", "gap", "checks")


def read_tables(folder: str | Path) -> Tables:
    """Read a plan's folder; one that is damaged, incomplete or from a newer narrowcast is refused with one line."""
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
            tables[name].validate(full=True)  # text may not be Unicode
            tables[name].column_names  # noqa: B018 - nor names
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}", name="plan") from None
    body = {name: head[name] for name in _BODY}
    return Tables(kind=head["kind"], tables=tables, seed=head["seed"], key=tuple(head.get("key", ())), **body)


def plan_key(folder: str | Path) -> tuple[str, ...]:
    """The attributes that make a flow, as a plan's folder says; nothing else of it is read."""
    return tuple(_head(Path(folder)).get("key", ()))


def schema() -> dict[str, Any]:
    """The JSON schema of `plan.json` in this format.

    >>> schema()["title"]
    'narrowcast plan, format 2'
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
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise InputError(f"{source}/plan.json is damaged: {error}", name="plan", got=str(source)) from None
    if written > FORMAT:
        raise InputError(
            f"{source}: plan format must be at most {FORMAT}, got {written} of narrowcast {head.get('narrowcast')}",
            name="plan",
            hint="upgrade narrowcast",
        )
    for name, types in _TYPES.items():
        if name not in head:
            raise InputError(f"{source}/plan.json is damaged: it has no {name!r}", name="plan", got=str(source))
        if not isinstance(head[name], types) or isinstance(head[name], bool):
            found = type(head[name]).__name__
            raise InputError(f"{source}/plan.json is damaged: its {name} is of type {found}", name="plan")
    if not isinstance(head.get("key", []), list) or not all(isinstance(name, str) for name in head.get("key", [])):
        raise InputError(f"{source}/plan.json is damaged: its key is {head['key']!r}", name="plan")
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
