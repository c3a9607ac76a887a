"""Entitlements: what is wanted and allowed, and who may hold the key of which session."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.entitlement import may_hold
from narrowcast.deliver.parts.effects import PlanWanted
from narrowcast.deliver.parts.reader import Reader
from narrowcast.deliver.processes.planner import apart
from narrowcast.deliver.routing.routes import PULSE, Subscribers, by_content, by_flows, by_tree
from narrowcast.deliver.routing.routing import Routing, checksum_of, part_of
from narrowcast.deliver.transport import Multicast, Overlay, Unicast
from narrowcast.deliver.trust.entitlement import effective, is_within, kept_apart, plan_view
from narrowcast.deliver.wire import Pulse
from narrowcast.errors import InputError
from narrowcast.profiles import Profile
from narrowcast.profiles.parsed import parsed

MESSAGES = [{"s": s, "r": r, "p": p} for s, r, p in product("abcd", ("EU", "US"), (1, 5, 9))]
TERMS = st.sampled_from(["s = 'a'", "s IN ('a', 'b')", "s = 'c'", "r = 'EU'", "r = 'US'", "p > 3", "p < 7", "s <> 'b'"])
PROFILES = st.lists(TERMS, min_size=1, max_size=3).flatmap(
    lambda terms: st.sampled_from([" AND ".join(terms), " OR ".join(terms)])
)


@settings(max_examples=150, deadline=None)
@given(PROFILES, PROFILES)
def test_what_one_gets_is_wanted_and_allowed_and_stays_so(wanted: str, entitled: str) -> None:
    try:
        found = effective(wanted, entitled)
    except InputError:
        assert not any(Profile.parse(wanted).matches(m) and Profile.parse(entitled).matches(m) for m in MESSAGES)
        return
    both = [Profile.parse(wanted).matches(m) and Profile.parse(entitled).matches(m) for m in MESSAGES]
    assert [Profile.parse(found).matches(m) for m in MESSAGES] == both
    assert effective(found, entitled) == found


@settings(max_examples=150, deadline=None)
@given(st.lists(PROFILES, min_size=1, max_size=4), PROFILES, st.sampled_from(["flows", "content"]))
def test_nobody_holds_the_key_of_a_session_that_carries_what_they_may_not_see(
    wishes: list[str], entitled: str, kind: str
) -> None:
    names = {f"u{k}": wish for k, wish in enumerate(wishes)}
    profiles = {}
    for name, wish in names.items():
        try:
            profiles[name] = effective(wish, entitled)
        except InputError:
            continue
    who = Subscribers(profiles, {name: f"edge {name}" for name in profiles})
    if kind == "flows":
        routing = by_flows(["s"], {"a": 0, "b": 0, "c": 1}, {0: 0, 1: 1}, who, unicast=[("c", "u0")])
    else:
        routing = by_content({0: parsed("p > 3"), 1: parsed("s = 'a'")}, {0: Multicast(0, 0), 1: Multicast(1, 1)}, who)
    limits = dict.fromkeys(profiles, entitled)
    final = apart(routing, who, kept_apart(routing, limits))
    for name in profiles:
        assert name in final.taken
        for channel in final.taken[name]:
            assert may_hold(final, channel, entitled, MESSAGES), (name, channel, final)
        mine = [m for m in MESSAGES if parsed(profiles[name]).matches(m)]
        assert all(set(final.route(m)[1]) & set(final.taken[name]) for m in mine), "left out"


def test_whoever_may_see_all_of_a_session_shares_it_and_whoever_may_not_is_served_apart() -> None:
    who = Subscribers({"ann": "s = 'a'", "boss": "p > 0"}, {"ann": "x", "boss": "y"})
    routing = by_flows(["s"], {"a": 0, "b": 1}, {0: 0, 1: 1}, who)
    assert kept_apart(routing, {"ann": "s = 'a'", "boss": None}) == []
    assert kept_apart(routing, {"ann": "s = 'a' AND p > 3", "boss": "s IN ('a', 'b')"}) == ["ann", "boss"]
    rest = routing.rest[0]
    assert not is_within(routing, rest, parsed("s = 'a'"), "ann")
    strange = Routing({7: Multicast(0, 7)}, {"ann": (7,)})
    assert not is_within(strange, 7, parsed("s = 'a'"), "ann"), "nobody knows what it carries"


def test_trees_are_not_for_accounts_and_a_channel_beside_a_tree_is_only_theirs() -> None:
    tree = by_tree(Overlay("v0", (("v0", "v1"),)), ["v0"])
    who = Subscribers({"ann": "s = 'a'", "old": "s = 'b'"}, {"ann": "x", "old": "y"}, {"y": "v1"})
    names = kept_apart(tree, {"ann": None})
    assert names == ["ann"]
    final = apart(tree, who, names)
    assert final.addresses[final.taken["ann"][0]] == Unicast("ann")
    assert final.profiles.keys() == {"ann"}, "who climbs is not listed, so that it makes no new epoch"
    view = plan_view(final, lambda name: name == "ann")
    assert not view.climbs
    assert view.addresses.keys() == set(view.taken["ann"])


def test_the_part_of_a_plan_has_nothing_of_others_and_the_checksum_of_the_whole() -> None:
    who = Subscribers({"ann": "s = 'a'", "bob": "s = 'b'"}, {"ann": "x", "bob": "y"})
    whole = by_flows(["s"], {"a": 0, "b": 1}, {0: 0, 1: 1}, who).to_bytes()
    part = part_of(whole, plan_view(Routing.from_bytes(whole), lambda name: name == "ann"))
    assert checksum_of(part) == checksum_of(whole)
    shown = Routing.from_bytes(part)
    assert (shown.taken, shown.edges, shown.pulse) == ({"ann": (0,)}, {"ann": "x"}, PULSE)
    assert "bob" not in repr(shown)
    assert "'b'" not in repr(shown)
    with pytest.raises(ValueError, match="routing"):
        Routing.from_bytes(b"view" + whole[:6])


def test_heartbeats_of_relays_led_to_an_account_say_nothing_of_its_channels() -> None:
    """Somebody sent a relay's pulse on, it was taken for the source's, and a message was missed: seed 21003523."""
    ways = {1: Unicast("ann"), 2: Unicast("~rest/r"), 3: Overlay("v0", (("v0", "v1"),))}
    taken = {"ann": (1,), "bob": (2,), "~relay r": (3,)}
    edges = {"ann": "x", "bob": "y", "~relay r": "r"}
    profiles = dict.fromkeys(taken, "p > 0")
    plan = Routing(ways, taken, profiles=profiles, edges=edges, pulse=PULSE, relayed={2: "~relay r"})
    view = Routing.from_bytes(part_of(plan.to_bytes(), plan_view(plan, lambda name: name == "ann")))
    for routing in (plan, view):
        reader = Reader("ann", 0, parsed("p > 0"), 5)
        reader.take_channels({1: frozenset({1})})
        reader.feel(Pulse(0, 1, 5, 9, ((2, 9),)), routing, 0.0)
        assert reader.reach() == 5, "the relay knows only of its own channels"
        reader.feel(Pulse(0, 1, 5, 9, ((3, 9),)), routing, 0.0)
        assert reader.reach() == 9
    assert "relay r" not in repr(view)
    assert view.addresses.keys() == {1}


def test_the_default_is_that_nobody_has_an_account() -> None:
    assert PlanWanted(1, 1, {}, {}, {}, ()).entitled == {}
