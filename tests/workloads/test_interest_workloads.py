"""The random and the mechanical workload."""

from __future__ import annotations

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.errors import InputError


def test_random_users_pick_three_percent_each_and_nothing_correlates() -> None:
    interest = nc.workloads.random(flows=4000, users=300, seed=1)
    assert (np.bincount(interest.users) == 120).all()
    assert (interest.rates == 1).all()
    # Binomial(300, 0.03): mean 9, variance 8.73.
    assert abs(interest.audience_sizes.mean() - 9) < 1e-9
    assert 7.5 < interest.audience_sizes.var() < 10


def audiences(interest: nc.Interest) -> set[tuple[int, ...]]:
    return {tuple(interest.users_of(k).tolist()) for k in range(interest.n_flows)}


def test_a_cell_has_thousands_of_topics_and_few_audiences() -> None:
    interest = nc.workloads.mechanical()
    assert (interest.n_users, interest.n_flows) == (79, 6100)
    found = audiences(interest)
    assert len(found) == nc.workloads.statistics(interest).audiences
    assert 50 < len(found) < 200
    assert () not in found


def test_a_cells_audiences_are_nested() -> None:
    found = sorted((set(a) for a in audiences(nc.workloads.mechanical())), key=len)
    everyone = found[-1]
    assert everyone == set(range(79))
    pairs = [a for a in found if len(a) == 2]
    assert len(pairs) > 30
    assert all(any(a < b for b in found if 2 < len(b) < 79) for a in pairs)


def test_a_cells_rates_are_equal_unless_skewed() -> None:
    assert (nc.workloads.mechanical().rates == 1).all()
    skewed = nc.workloads.mechanical(skew=1.0).rates
    assert skewed.mean() == pytest.approx(1.0)
    assert skewed.max() > 100 * np.median(skewed)


@pytest.mark.parametrize("processes", [2, 3, 9, 17])
def test_small_cells_work(processes: int) -> None:
    interest = nc.workloads.mechanical(processes, 40, names=True)
    assert interest.n_users == processes
    assert (interest.audience_sizes > 0).all()


def test_impossible_parameters_are_refused() -> None:
    with pytest.raises(InputError, match=r"share must be .*, got 2"):
        nc.workloads.random(share=2)
    with pytest.raises(InputError, match="none at all"):
        nc.workloads.random(flows=10, share=0.01)
    with pytest.raises(InputError, match="processes must be at least 2, got 1"):
        nc.workloads.mechanical(processes=1)
    with pytest.raises(InputError, match="add up to 1"):
        nc.workloads.mechanical(scopes=(0.5, 0.5, 0.5, 0.5))
