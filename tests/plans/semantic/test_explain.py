"""Reasons add up to the plan's bandwidth and deliveries."""

from __future__ import annotations

import pytest

import narrowcast as nc
from naive import semantic_system as naive


@pytest.mark.parametrize("variant", nc.semantic.METHODS)
def test_the_reasons_of_all_channels_add_up_to_the_plan(variant: str) -> None:
    for seed in range(20):
        small = naive.small_system(seed)
        plan = nc.semantic.plan(
            small.topology, small.profiles, small.clients, small.window, small.sources, variant=variant
        )
        reasons = nc.semantic.channel_reasons(plan, small.window, small.sources)
        assert sorted(reason.channel for reason in reasons) == list(range(plan.n_channels))
        total = nc.semantic.bandwidth(plan, small.window, small.sources)
        assert sum(reason.cost for reason in reasons) == pytest.approx(total)
        for reason in reasons:
            channel = plan.channels[reason.channel]
            assert reason.n_messages == channel.rate
            assert reason.wanted + reason.extra == channel.rate * len(channel.gateways)
            assert reason.unicast >= reason.spt * (1 - 1e-12)
            assert "\n" not in str(reason)
            if variant == "search" and reason.kind == "audience":
                assert reason.extra == 0  # without a cap nothing is delivered in vain
