"""Odd but legal inputs: silent flows, one audience for all, more groups than flows, nobody at all."""

from __future__ import annotations

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.model import Interest
from narrowcast.plans.channels.api import CHANNELIZERS, METHODS, UNICAST

ODD = {
    "silent": Interest.from_pairs([0, 1, 1, 2], [0, 0, 1, 2], [0.0, 0.0, 0.0]),
    "half silent": Interest.from_pairs([0, 1, 1, 2], [0, 0, 1, 2], [0.0, 2.0, 1.0]),
    "one audience": Interest.from_pairs(np.repeat(np.arange(9), 2), np.tile([0, 1], 9), np.arange(1.0, 10.0)),
    "one flow": Interest.from_pairs([0], [0], [3.0], n_users=5),
    "nobody": Interest.from_pairs([], [], [1.0, 2.0], n_users=2),
    "nothing": Interest.from_pairs([], [], []),
    "everyone wants everything": Interest.from_pairs(np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4), np.ones(4)),
}
EVERY = pytest.mark.parametrize("interest", ODD.values(), ids=ODD)


@EVERY
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [(1, 1), (2, 3), (40, 50), (9, 2)])
def test_every_method_plans_it(interest: Interest, method: str, budget: tuple[int, int]) -> None:
    r = nc.channels.plan(interest, *budget, method=method)
    assert nc.channels.illegal(interest, r.session_of_flow, r.group_of_session) == []
    assert np.isfinite(r.cost.relative)
    assert 0 <= r.lower_bound <= r.cost.excess + 1e-9
    assert set(r.baselines) >= {"flooding", "unicast", "perfect multicast", "hash", "greedy address"}


@EVERY
@pytest.mark.parametrize("unicast", UNICAST)
def test_every_choice_of_unicast_plans_it(interest: Interest, unicast: str) -> None:
    r = nc.channels.hybrid(interest, 2, unicast=unicast)
    assert r.cost >= r.cost.perfect - 1e-9
    assert 0 <= r.unicast_share <= 1


@EVERY
@pytest.mark.parametrize("channelizer", CHANNELIZERS)
def test_every_channelizer_plans_it(interest: Interest, channelizer: str) -> None:
    r = nc.channels.hybrid(interest, 2, channelizer, "greedy-pair")
    assert np.isfinite(r.percent_of_perfect)


@EVERY
def test_limits_and_sessions_with_unicast_plan_it(interest: Interest) -> None:
    limits = nc.channels.Limits(joins_per_subscriber=1)
    r = nc.channels.plan(interest, 3, 4, limits=limits)
    assert ((r.session_of_flow < 0) == (interest.audience_sizes == 0)).all()
    assert nc.channels.hybrid(interest, 2, sessions=3).cost >= 0
