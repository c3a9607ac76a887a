"""Credit goes back to the edge in parts, and never so late that a subscription stands still."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from narrowcast.deliver.client.connect import PARTS, Subscription
from narrowcast.deliver.parts.effects import Deliver, Subscribed
from narrowcast.deliver.parts.events import Consumed

TOTAL = 500


class CountingEdge:
    """Hands over what there is credit for, in batches of one size."""

    def __init__(self, credit: int, size: int) -> None:
        self.credit, self.size, self.sent, self.told = credit, size, 0, 0
        self.subscription: Any = None

    def tell(self, event: Consumed) -> None:
        self.told += 1
        self.credit += event.messages
        self.hand_over()

    def hand_over(self) -> None:
        while self.sent < TOTAL and self.credit:
            n = min(self.size, self.credit, TOTAL - self.sent)
            self.credit -= n
            messages = [(self.sent + k + 1, b"{}") for k in range(n)]
            self.sent += n
            self.subscription._take(Deliver("ann", 0, messages, self.sent))


@pytest.mark.parametrize("credit", [1, 7, 8, 20, 1000])
@pytest.mark.parametrize("size", [1, 3, 50])
def test_everything_comes_whatever_the_credit_and_the_edge_is_told_in_parts(credit: int, size: int) -> None:
    edge = CountingEdge(credit, size)
    subscription = Subscription(cast(Any, SimpleNamespace(_edge=edge)), "ann", "p > 1", None, credit)
    edge.subscription = subscription
    subscription._take(Subscribed("ann", {0: 0}))

    async def run() -> None:
        edge.hand_over()
        places: list[int] = []
        while len(places) < TOTAL:
            places += (await asyncio.wait_for(anext(subscription), 5)).places
        assert places == list(range(1, TOTAL + 1))

    asyncio.run(run())
    assert edge.told <= TOTAL / max(1, credit // PARTS)
