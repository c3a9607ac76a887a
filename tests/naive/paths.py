"""Shortest paths and trees by their definitions, slowly, in plain Python."""

from __future__ import annotations

import math

import numpy as np

from narrowcast.model import Topology


def distances(topology: Topology, weight: np.ndarray) -> list[list[float]]:
    """Floyd and Warshall, as in every textbook."""
    n = topology.n_brokers
    d = [[0.0 if u == v else math.inf for v in range(n)] for u in range(n)]
    for (u, v), w in zip(topology.edges.tolist(), weight.tolist(), strict=True):
        d[u][v] = d[v][u] = min(d[u][v], w)
    for k in range(n):
        for u in range(n):
            for v in range(n):
                d[u][v] = min(d[u][v], d[u][k] + d[k][v])
    return d


def join_in_order(distance, next_hop, root: int, members: list[int]) -> set[tuple[int, int]]:
    """Each member in turn takes the path to the nearest one before it, up to the first broker in the tree."""
    inside, edges, attached = {root}, set(), []
    for g in members:
        targets = attached or [root]
        at = min(targets, key=lambda t: (distance[g][t], targets.index(t)))
        x = g
        while x not in inside:
            step = int(next_hop[x][at])
            inside.add(x)
            edges.add((step, x))
            x = step
        attached.append(g)
    return edges


def nearest_first(distance, next_hop, root: int, members: list[int]) -> set[tuple[int, int]]:
    """The member nearest to any broker in the tree joins next."""
    inside, edges, pending = [root], set(), list(dict.fromkeys(members))
    while pending := [g for g in pending if g not in inside]:
        # Among equals the member given first, and the broker longest in the tree.
        _, _, _, g, at = min((distance[t][g], members.index(g), inside.index(t), g, t) for g in pending for t in inside)
        x = g
        while x not in inside:
            step = int(next_hop[x][at])
            inside.append(x)
            edges.add((step, x))
            x = step
    return edges


def shortest_path_tree(next_hop, root: int, members: list[int]) -> set[tuple[int, int]]:
    edges = set()
    for x in members:
        while x != root:
            step = int(next_hop[x][root])
            edges.add((step, x))
            x = step
    return edges


def tree_faults(edges: list[tuple[int, int]], root: int, members: set[int]) -> list[str]:
    """What is wrong with a tree of (parent, child) links; nothing if it is sound and lean."""
    faults = []
    children = [v for _, v in edges]
    if len(set(children)) != len(children) or root in children:
        faults.append("a broker has two parents")
    reached, front = {root}, [root]
    while front:
        u = front.pop()
        new = [v for p, v in edges if p == u and v not in reached]
        reached.update(new)
        front += new
    if not set(children) <= reached:
        faults.append("not connected")
    if not members <= reached:
        faults.append(f"members {members - reached} not reached")
    leaves = set(children) - {p for p, _ in edges}
    if not leaves <= members:
        faults.append(f"leaves {leaves - members} serve nobody")
    return faults
