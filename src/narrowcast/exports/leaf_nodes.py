"""NATS for a filter plan: a leaf node server at every filter, and for everybody else the one to connect to.

A leaf node asks its hub only for subjects that somebody below it subscribes to: a filter. Where the plan has none,
nothing stands between a client and the next filter above it.
"""

from __future__ import annotations

import re

from narrowcast.errors import InputError
from narrowcast.exports.files import Files
from narrowcast.exports.options import Options
from narrowcast.exports.text import table
from narrowcast.plans.filters.result import FiltersPlan

PORT = 7422
CLIENTS = 4222
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def leaf_nodes(plan: FiltersPlan, options: Options) -> Files:
    """`nats-<node>.conf` for each server, `servers.csv` with the one of each node. Nodes are host names."""
    tree = plan.demand.tree
    names = tree.names or tuple(str(v) for v in range(tree.n))
    root = int((tree.parents < 0).argmax())
    servers = {root, *plan.filters.tolist()}
    for v in sorted(servers):
        if not _HOST.fullmatch(names[v]):
            raise InputError(
                f"a node with a server must be a host name, got {names[v]!r}",
                name="node",
                got=names[v],
                hint="rename it",
            )
    at: dict[int, int] = {}
    for v in _downward(tree.parents.tolist()):
        at[v] = v if v in servers else at[int(tree.parents[v])]
    port = PORT if options.port is None else options.port
    texts = {f"nats-{names[v]}.conf": _server(v, root, at, tree.parents.tolist(), names, port) for v in sorted(servers)}
    rows = ((names[v], names[at[v]], f"nats://{names[at[v]]}:{CLIENTS}") for v in range(tree.n))
    texts["servers.csv"] = table(("node", "server", "connect"), rows)
    notes = (
        f"{len(servers)} servers: the root {names[root]} and {len(servers) - 1} leaf nodes, one per filter",
        "publishers connect to the root; a leaf node passes on subjects that somebody below it subscribes to",
    )
    return Files(texts, notes)


def _server(v: int, root: int, at: dict[int, int], parents: list[int], names: tuple[str, ...], port: int) -> str:
    below = any(at[w] == w and w != root and at[parents[w]] == v for w in at if parents[w] >= 0)
    listen = [f"  listen: 0.0.0.0:{port}"] if below else []
    remotes = [] if v == root else [f'  remotes: [ {{ url: "nats-leaf://{names[at[parents[v]]]}:{port}" }} ]']
    inside = "\n".join([*listen, *remotes])
    return f"listen: 0.0.0.0:{CLIENTS}\nserver_name: {names[v]}\n" + (f"leafnodes {{\n{inside}\n}}\n" if inside else "")


def _downward(parents: list[int]) -> list[int]:
    """Vertices, parents before children."""
    children: dict[int, list[int]] = {}
    for v, above in enumerate(parents):
        children.setdefault(above, []).append(v)
    order = list(children.get(-1, ()))
    for v in order:
        order += children.get(v, ())
    return order
