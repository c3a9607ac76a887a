"""The backbone alone: what links carry is walked message by message, filters and channels help each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.cost import link_loads
from narrowcast.plans.network.decisions import NetworkProblem
from narrowcast.plans.network.methods.backbone import BackboneTrees, classes_of
from narrowcast.plans.network.methods.filters import _cost, _gains
from narrowcast.plans.network.methods.joint import Timer, stitched
from narrowcast.plans.network.plan import make
from plans.network.small import small_network


def _walked(problem: NetworkProblem, made) -> np.ndarray:
    """Each flow by itself, link after link."""
    d = problem.demand
    loads, edges, filters = np.zeros(d.topology.n_links), d.topology.edges.tolist(), set(made.filters.tolist())
    for k in range(d.interest.n_flows):
        c = int(made.channel_of[k])
        needs = {int(d.gateway[s]) for s in np.flatnonzero(problem.remote[k]) if k * d.n_sites + s not in made.direct}
        tree = made.trees[c].tolist() if c >= 0 else []

        def wanted(node: int, came: int, tree=tree, needs=needs) -> bool:
            ways = [(at, sum(edges[at]) - node) for at in tree if node in edges[at] and at != came]
            return node in needs or any(wanted(other, at) for at, other in ways)

        front = [(int(d.gateway[d.source[k]]), -1)] if needs else []
        while front:
            node, came = front.pop()
            for at in tree:
                if node in edges[at] and at != came:
                    other = sum(edges[at]) - node
                    if node not in filters or wanted(other, at):
                        loads[at] += d.bytes_s[k]
                        front.append((other, at))
    return loads


@pytest.mark.parametrize("seed", range(8))
def test_loads_are_what_a_walk_of_every_flow_gives(seed: int) -> None:
    problem = NetworkProblem(small_network(seed, flows=8), channels=1 + seed % 2, filters=2)
    made = stitched(problem, 0, Timer(None))
    rng = np.random.default_rng(seed)
    for n in (0, 1, 2):
        chosen = np.sort(rng.permutation(problem.demand.topology.n_brokers)[:n])
        tried = replace(made, filters=chosen)
        found = link_loads(problem, tried, BackboneTrees(problem))[0]
        straight = link_loads(problem, replace(tried, trees=(), channel_of=np.full_like(made.channel_of, -1)),
                              BackboneTrees(problem))[0]  # fmt: skip
        assert found - straight == pytest.approx(_walked(problem, tried))


def test_the_gain_of_a_filter_is_what_it_saves() -> None:
    for seed in range(8):
        problem = NetworkProblem(small_network(seed, flows=8), channels=1)
        backbone, classes = BackboneTrees(problem), classes_of(problem, np.zeros(0, np.int64))
        if not classes.n:
            continue
        everything = np.arange(classes.n)
        links = backbone.trees(backbone.ends(classes, everything))[0][1]
        carried = [backbone.carried(classes, everything, links)]
        for now in (frozenset[int](), frozenset({0}), frozenset({1})):
            gains, before = _gains(backbone, carried, now), _cost(backbone, carried, now, 0.0)
            for v in set(range(problem.demand.topology.n_brokers)) - now:
                assert before - gains[v] == pytest.approx(_cost(backbone, carried, now | {v}, 0.0))


def _star(flows: int, channels_apart: bool = False) -> NetworkDemand:
    """A source site, a hub, and as many leaf sites as flows, each wanting one flow."""
    topology = nc.Topology([(0, 1 + leaf) for leaf in range(flows + 1)], cost=[100.0] * (flows + 1))
    interest = nc.Interest.from_pairs(range(flows), range(flows), [1000.0] * flows)
    return NetworkDemand(
        topology, interest, sites=tuple(f"S{s}" for s in range(flows + 1)), gateway=np.arange(1, flows + 2),
        groups=0, sessions=0, hosts=tuple(f"h{s}" for s in range(flows)), host_site=np.arange(1, flows + 1),
        host=np.arange(flows), source=np.zeros(flows, np.int64),
    )  # fmt: skip


def test_a_filter_at_the_hub_makes_finer_channels_unnecessary() -> None:
    """Copies straight from the source cost the same here; so each wish has three subscribers in its site."""
    d = _star(6)
    three = nc.Interest.from_pairs(np.repeat(range(6), 3), range(18), [1000.0] * 6)
    d = replace(d, interest=three, host=np.repeat(range(6), 3), bound=np.inf)
    options = {"price_filter": 0.001, "price_send": 0.0}
    fine = make(d, channels=6, filters=0, **options)
    coarse = make(d, channels=1, filters=0, **options)
    filtered = make(d, channels=1, filters=1, **options)
    assert filtered.decisions.filters.tolist() == [0]
    assert fine.cost.links == pytest.approx(filtered.cost.links)
    assert coarse.cost.links > 2 * filtered.cost.links


def test_a_lone_far_subscriber_is_served_straight_from_the_source_when_channels_are_few() -> None:
    plan = make(_star(6), channels=1, filters=0)
    assert plan.decisions.direct.size >= 5
    assert plan.check().sound
    assert plan.cost < plan.cost.baselines["stitched"]


def test_bounds_are_kept_at_a_price() -> None:
    """The cheap way round a ring is slow."""
    topology = nc.Topology([(0, 1), (1, 2), (0, 2)], cost=[1.0, 1.0, 9.0], delay=[10.0, 10.0, 1.0])
    interest = nc.Interest.from_pairs([0], [0], [1000.0])
    d = NetworkDemand(topology, interest, sites=("A", "B"), gateway=[0, 2], groups=0, sessions=0, hosts=("h",),
                      host_site=[1], host=[0], source=[0], lan_delay=0.5)  # fmt: skip
    free, tight = make(d), make(replace(d, bound=np.array([2.0])))
    assert free.loads.tolist() == [100000.0, 0.0, 100000.0]
    assert tight.loads.tolist() == [0.0, 100000.0, 0.0]
    assert tight.check().sound
