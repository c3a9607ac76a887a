"""The exam of a channel strategy, marked by code that shares nothing with the planners."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.faults import channels_cost, channels_faults, differences
from narrowcast.plans.channels.result import ChannelsPlan


def exam_channels(strategy: Callable[[Interest, int, int, int], ChannelsPlan]) -> None:
    """Plan small systems with `strategy(interest, groups, sessions, seed)`; AssertionError if one is wrong."""
    for seed, interest in enumerate(_systems()):
        groups, sessions = 1 + seed % 4, 2 + seed % 6
        before = _copy(interest)
        result = strategy(interest, groups, sessions, seed)
        assert result.group_of_session.size <= sessions, "more sessions than allowed"
        assert np.unique(result.group_of_session).size <= groups, "more groups than allowed"
        _mark(result.to_tables(), interest, before)
        again = strategy(interest, groups, sessions, seed)
        assert np.array_equal(again.session_of_flow, result.session_of_flow), "same seed, another plan"
        assert np.array_equal(again.group_of_session, result.group_of_session), "same seed, another plan"


def exam_hybrid(strategy: Callable[[Interest, int, int], ChannelsPlan]) -> None:
    """The same for `strategy(interest, groups, seed)` that may use unicast."""
    for seed, interest in enumerate(_systems()):
        groups = 1 + seed % 4
        before = _copy(interest)
        result = strategy(interest, groups, seed)
        used = np.unique(result.group_of_flow)
        assert used[used >= 0].size <= groups, "more groups than allowed"
        _mark(result.to_tables(), interest, before)
        again = strategy(interest, groups, seed)
        assert np.array_equal(again.group_of_flow, result.group_of_flow), "same seed, another plan"
        assert all(map(np.array_equal, again.unicast, result.unicast)), "same seed, another plan"


def _mark(plan: Tables, interest: Interest, before: Interest) -> None:
    complaints = channels_faults(plan, interest) + differences(plan.cost, channels_cost(plan, interest))
    assert not complaints, complaints[0]
    for name in ("offsets", "users", "rates"):
        assert np.array_equal(getattr(interest, name), getattr(before, name)), "the input was changed"


def _systems() -> Iterator[Interest]:
    """Small systems of every awkward shape: nobody wants a flow, everyone wants all, one user, one flow."""
    for seed, share in enumerate((0.3, 0.5, 0.05, 1.0, 0.4, 0.3)):
        rng = np.random.default_rng(seed)
        n_flows, n_users = (1, 4) if seed == 4 else (9, 1) if seed == 5 else (12, 6)
        flow, user = np.nonzero(rng.random((n_flows, n_users)) < share)
        yield Interest.from_pairs(flow, user, rng.uniform(0, 5, n_flows), n_users=n_users)


def _copy(interest: Interest) -> Interest:
    return Interest.from_pairs(interest.flow_of_pair, interest.users, interest.rates, n_users=interest.n_users)
