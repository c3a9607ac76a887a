"""Classes of audiences moved between channels: prices are those of the definition, and every move pays."""

from __future__ import annotations

import numpy as np
import pytest

import narrowcast as nc
from naive import semantic_moves as naive
from narrowcast.network import Paths, shortest_paths
from narrowcast.plans.semantic.kernels.moves import PricedOverlay, move_classes
from narrowcast.plans.semantic.kernels.near import least_waste, ones
from narrowcast.plans.semantic.kernels.price import union_prices
from narrowcast.plans.semantic.methods.audiences import AudienceClasses, packed


def drawn(seed: int) -> tuple[Paths, np.ndarray, np.ndarray, AudienceClasses, np.random.Generator]:
    """(paths, sources, gateways, classes) of a small overlay."""
    rng = np.random.default_rng(seed)
    paths = shortest_paths(nc.workloads.overlay(int(rng.integers(6, 14)), seed=seed))
    place = rng.permutation(paths.n_brokers)
    sources, gateways = place[: int(rng.integers(1, 3))].astype(np.int64), place[2:].astype(np.int64)
    n = int(rng.integers(2, 12))
    reach = rng.random((n, gateways.size)) < 0.4
    reach[np.arange(n), rng.integers(gateways.size, size=n)] = True
    return (
        paths,
        sources,
        gateways,
        AudienceClasses(reach, rng.integers(sources.size, size=n), rng.uniform(0.5, 3, n)),
        rng,
    )


def test_bits_are_counted() -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 100, np.uint64)
    assert [int(ones(word)) for word in words] == [int(word).bit_count() for word in words]
    assert int(ones(np.uint64(0))) == 0
    assert int(ones(np.uint64(2**64 - 1))) == 64


@pytest.mark.parametrize("seed", range(40))
def test_the_sets_with_the_least_waste_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 12)), int(rng.integers(1, 5))
    reach = rng.random((n, int(rng.integers(1, 140)))) < 0.3
    weight = rng.integers(1, 4, n).astype(float)
    among = np.flatnonzero(rng.random(n) < 0.8)
    found = least_waste(packed(reach), weight, among, np.arange(n), k)
    sets = [set(np.flatnonzero(row).tolist()) for row in reach]
    for i, row in enumerate(found.tolist()):
        assert [j for j in row if j >= 0] == naive.least_waste(sets, weight.tolist(), among.tolist(), i, k)


@pytest.mark.parametrize("seed", range(40))
def test_the_price_of_a_union_is_that_of_its_definition(seed: int) -> None:
    paths, sources, gateways, classes, rng = drawn(seed)
    if seed % 5 == 0:
        sources = sources[:0]
    weight = np.zeros((classes.n, max(1, sources.size)))
    weight[np.arange(classes.n), classes.source % weight.shape[1]] = classes.weight
    first, second = rng.integers(classes.n, size=(2, 6))
    found = union_prices(paths.distance, paths.next_hop, sources, gateways, classes.reach, weight, first, second)
    for i, j, price in zip(first.tolist(), second.tolist(), found.tolist(), strict=True):
        members = gateways[classes.reach[i] | classes.reach[j]].tolist()
        both = weight[i] + weight[j] if i != j else weight[i]
        assert price == pytest.approx(naive.price(paths, sources.tolist(), both.tolist(), members))


@pytest.mark.parametrize("seed", range(60))
def test_moves_lower_the_cost_until_no_single_one_does(seed: int) -> None:
    paths, sources, gateways, classes, rng = drawn(seed)
    n_channels = int(rng.integers(1, 4))
    lost = rng.uniform(0, 400, classes.n)
    channel = rng.integers(-1, n_channels, classes.n)
    start = channel.copy()
    on = PricedOverlay(paths.distance, paths.next_hop, sources, gateways)
    prices = move_classes(
        on, classes.reach, packed(classes.reach), classes.source, classes.weight, lost, np.arange(classes.n), channel,
        n_channels, n_channels, 100,
    )  # fmt: skip

    def total(chosen: list[int]) -> float:
        return naive.total(paths, sources.tolist(), gateways.tolist(), classes, chosen, lost)

    ended = total(channel.tolist())
    assert prices.sum() + lost[channel < 0].sum() == pytest.approx(ended)
    assert ended <= total(start.tolist()) * (1 + 1e-9)
    for i in range(classes.n):
        for to in range(-1, n_channels):
            other = channel.tolist()
            other[i] = to
            assert total(other) >= ended * (1 - 1e-6), (i, to)
