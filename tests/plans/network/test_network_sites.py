"""A site alone: the kernel's cost is the definition's, the best choice of its hosts is the best, groups pay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.plans.network.decisions import NetworkProblem, Site, SitePlan
from narrowcast.plans.network.kernels.site import site_cost
from narrowcast.plans.network.methods.sites import (
    improved_site,
    settled,
    site_arrays,
    site_terms,
    site_total,
    solved_site,
    without_poor_groups,
)
from narrowcast.plans.network.prices import NetworkPrices
from plans.network.small import small_network


def _sites(seed: int) -> list[Site]:
    problem = NetworkProblem(small_network(seed, flows=6), NetworkPrices(price_group=0.0005))
    return [site for site in problem.sites if site.flows.size]


def _some_maps(site: Site, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    sessions = max(min(site.sessions, site.flows.size), 1)
    session = rng.integers(-1, sessions, site.flows.size) if site.groups else np.full(site.flows.size, -1)
    return session, rng.integers(0, max(site.groups, 1), sessions)


def _slow_terms(site: Site, plan: SitePlan) -> dict[str, float]:
    """C1, C2, copies and groups, word for word."""
    theta: dict[int, float] = {}
    for k, l in enumerate(plan.session_of.tolist()):
        if l >= 0:
            theta[l] = theta.get(l, 0.0) + float(site.rates[k])
    taken, joined, copies = set(), set(), sum(theta.values())
    for k, u, alone in zip(site.flow.tolist(), site.user.tolist(), plan.alone.tolist(), strict=True):
        if alone:
            copies += float(site.rates[k])
        else:
            taken.add((u, int(plan.session_of[k])))
            joined.add((u, int(plan.group_of[plan.session_of[k]])))
    Theta = {g: sum(rate for l, rate in theta.items() if plan.group_of[l] == g) for g in set(plan.group_of.tolist())}
    return {
        "c1": sum(Theta[g] for _, g in joined),
        "c2": sum(theta[l] for _, l in taken),
        "copies": copies,
        "groups": float(len(Theta)),
    }


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_the_terms_and_the_kernel_are_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for site in _sites(seed):
        session, group = _some_maps(site, rng)
        plan = settled(site, session, group)
        assert site_terms(site, plan) == pytest.approx(_slow_terms(site, plan))
        # The kernel sends flows that nobody takes any more; settling leaves them out, so it is never dearer.
        kernel = site_cost(site_arrays(site), session, group, max(site.groups, 1))
        assert site_total(site, plan) <= kernel * (1 + 1e-9)
        again = site_cost(site_arrays(site), plan.session_of, np.append(plan.group_of, 0), max(site.groups, 1))
        assert again == pytest.approx(site_total(site, plan))


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_no_single_wish_is_better_served_the_other_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for site in _sites(seed):
        plan = settled(site, *_some_maps(site, rng))
        terms = site_terms(site, plan)
        cost = site.alpha * terms["c1"] + site.beta * terms["c2"] + site.send * terms["copies"]
        for at in range(site.flow.size):
            if plan.session_of[site.flow[at]] < 0 or not plan.alone[at]:
                continue
            other = plan.alone.copy()
            other[at] = False
            joins = {
                int(plan.group_of[plan.session_of[k]])
                for k, u, a in zip(site.flow, site.user, other, strict=True)
                if not a and site.host[u] == site.host[site.user[at]]
            }
            if len(joins) > site.limit[site.host[site.user[at]]]:
                continue
            t = site_terms(site, SitePlan(plan.session_of, plan.group_of, other))
            assert site.alpha * t["c1"] + site.beta * t["c2"] + site.send * t["copies"] >= cost * (1 - 1e-9)


def test_groups_that_do_not_pay_are_given_up() -> None:
    dear = 0
    for seed in range(12):
        for site in _sites(seed):
            none = np.zeros(site.flows.size, np.bool_)
            alone = solved_site(site, none, 0)
            better = improved_site(site, alone, none, 0)
            assert site_total(site, better) <= site_total(site, alone) * (1 + 1e-12)
            assert site_total(site, without_poor_groups(site, alone)) <= site_total(site, alone) * (1 + 1e-12)
            dear += site_terms(site, better)["groups"] < site_terms(site, alone)["groups"]
    assert dear, "no site gave up a group, so the test shows nothing"
