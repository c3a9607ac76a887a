"""What links carry with headers: by hand for one link, and in order of how much shares a frame for any network."""

from __future__ import annotations

import numpy as np
import pytest

from narrowcast.deliver.wire import Frame, encode
from narrowcast.deliver.wire.frame import FRAME_BYTES, MESSAGE_BYTES, SEAL_BYTES
from narrowcast.model import Interest, Topology
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.network.wire import wire_loads
from plans.network.small import small_network


def one_link(rate: float, size: float) -> NetworkPlan:
    """Two sites, one flow from the first to somebody at the second."""
    return make(
        NetworkDemand(
            Topology([(0, 1)], names=["a", "b"]), Interest.from_pairs([0], [0], [rate]),
            sites=("A", "B"), gateway=np.array([0, 1]), groups=np.array([2, 2]), sessions=np.array([4, 4]),
            hosts=("h",), host_site=np.array([1]), host=np.array([0]), source=np.array([0]), size=np.array([size]),
        ),
        price_send=1.0,
    )  # fmt: skip


def test_the_bytes_of_a_frame_are_those_that_are_sent() -> None:
    empty, full = Frame(0, 1, 1, 0, 9), Frame(0, 1, 1, 0, 9, ((5, 0, b"12345"),))
    assert len(encode(empty)) + SEAL_BYTES == FRAME_BYTES
    assert len(encode(full)) - len(encode(empty)) == MESSAGE_BYTES + 5


def test_a_message_by_itself_is_a_packet_and_half_an_acknowledgement() -> None:
    plan = one_link(rate=10.0, size=100.0)
    assert plan.loads.tolist() == [1000.0]
    alone = 100 + 16 + 84 + 42 + 66 * 1.5
    beats = 2 * (42 + 40 + 3 * 66)  # one connection
    assert wire_loads(plan).tolist() == pytest.approx([10 * alone + beats])


def test_messages_that_wait_for_each_other_share_a_frame_and_large_frames_take_several_packets() -> None:
    plan = one_link(rate=400.0, size=1000.0)
    frames = 400 / 21  # the first waits 50 ms, and 20 come along
    stream = 400 * 1016 + frames * (84 + 42)
    packets = stream / 1448 + frames / 2
    found = wire_loads(plan, linger_s=0.05, most_bytes=60_000, most_messages=500)
    assert found.tolist() == pytest.approx([stream + 99 * packets + 560])


@pytest.mark.parametrize("seed", range(6))
def test_no_link_carries_less_than_its_messages_and_what_carries_none_carries_nothing(seed: int) -> None:
    plan = make(small_network(seed, flows=6), channels=2, filters=1)
    alone, together = wire_loads(plan), wire_loads(plan, linger_s=1.0, most_bytes=60_000, most_messages=500)
    assert (plan.loads <= together).all()
    assert (together <= alone + 1e-9).all()
    used = np.union1d(np.concatenate([np.zeros(0, np.int64), *plan.decisions.trees]), np.flatnonzero(plan.loads))
    assert not np.delete(alone, used).any()
