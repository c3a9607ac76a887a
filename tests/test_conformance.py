"""Every entry of every planner's dict takes the public exam."""

from __future__ import annotations

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.plans.channels.api import CHANNELIZERS, METHODS, UNICAST
from narrowcast.plans.queries.api import METHODS as MERGES
from narrowcast.testing import exam_channels, exam_hybrid, exam_queries


@pytest.mark.parametrize("method", METHODS)
def test_every_channel_method_passes_the_exam(method: str) -> None:
    exam_channels(
        lambda interest, groups, sessions, seed: nc.channels.plan(interest, groups, sessions, method, seed=seed)
    )


@pytest.mark.parametrize("channelizer", CHANNELIZERS)
def test_every_channelizer_passes_the_exam(channelizer: str) -> None:
    exam_hybrid(lambda interest, groups, seed: nc.channels.hybrid(interest, groups, channelizer, "none", seed=seed))


@pytest.mark.parametrize("unicast", UNICAST)
def test_every_choice_of_unicast_passes_the_exam(unicast: str) -> None:
    exam_hybrid(lambda interest, groups, seed: nc.channels.hybrid(interest, groups, "kmeans", unicast, seed=seed))


@pytest.mark.parametrize("method", MERGES)
def test_every_merge_method_passes_the_exam(method: str) -> None:
    exam_queries(lambda boxes, seed: nc.queries.merge(boxes, method, seed=seed))


def test_the_exam_fails_a_strategy_that_leaves_someone_out() -> None:
    from dataclasses import replace

    def careless(interest: nc.Interest, groups: int, seed: int) -> nc.channels.ChannelsPlan:
        made = nc.channels.hybrid(interest, groups, unicast="reverse", seed=seed)
        flow, user = made.unicast
        return replace(made, unicast=(flow[1:], user[1:]))

    with pytest.raises(AssertionError, match="does not get it"):
        exam_hybrid(careless)


def test_the_exam_fails_a_strategy_that_is_not_repeatable() -> None:
    rng = np.random.default_rng()

    def moody(interest: nc.Interest, groups: int, sessions: int, seed: int) -> nc.channels.ChannelsPlan:
        return nc.channels.plan(interest, groups, sessions, "random", seed=int(rng.integers(10**9)))

    with pytest.raises(AssertionError, match="same seed, another plan"):
        exam_channels(moody)
