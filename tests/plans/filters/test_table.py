"""The subscription table: whatever a child wants, the parent filter knows of, at every moment."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from narrowcast.plans.filters.api import Forward, SubscriptionTable, Withdraw


@dataclass(frozen=True)
class Between:
    """A profile over one number, with exact `covers`."""

    low: int
    high: int

    def covers(self, other: object) -> bool:
        return isinstance(other, Between) and self.low <= other.low and other.high <= self.high

    def matches(self, message) -> bool:
        return self.low <= message["x"] <= self.high


def test_a_covered_subscription_is_forwarded_only_when_its_cover_goes():
    table = SubscriptionTable[Between]()
    assert table.subscribe("wide", "left", Between(0, 9)) == (Forward("wide", Between(0, 9)),)
    assert table.subscribe("narrow", "right", Between(2, 3)) == ()
    assert table.unsubscribe("wide") == (Forward("narrow", Between(2, 3)), Withdraw("wide"))
    assert table.unsubscribe("narrow") == (Withdraw("narrow"),)
    assert table.unsubscribe("narrow") == ()


def test_a_changed_profile_replaces_the_old_one_at_the_parent():
    table = SubscriptionTable[Between]()
    table.subscribe("a", 1, Between(0, 4))
    assert table.subscribe("a", 1, Between(3, 8)) == (Forward("a", Between(3, 8)),)
    table.subscribe("b", 2, Between(0, 9))
    assert table.subscribe("a", 1, Between(5, 6)) == (Withdraw("a"),)


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 6), st.integers(0, 2), st.integers(0, 9), st.integers(0, 4)),
        max_size=40,
    )
)
def test_a_chain_of_two_filters_never_loses_a_delivery(events):
    low, high = SubscriptionTable[Between](), SubscriptionTable[Between]()
    alive: dict[int, tuple[int, Between]] = {}
    for come, name, child, start, width in events:
        if come:
            profile = Between(start, start + width)
            alive[name] = (child, profile)
            told = low.subscribe(name, child, profile)
        else:
            alive.pop(name, None)
            told = low.unsubscribe(name)
        for message in told:
            if isinstance(message, Forward):
                high.subscribe(message.subscription, "low", message.profile)
            else:
                high.unsubscribe(message.subscription)
            for x in range(15):  # also between two messages
                wanted = {c for c, p in alive.values() if p.matches({"x": x})}
                assert set(low.children_for({"x": x})) == wanted
                assert high.children_for({"x": x}) or not wanted
