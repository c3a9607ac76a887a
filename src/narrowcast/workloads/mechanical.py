"""Software talking to software: thousands of topics, few distinct audiences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import Ints
from narrowcast.workloads.checks import generator, number, share, whole

#: What a topic is about decides who listens; roles of a middleware cell, by share of its processes.
SCOPES = ("everyone", "role", "node", "pair")
ROLES = (("web", 0.45), ("ejb", 0.3), ("messaging", 0.15), ("proxy", 0.1))


@dataclass(frozen=True, eq=False)
class Cell:
    """Processes of a middleware cell: process 0 manages the cell, the first on each node is its agent."""

    node: Ints
    role: Ints
    audiences: tuple[tuple[Ints, ...], ...]
    """By scope: the distinct sets of processes that topics of that scope go to."""


def mechanical(
    processes: int = 79,
    topics: int = 6100,
    seed: int = 0,
    *,
    per_node: int = 8,
    scopes: tuple[float, float, float, float] = (0.06, 0.24, 0.3, 0.4),
    skew: float = 0.0,
    names: bool = False,
) -> Interest:
    """A middleware cell with automatic subscriptions: many topics with identical, nested audiences.

    Modelled on the cell of the hybrid paper (§5: 79 processes, over 6100 topics). Processes run on
    nodes of `per_node` and have a role. A topic goes to everyone, to one role, to one node, or to a
    pair (a process and the agent of its node, or two neighbours of one role), in the shares `scopes`;
    so a few dozen audiences serve all topics, and the smaller lie inside the larger. The paper gives
    no rates: all are 1 unless `skew` > 0, then the i-th busiest has rate ∝ i^(−skew) with mean 1.

    Good for multicast; what it costs is a flow for two put into a group that everyone listens to.

    >>> from narrowcast.workloads.statistics import statistics
    >>> s = statistics(mechanical())
    >>> s.flows, s.users, s.wanted_flows, s.audiences < 200
    (6100, 79, 6100, True)
    """
    whole("processes", processes, low=2)
    whole("topics", topics, low=1)
    number("skew", skew, low=0.0)
    rng = generator(seed)
    cell = make_cell(processes, per_node, rng)
    scope, which = _subjects(cell, topics, scopes, rng)
    listeners = [cell.audiences[s][w] for s, w in zip(scope, which, strict=True)]
    sizes = np.array([a.size for a in listeners])
    rates = np.ones(topics)
    if skew:
        rates = rng.permutation(np.arange(1, topics + 1) ** -skew)
        rates *= topics / rates.sum()
    return Interest.from_pairs(
        np.repeat(np.arange(topics), sizes),
        np.concatenate(listeners),
        rates,
        n_users=processes,
        flow_names=[f"{SCOPES[s]}/{w}/topic{k}" for k, (s, w) in enumerate(zip(scope, which, strict=True))]
        if names
        else None,
        user_names=process_names(cell) if names else None,
    )


def make_cell(processes: int, per_node: int, rng: np.random.Generator) -> Cell:
    """Lay the processes out on nodes, give the others than agents a role, and list the audiences."""
    whole("per_node", per_node, low=2)
    node = np.arange(processes) // per_node
    role = rng.choice(len(ROLES), size=processes, p=[weight for _, weight in ROLES])
    agents = np.arange(0, processes, per_node)
    role[agents] = len(ROLES)
    by_role = [np.flatnonzero(role == r) for r in range(len(ROLES) + 1)]
    by_node = [np.flatnonzero(node == n) for n in range(int(node[-1]) + 1)]
    with_agent = [np.array([agents[node[i]], i]) for i in range(processes) if role[i] < len(ROLES)]
    neighbours = [np.sort(pair) for r in by_role[:-1] for pair in np.column_stack((r, np.roll(r, -1))) if r.size > 2]
    audiences = ([np.arange(processes)], by_role, by_node, with_agent + neighbours)
    return Cell(node, role, tuple(tuple(a for a in scope if a.size) for scope in audiences))


def _subjects(
    cell: Cell, topics: int, scopes: tuple[float, float, float, float], rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """The scope of each topic and which of its audiences."""
    weights = np.array([share("scopes", s) for s in scopes])
    if weights.size != len(SCOPES) or not np.isclose(weights.sum(), 1.0):
        raise InputError(
            f"scopes must be {len(SCOPES)} shares ({', '.join(SCOPES)}) that add up to 1, got {scopes}", name="scopes"
        )
    scope = np.sort(rng.choice(len(SCOPES), size=topics, p=weights))
    counts = np.array([len(a) for a in cell.audiences])
    return scope, (rng.random(topics) * counts[scope]).astype(np.int64)


def process_names(cell: Cell) -> list[str]:
    """Such as `node3/web-27`, `node3/agent-24`, `node0/manager-0`."""
    words = [name for name, _ in ROLES] + ["agent"]
    named = [f"node{n}/{words[r]}-{i}" for i, (n, r) in enumerate(zip(cell.node, cell.role, strict=True))]
    named[0] = "node0/manager-0"
    return named
