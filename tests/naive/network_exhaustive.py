"""The least cost of a small network, by trying everything: every set of filters, every set of trees, every way of
every flow to every site, and in each site every map of flows to sessions to groups and every choice of its hosts.

The links of a flow do not depend on the other flows of its channel, so for given trees and filters each flow takes
its cheapest tree; what comes straight from the source has no group in its site, which is what ties both together.
"""

from __future__ import annotations

from itertools import chain, combinations, product
from math import inf

import numpy as np

from narrowcast.model.network_demand import NetworkDemand


def least_cost(
    d: NetworkDemand, channels: int, filters: int, cpu: float, send: float, filter_price: float, group_price: float
) -> float:
    copy = send * 3600 / 1e6
    n_flows, n_sites = d.interest.n_flows, d.n_sites
    wants = [[[] for _ in range(n_sites)] for _ in range(n_flows)]
    for k in range(n_flows):
        for u in d.interest.users_of(k).tolist():
            wants[k][d.site_of[u]].append(u)
    far = [[s for s in range(n_sites) if wants[k][s] and s != d.source[k]] for k in range(n_flows)]
    # The ways of each flow: which of its far sites it reaches by a channel; the others get copies from the source.
    ways = [list(_subsets(sites)) for sites in far]
    site_part = np.zeros([len(each) for each in ways])
    for s in range(n_sites):
        best = _site(d, s, wants, cpu, copy, group_price)
        flows = [k for k in range(n_flows) if wants[k][s]]
        for at in np.ndindex(site_part.shape):
            straight = frozenset(k for k in flows if s != d.source[k] and s not in ways[k][at[k]])
            site_part[at] += best(straight)
    link = d.topology.cost * 3600 / 1e9
    trees = _trees(d)
    least = inf
    able = [v for v in range(d.topology.n_brokers) if d.can_filter[v]]
    for chosen in chain.from_iterable(combinations(able, n) for n in range(min(filters, len(able)) + 1)):
        # cost of (flow, way, tree): by channel, and the copies straight from the source.
        table = [np.array([[_carried(d, k, way, tree, set(chosen), wants, link) for tree in [None, *trees]]
                           for way in ways[k]]) for k in range(n_flows)]  # fmt: skip
        alone = [np.array([_copies(d, k, [s for s in far[k] if s not in way], wants, link) for way in ways[k]])
                 for k in range(n_flows)]  # fmt: skip
        for picked in combinations(range(1, len(trees) + 1), min(channels, len(trees))):
            total = site_part + filter_price * len(chosen)
            for k in range(n_flows):
                part = table[k][:, [0, *picked]].min(axis=1) + alone[k]
                total = total + part.reshape([-1 if axis == k else 1 for axis in range(n_flows)])
            least = min(least, float(total.min()))
    return least


def _subsets(sites: list[int]) -> list[frozenset[int]]:
    return [frozenset(each) for n in range(len(sites) + 1) for each in combinations(sites, n)]


def _trees(d: NetworkDemand) -> list[list[tuple[int, int, int]]]:
    """Every tree of links, as (u, v, number)."""
    edges = [(u, v, at) for at, (u, v) in enumerate(d.topology.edges.tolist())]
    found = []
    for n in range(1, d.topology.n_brokers):
        for chosen in combinations(edges, n):
            label = {v: v for v in range(d.topology.n_brokers)}
            fine = True
            for u, v, _ in chosen:
                a, b = label[u], label[v]
                fine = fine and a != b
                label = {w: a if at == b else at for w, at in label.items()}
            ends = {w for u, v, _ in chosen for w in (u, v)}
            if fine and len({label[w] for w in ends}) == 1:
                found.append(list(chosen))
    return found


def _carried(d, k, way, tree, filters, wants, link) -> float:
    """Bytes of a flow on a tree to these sites, priced; inf if it does not get there, or late."""
    if not way:
        return 0.0
    if tree is None:
        return inf
    gateway = d.gateway.tolist()

    def beyond(node: int, came: int) -> bool:
        if any(gateway[s] == node for s in way):
            return True
        return any(beyond(v if node == u else u, node) for u, v, _ in tree if node in (u, v) and came not in (u, v))

    price, reached = 0.0, {}
    front = [(gateway[d.source[k]], -1, 0.0)]
    while front:
        node, came, delay = front.pop()
        reached[node] = delay
        for u, v, at in tree:
            if node in (u, v) and came not in (u, v):
                other = v if node == u else u
                if node not in filters or beyond(other, node):
                    price += float(link[at])
                    front.append((other, node, delay + float(d.topology.delay[at])))
    for s in way:
        late = min(d.bound[u] for u in wants[k][s])
        if gateway[s] not in reached or reached[gateway[s]] + d.lan_delay[s] > late * (1 + 1e-9):
            return inf
    return float(d.bytes_s[k]) * price


