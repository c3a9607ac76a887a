"""Real networks out of the package topohub, read only when asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable

import numpy as np
import rustworkx as rx

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class RealNetwork:
    """Its largest connected part: sites by name, links with their length in km."""

    edges: Ints
    length_km: Floats
    names: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.names)


def real_network(name: str) -> RealNetwork:
    """A network by its topohub name, such as `topozoo/Abilene`. Sites of the same name get a number.

    >>> network = real_network("sndlib/polska")
    >>> network.n, len(network.edges), network.names[0]
    (12, 18, 'Gdansk')
    """
    known = network_names()
    if name not in known:
        near = _near(name, known)
        hint = f"close names: {', '.join(near)}" if near else f"groups: {', '.join(_groups(known))}"
        raise InputError(f"model must be a network of topohub, got {name!r}", name="model", got=name, hint=hint)
    # topohub.get would leave the file open.
    graph = json.loads(files("topohub").joinpath(f"data/{name}.json").read_text(encoding="utf-8"))
    nodes, links = graph["nodes"], graph["edges"]
    index = {node["id"]: i for i, node in enumerate(nodes)}
    ends = np.array([(index[e["source"]], index[e["target"]]) for e in links], np.int64).reshape(-1, 2)
    length = np.array([float(e.get("dist") or 0.0) for e in links])
    loop = ends[:, 0] == ends[:, 1]
    return _largest_part(ends[~loop], length[~loop], _distinct([str(n.get("name") or n["id"]) for n in nodes]))


def network_names(group: str = "") -> list[str]:
    """The networks there are whose names start with `group`.

    >>> network_names("sndlib")[:2]
    ['sndlib/abilene', 'sndlib/atlanta']
    """
    try:
        root = files("topohub").joinpath("data")
    except ModuleNotFoundError:
        raise UnsupportedError(
            "real networks need the package topohub, which is not installed: pip install 'narrowcast[topologies]'",
            works=("waxman", "transit-stub"),
        ) from None
    return [name for name in _walk(root, "") if name.startswith(group)]


def _walk(folder: Traversable, prefix: str) -> list[str]:
    found: list[str] = []
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            found.append(prefix + entry.name.removesuffix(".json"))
    return found


def _groups(known: list[str]) -> list[str]:
    return sorted({name.split("/", 1)[0] for name in known})


def _near(name: str, known: list[str]) -> list[str]:
    """Names that look alike, in full or after the group's name, whatever the case."""
    lower = {full.lower(): full for full in known} | {full.lower().rsplit("/", 1)[-1]: full for full in known}
    near = get_close_matches(name.lower(), lower, n=4) + get_close_matches(name.lower().rsplit("/", 1)[-1], lower, n=4)
    return list(dict.fromkeys(lower[n] for n in near))[:5]


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return result if len(set(result)) == len(result) else [f"{name}#{i}" for i, name in enumerate(names)]


def _largest_part(edges: Ints, length: Floats, names: list[str]) -> RealNetwork:
    graph = rx.PyGraph()
    graph.add_nodes_from(range(len(names)))
    graph.add_edges_from_no_data([(int(u), int(v)) for u, v in edges])
    part = max((sorted(p) for p in rx.connected_components(graph)), key=lambda p: (len(p), -p[0]))
    new = np.full(len(names), -1, np.int64)
    new[part] = np.arange(len(part))
    inside = (new[edges] >= 0).all(axis=1)
    return RealNetwork(new[edges[inside]], length[inside], tuple(names[i] for i in part))
