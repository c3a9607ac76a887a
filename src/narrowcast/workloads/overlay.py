"""Overlay graphs of brokers: random in the style of GT-ITM, and real ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import rustworkx as rx

from narrowcast.errors import InputError
from narrowcast.model import Topology
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.workloads.checks import choice, generator, number, share, whole
from narrowcast.workloads.real_networks import real_network

MODELS = ("waxman", "transit-stub")
COSTS = ("distance", "unit")
#: Two brokers on the same spot still have a link that costs something.
LEAST_LENGTH = 1e-3


@dataclass(frozen=True, eq=False)
class OverlayLayout:
    """Brokers on a plane (or a globe) and the links between them, before roles are given."""

    edges: Ints
    length: Floats
    n: int
    edge_brokers: Bools
    """Where publishers and subscribers may attach."""
    delay_per_length: float = 1.0
    names: tuple[str, ...] | None = None


def overlay(
    brokers: int = 600,
    model: str = "waxman",
    *,
    degree: float = 4.0,
    beta: float = 0.2,
    gateways: float = 0.2,
    sources: float = 0.02,
    cost: str = "distance",
    seed: int = 0,
) -> Topology:
    """A connected overlay of brokers with roles, costs and delays (SemCast, §5: up to 600 brokers, 20 % gateways).

    - `waxman`: brokers anywhere on a square of side 100; a link between u and v has a chance ∝ e^(−d/(beta·L)),
      L the diagonal, scaled so that the mean degree is about `degree`. Parts left over are joined by
      their shortest links.
    - `transit-stub`: a core of transit domains, with stub domains hanging off it; only stub brokers are
      sources or gateways.
    - `topohub:<name>`, such as `topohub:sndlib/germany50`: a real network of the package topohub
      (`pip install 'narrowcast[topologies]'`); it has its own number of brokers. Lengths in km, delays in ms.

    The shares `gateways` and `sources` of the brokers (at least one each) are picked at random and do not
    overlap. A link costs its length (`cost="distance"`) or 1 (`"unit"`); its delay is its length.

    >>> topology = overlay(60, seed=4)
    >>> topology.n_brokers, topology.roles.count("gateway"), topology.roles.count("source")
    (60, 12, 1)
    """
    choice("cost", cost, COSTS)
    rng = generator(seed)
    layout = _layout(brokers, model, degree, beta, rng)
    return Topology(
        layout.edges,
        cost=layout.length if cost == "distance" else None,
        delay=layout.length * layout.delay_per_length,
        n_brokers=layout.n,
        roles=_roles(layout, share("gateways", gateways), share("sources", sources), rng),
        names=layout.names,
    )


def _layout(brokers: int, model: str, degree: float, beta: float, rng: np.random.Generator) -> OverlayLayout:
    if isinstance(model, str) and model.startswith("topohub:"):
        network = real_network(model.removeprefix("topohub:"))
        everywhere = np.ones(network.n, np.bool_)
        length = np.maximum(network.length_km, LEAST_LENGTH)
        # Light takes about a millisecond for 200 km of fibre.
        return OverlayLayout(network.edges, length, network.n, everywhere, 1 / 200, network.names)
    choice("model", model, (*MODELS, "topohub:<name>"))
    whole("brokers", brokers, low=2 if model == "waxman" else 3, high=50_000)
    number("degree", degree, low=0.1)
    if not number("beta", beta, low=0.0) > 0:
        raise InputError(
            "beta must be above 0, got 0: otherwise there is no link", name="beta", hint="beta > 0, such as 0.2"
        )
    if model == "waxman":
        place = rng.uniform(0, 100, (brokers, 2))
        edges = connect(place, waxman_links(place, degree, beta, rng))
        return OverlayLayout(edges, _lengths(place, edges), brokers, np.ones(brokers, np.bool_))
    return _transit_stub(brokers, degree, beta, rng)


def waxman_links(place: Floats, degree: float, beta: float, rng: np.random.Generator) -> Ints:
    """Links with chance min(1, α·e^(−d/(beta·L))), α set to the mean degree wanted. O(brokers²), row by row."""
    n = len(place)
    scale = beta * max(float(np.linalg.norm(np.ptp(place, axis=0))), LEAST_LENGTH)
    weight = 0.0
    for u in range(n - 1):
        weight += np.exp(-np.linalg.norm(place[u + 1 :] - place[u], axis=1) / scale).sum()
    alpha = degree * n / 2 / max(weight, 1e-300)
    links = [np.zeros((0, 2), np.int64)]
    for u in range(n - 1):
        chance = alpha * np.exp(-np.linalg.norm(place[u + 1 :] - place[u], axis=1) / scale)
        v = np.flatnonzero(rng.random(n - 1 - u) < chance) + u + 1
        links.append(np.column_stack((np.full(v.size, u), v)))
    return np.concatenate(links)


def connect(place: Floats, edges: Ints) -> Ints:
    """Add, part by part, the shortest link from each smaller part to the largest until all is one."""
    graph = rx.PyGraph()
    graph.add_nodes_from(range(len(place)))
    graph.add_edges_from_no_data([(int(u), int(v)) for u, v in edges])
    parts = sorted((sorted(part) for part in rx.connected_components(graph)), key=lambda part: (-len(part), part[0]))
    whole_part, extra = np.array(parts[0]), []
    for part in map(np.array, parts[1:]):
        distance = np.linalg.norm(place[part][:, None] - place[whole_part][None], axis=-1)
        i, j = np.unravel_index(np.argmin(distance), distance.shape)
        extra.append((part[i], whole_part[j]))
        whole_part = np.concatenate((whole_part, part))
    return np.concatenate((edges, np.array(extra, np.int64).reshape(-1, 2)))


def _transit_stub(brokers: int, degree: float, beta: float, rng: np.random.Generator) -> OverlayLayout:
    """About one broker in thirty is transit; each transit broker carries about three stubs."""
    n_transit = max(1, round(brokers / 30))
    n_domains = max(1, round(n_transit / 5))
    domain = np.arange(n_transit) * n_domains // n_transit
    centre = rng.uniform(20, 80, (n_domains, 2))
    place = np.empty((brokers, 2))
    place[:n_transit] = centre[domain] + rng.normal(0, 5, (n_transit, 2))
    edges = [_domain(place, np.flatnonzero(domain == i), degree, beta, rng) for i in range(n_domains)]
    edges.append(connect(place[:n_transit], np.concatenate(edges)))

    n_stubs = max(1, min(3 * n_transit, brokers - n_transit))
    carrier = np.arange(n_stubs) % n_transit
    stub = np.arange(brokers - n_transit) * n_stubs // max(brokers - n_transit, 1)
    middle = place[carrier] + rng.normal(0, 6, (n_stubs, 2))
    place[n_transit:] = middle[stub] + rng.normal(0, 1, (brokers - n_transit, 2))
    for s in range(n_stubs):
        members = np.flatnonzero(stub == s) + n_transit
        edges.append(_domain(place, members, degree, beta, rng))
        nearest = members[np.argmin(np.linalg.norm(place[members] - place[carrier[s]], axis=1))]
        edges.append(np.array([[carrier[s], nearest]]))
    links = np.unique(np.sort(np.concatenate(edges), axis=1), axis=0)
    return OverlayLayout(links, _lengths(place, links), brokers, np.arange(brokers) >= n_transit)


def _domain(place: Floats, members: Ints, degree: float, beta: float, rng: np.random.Generator) -> Ints:
    """A connected random graph among the members."""
    links = waxman_links(place[members], min(degree, len(members) - 1), beta, rng) if len(members) > 1 else None
    return np.zeros((0, 2), np.int64) if links is None else members[connect(place[members], links)]


def _lengths(place: Floats, edges: Ints) -> Floats:
    length: Floats = np.linalg.norm(place[edges[:, 0]] - place[edges[:, 1]], axis=1)
    return np.maximum(length, LEAST_LENGTH)


def _roles(layout: OverlayLayout, gateways: float, sources: float, rng: np.random.Generator) -> list[str]:
    n_gateways, n_sources = max(1, round(gateways * layout.n)), max(1, round(sources * layout.n))
    places = rng.permutation(np.flatnonzero(layout.edge_brokers))
    if n_gateways + n_sources > places.size:
        raise InputError(
            f"{n_gateways} gateways and {n_sources} sources do not fit on {places.size} edge brokers",
            name="gateways",
            hint="smaller shares, or more brokers",
        )
    roles = np.full(layout.n, "interior", dtype="U8")
    roles[places[:n_gateways]] = "gateway"
    roles[places[n_gateways : n_gateways + n_sources]] = "source"
    return [str(role) for role in roles]
