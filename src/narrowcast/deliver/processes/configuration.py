"""The configuration of a process, from a TOML file: all that is wrong with it is said at once.

nats = "nats://10.0.0.1:4222"      # or the path of a file that holds the URL
[multicast]                        # leave out where there is none
interface = "eth0"
[overlay.brokers]
b1 = "tcp://10.0.0.1:5600"
[source]
name = "source-0"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.errors import InputError

ROLES = ("coordinator", "source", "broker", "edge")
_TOP: dict[str, type | tuple[type, ...]] = {
    "nats": str, "system": str, "shards": int, "replicas": int, "multicast": dict, "overlay": dict,
    "coordinator": dict, "source": dict, "broker": dict, "edge": dict, "adapt": dict,
}  # fmt: skip
_PARTS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "multicast": {
        "interface": str,
        "domain": int,
        "groups": int,
        "network": str,
        "mtu": int,
        "pack": bool,
        "lease": (int, float),
    },
    "overlay": {"keys": str, "brokers": dict},
    "coordinator": {"name": str, "plan": str, "key": list, "memberships": int, "every": (int, float)},
    "source": {
        "name": str,
        "shard": int,
        "messages": int,
        "bytes": int,
        "linger_ms": (int, float),
        "settle_ms": (int, float),
        "heartbeat_ms": (int, float),
    },
    "broker": {"name": str},
    "edge": {"name": str, "gateway": str, "out": str, "subscriptions": dict},
    "adapt": {
        "folder": str, "snapshots": str, "schema": str, "moves": int, "joins": int,
        **dict.fromkeys(("every", "half_life", "horizon", "threshold", "proof", "effort", "join", "warm", "reorganise"),
                        (int, float)),
    },
}  # fmt: skip


@dataclass(frozen=True)
class Configuration:
    """One file, checked. `part(role)` is the table of a role, empty if there is none."""

    nats: str
    system: str = "nc"
    shards: int = 1
    replicas: int = 1
    multicast: DdsSettings | None = None
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: Path = Path()

    @property
    def url(self) -> str:
        if "://" in self.nats:
            return self.nats
        path = self.folder / self.nats
        if not path.is_file():
            raise InputError(f"{path}: no such file; it should hold the URL of NATS", name="nats", got=self.nats)
        return path.read_text(encoding="utf-8").strip()

    def part(self, role: str) -> Mapping[str, Any]:
        return self.parts.get(role, {})

    def path(self, name: str) -> Path:
        """A path of the file, from where the file is."""
        return self.folder / name


def read_configuration(path: str | Path) -> Configuration:
    """Read and check a file; every problem in it is named."""
    source = Path(path)
    try:
        found = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{source}: {error.strerror or error}", name="config", got=str(source)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{source}: not TOML: {error}", name="config", got=str(source)) from None
    problems = _problems(found)
    if problems:
        raise InputError(f"{source}: {'; '.join(problems)}", name="config", got=str(source))
    multicast = DdsSettings(**found["multicast"]) if "multicast" in found else None
    parts = {name: found[name] for name in (*ROLES, "overlay", "adapt") if name in found}
    plain = {name: found[name] for name in ("nats", "system", "shards", "replicas") if name in found}
    return Configuration(multicast=multicast, parts=parts, folder=source.parent, **plain)


def _problems(found: Mapping[str, Any]) -> list[str]:
    problems = _check(found, _TOP, "")
    if "nats" not in found:
        problems.append("nats is missing: the URL of NATS, or a file that holds it")
    for name, allowed in _PARTS.items():
        if isinstance(found.get(name), dict):
            problems += _check(found[name], allowed, f"{name}.")
    if isinstance(found.get("shards"), int) and found["shards"] < 1:
        problems.append("shards must be at least 1")
    return problems


def _check(found: Mapping[str, Any], allowed: Mapping[str, type | tuple[type, ...]], where: str) -> list[str]:
    problems = []
    for name, value in found.items():
        if name not in allowed:
            close = get_close_matches(name, allowed, n=1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            problems.append(f"{where}{name} is not known{meant}")
        elif not isinstance(value, allowed[name]) or (isinstance(value, bool) and allowed[name] is not bool):
            problems.append(f"{where}{name} must be {_words(allowed[name])}, not {value!r}")
    return problems


def _words(kind: type | tuple[type, ...]) -> str:
    words = {str: "text", int: "a whole number", dict: "a table", list: "a list", bool: "true or false"}
    return "a number" if isinstance(kind, tuple) else words[kind]


assert {f.name for f in fields(DdsSettings)} == set(_PARTS["multicast"])
