"""What no plan can go below, term by term."""

from __future__ import annotations

import numpy as np

from narrowcast.plans.network.decisions import NetworkProblem
from narrowcast.plans.network.prices import GB, HOUR


def lower_bounds(problem: NetworkProblem) -> dict[str, float]:
    """Bounds of the links, and of filtering and sending in the sites together.

    Links: a flow must come to every site that wants it, so its tree holds the way to the farthest and at least half
    of a least spanning tree of its ends. Sites: each wish is one copy, or is received and filtered at least once
    while the flow is sent once for all.

    >>> from narrowcast.workloads.network import network
    >>> sorted(lower_bounds(NetworkProblem(network(sites=3, users=20, symbols=50))))
    ['links', 'sites']
    """
    return {"links": _links(problem), "sites": sum(_site(problem, s) for s in range(problem.demand.n_sites))}


def _site(problem: NetworkProblem, s: int) -> float:
    site = problem.sites[s]
    able = np.bincount(site.flow, site.can[site.host[site.user]], minlength=site.flows.size)
    rest = site.audience - able
    copies = site.send * site.audience
    shared = site.send * (1 + rest) + able * min(site.send, site.alpha + site.beta)
    least = np.where(able > 0, np.minimum(copies, shared), copies)
    return float(site.rates @ least)


def _links(problem: NetworkProblem) -> float:
    from scipy.sparse.csgraph import minimum_spanning_tree

    d = problem.demand
    some = np.flatnonzero(problem.remote.any(axis=1))
    rows = np.column_stack((d.source[some], problem.remote[some]))
    kinds, at = np.unique(rows, axis=0, return_inverse=True)
    load = np.bincount(at.ravel(), d.bytes_s[some], minlength=len(kinds))
    far = problem.by_cost.cost * (HOUR / GB)
    total = 0.0
    for row, bytes_s in zip(kinds, load.tolist(), strict=True):
        ends = d.gateway[np.append(np.flatnonzero(row[1:]), row[0])]
        apart = far[np.ix_(ends, ends)]
        # A tree is at least k/2(k−1) of the least spanning tree of its k ends' distances.
        part = ends.size / (2 * (ends.size - 1))
        spanning = float(minimum_spanning_tree(apart).sum()) * part if ends.size > 2 else 0.0
        total += bytes_s * max(float(apart[-1].max()), spanning)
    return total