def _copies(d, k, sites, wants, link) -> float:
    """A copy for each subscriber over the cheapest path that is quick enough, of all paths."""
    total = 0.0
    for s in sites:
        late = min(d.bound[u] for u in wants[k][s]) - d.lan_delay[s]
        best = min((price for price, delay in _paths(d, d.gateway[d.source[k]], d.gateway[s], link)
                    if delay <= late * (1 + 1e-9)), default=inf)  # fmt: skip
        total += len(wants[k][s]) * float(d.bytes_s[k]) * best
    return total


def _paths(d, start, end, link):
    def walk(node, seen, price, delay):
        if node == end:
            yield price, delay
            return
        for at, (u, v) in enumerate(d.topology.edges.tolist()):
            if node in (u, v):
                other = v if node == u else u
                if other not in seen:
                    yield from walk(other, seen | {other}, price + float(link[at]), delay + float(d.topology.delay[at]))

    yield from walk(int(start), {int(start)}, 0.0, 0.0)


def _site(d, s, wants, cpu, copy, group_price):
    """The least cost of a site for each set of flows that must go by unicast."""
    flows = [k for k in range(d.interest.n_flows) if wants[k][s]]
    people = sorted({u for k in flows for u in wants[k][s]})
    alpha, beta = cpu * float(d.alpha[s]), cpu * float(d.beta[s])
    rate = d.interest.rates
    n_groups, n_sessions = int(d.groups[s]), int(d.sessions[s]) if d.groups[s] else 0
    found: dict[frozenset[int], float] = {}
    for sessions in product(range(-1, n_sessions), repeat=len(flows)):
        used = sorted(set(sessions) - {-1})
        if used != list(range(len(used))):
            continue  # the same with other numbers
        for groups in product(range(n_groups), repeat=len(used)):
            theta = [sum(rate[k] for k, l in zip(flows, sessions, strict=True) if l == at) for at in used]
            Theta = [sum(theta[l] for l in used if groups[l] == g) for g in range(n_groups)]
            cost = copy * sum(theta)
            joined_by_anyone: set[int] = set()
            for h in sorted({int(d.host[u]) for u in people}):
                here = [u for u in people if d.host[u] == h]
                cost_h, joined = _host(
                    d, s, h, here, flows, sessions, used, groups, theta, Theta, wants, alpha, beta, copy
                )
                cost += cost_h
                joined_by_anyone |= joined
            cost += group_price * len(joined_by_anyone)
            multicast = frozenset(k for k, l in zip(flows, sessions, strict=True) if l >= 0)
            found[multicast] = min(found.get(multicast, inf), cost)
    return lambda straight: min(cost for multicast, cost in found.items() if not multicast & straight)


def _host(d, s, h, here, flows, sessions, used, groups, theta, Theta, wants, alpha, beta, copy):
    """The best groups for a host to join, and for each of its users the best sessions of them to take."""
    most = int(d.joins_per_host[s]) if d.joins_per_host[s] >= 0 else len(Theta)
    most = most if d.multicast[h] else 0
    best = (inf, set())
    for n in range(min(most, len(Theta)) + 1):
        for joined in combinations(range(len(Theta)), n):
            total = 0.0
            for u in here:
                least = inf
                for taken in _subsets([l for l in used if groups[l] in joined]):
                    cost = sum(beta * theta[l] for l in taken) + sum(
                        alpha * Theta[g] for g in {groups[l] for l in taken}
                    )
                    for k, l in zip(flows, sessions, strict=True):
                        if u in wants[k][s] and l not in taken:
                            cost += copy * d.interest.rates[k]
                    least = min(least, cost)
                total += least
            if total < best[0] - 1e-15:
                best = total, set(joined)
    return best
