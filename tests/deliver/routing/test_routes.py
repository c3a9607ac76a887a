"""Whatever a profile matches goes to a channel that its subscription takes: for every kind of plan."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from narrowcast.deliver.processes.planner import with_key
from narrowcast.deliver.routing.audience import Audiences
from narrowcast.deliver.routing.routes import Subscribers, by_content, by_flows
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Multicast, Overlay, Unicast
from narrowcast.deliver.wire.frame import NO_FLOW
from narrowcast.errors import InputError
from narrowcast.model.plan import Plan
from narrowcast.plans.filters.result import TreeDemand, placed
from narrowcast.plans.kinds import kind_of
from narrowcast.plans.queries.plan import make as merged
from narrowcast.plans.queries.result import QueryDemand
from narrowcast.profiles import Profile
from narrowcast.profiles.flow_key import flow_name
from narrowcast.profiles.possible import candidates, possible, possible_elsewhere, split

SYMBOLS: tuple[Any, ...] = ("a", "b", "c", "d|e", "\\N", "7", 7, 7.0, 1.5, True, False, None, "new")
TERMS = (
    "s = 'a'",
    "s IN ('b', 'c')",
    "s <> 'a'",
    "s = '7'",
    "s IS NULL",
    "s LIKE 'd%'",
    "p > 4",
    "p < 3",
    "p IS NOT NULL",
    "s >= 'b'",
)
NUMBERS = ("n = 7", "n > 1", "n IN (7, 8)", "n <> 7", "n BETWEEN 1 AND 2", "b = TRUE", "b IS NULL")


@st.composite
def profiles(draw: st.DrawFn, terms: tuple[str, ...] = TERMS) -> str:
    text = draw(st.sampled_from(terms))
    for _ in range(draw(st.integers(0, 3))):
        joined = f"({text}) {draw(st.sampled_from(('AND', 'OR')))} {draw(st.sampled_from(terms))}"
        text = f"NOT ({joined})" if draw(st.booleans()) else joined
    return text


messages = st.fixed_dictionaries({"s": st.sampled_from(SYMBOLS), "p": st.sampled_from((None, 0, 5, 9))})


def sound(routing: Routing, texts: dict[str, str], message: dict[str, Any]) -> None:
    """Nobody who takes channels misses a message that they want."""
    _, channels = routing.route(message)
    for name, taken in routing.taken.items():
        if taken and Profile.parse(texts[name]).matches(message):
            assert set(taken) & set(channels), (name, texts[name], message, routing.flows, taken, channels)


@given(st.lists(profiles(), min_size=1, max_size=4), st.randoms(use_true_random=False), st.lists(messages, min_size=8))
def test_flows_in_sessions_are_sound(texts: list[str], rng: Random, stream: list[dict[str, Any]]) -> None:
    named = {f"u{k}": text for k, text in enumerate(texts)}
    flows = [flow_name({"s": s}, ["s"]) for s in SYMBOLS if rng.random() < 0.7]
    sessions = {flow: rng.randrange(3) for flow in flows}
    pairs = [(flow, name) for flow in flows for name in named if rng.random() < 0.2]
    who = Subscribers(named, dict.fromkeys(named, "edge"))
    routing = by_flows(["s"], sessions, {l: l % 2 for l in range(3)}, who, unicast=pairs)
    for message in stream:
        sound(routing, named, message)
        sound(Routing.from_bytes(routing.to_bytes()), named, message)


@given(st.lists(profiles(), min_size=1, max_size=4), st.randoms(use_true_random=False), st.lists(messages, min_size=8))
def test_a_flow_without_a_session_reaches_whoever_wants_it_also_those_the_plan_did_not_know(
    texts: list[str], rng: Random, stream: list[dict[str, Any]]
) -> None:
    """Nobody is left to the log, whatever the plan's own subscribers are called."""
    named = {f"u{k}": text for k, text in enumerate(texts)}
    flows = [flow_name({"s": s}, ["s"]) for s in SYMBOLS]
    sessions = {flow: 0 for flow in flows if rng.random() < 0.4}
    pairs = [(flow, name) for flow in flows for name in ("gone", "u0") if rng.random() < 0.6]
    who = Subscribers(named, dict.fromkeys(named, "edge"))
    routing = by_flows(["s"], sessions, {0: 0}, who, unicast=pairs)
    for message in stream:
        _, channels = routing.route(message)
        for name, text in named.items():
            if Profile.parse(text).matches(message):
                assert set(routing.taken[name]) & set(channels)
        ways = [routing.addresses[channel] for channel in channels]
        others = {way.name for way in ways if isinstance(way, Unicast)}
        assert others <= {name for name in named if name in routing.taken}


@given(profiles(), st.sampled_from(SYMBOLS), st.sampled_from((None, 0, 5, 9)))
def test_a_flow_that_cannot_match_does_not(text: str, s: Any, p: Any) -> None:
    profile, message = Profile.parse(text), {"s": s, "p": p}
    flow = flow_name(message, ["s"])
    if profile.matches(message):
        assert possible(profile.expression, flow, ["s"])
        assert possible_elsewhere(profile.expression, {"a", "b"} - {flow}, ["s"])
        named = candidates(profile.expression, ["s"])
        assert named is None or flow in named


@given(profiles(NUMBERS), st.sampled_from((7, 7.0, 8, 1.5, "7", None)), st.sampled_from((True, False, None)))
def test_numbers_and_booleans_as_keys_are_read_both_ways(text: str, n: Any, b: Any) -> None:
    profile, message = Profile.parse(text), {"n": n, "b": b}
    if profile.matches(message):
        assert possible(profile.expression, flow_name(message, ["n", "b"]), ["n", "b"])
        assert possible(profile.expression, flow_name(message, ["n"]), ["n"])
        assert possible_elsewhere(profile.expression, {"7.00"}, ["n"])


@given(st.lists(st.one_of(st.none(), st.text(alphabet="a|\\N", max_size=4)), min_size=2, max_size=3))
def test_two_keys_never_look_alike(values: list[str | None]) -> None:
    key = [f"k{i}" for i in range(len(values))]
    found = split(flow_name(dict(zip(key, values, strict=True)), key), len(values))
    assert found is not None
    assert [part or None for part in found] == [v if v not in ("", "\\N") else None for v in values]


def test_a_profile_that_names_its_flows_takes_no_more_than_it_needs() -> None:
    who = Subscribers({"u": "s IN ('a', 'b') AND p > 1", "w": "p > 1"}, {"u": "e", "w": "e"})
    routing = by_flows(["s"], {"a": 0, "b": 0, "c": 1}, {0: 0, 1: 0}, who)
    assert routing.taken == {"u": (0,), "w": (0, 1, 2)}
    assert routing.route({"s": "zzz"}) == (NO_FLOW, (2,))


@given(st.lists(profiles(), min_size=2, max_size=5), st.integers(0, 9), st.lists(messages, min_size=5))
def test_channels_by_content_are_sound_and_take_whom_they_cover(
    texts: list[str], seed: int, stream: list[dict[str, Any]]
) -> None:
    rng = Random(seed)
    named = {f"u{k}": text for k, text in enumerate(texts)}
    parts = [Profile.parse(text) for text in texts]
    contents = {c: Profile.any_of(p for p in parts if rng.random() < 0.6) for c in range(2)}
    who = Subscribers(named, dict.fromkeys(named, "edge"))
    routing = by_content(contents, {0: Multicast(0, 0), 1: Multicast(0, 1)}, who)
    for message in stream:
        sound(routing, named, message)
    whole = by_content({0: Profile.any_of(parts)}, {0: Multicast(0, 0)}, who)
    satisfiable = [name for name, part in zip(named, parts, strict=True) if part.boxes]
    assert set(satisfiable) <= set(whole.taken)


# Plans of every kind.


def routing_of(plan: Plan, who: Subscribers, groups: int | None = None) -> Routing:
    return kind_of(plan.kind).route.route(plan, who, groups)


def profiles_of(plan: Plan) -> dict[str, str]:
    return dict(kind_of(plan.kind).route.profiles(plan))


def test_a_channels_plan_and_its_interest_become_a_sound_routing() -> None:
    flow, user = [0, 0, 1, 2, 2, 3], [0, 1, 1, 2, 0, 2]
    interest = nc.Interest.from_pairs(
        flow, user, [4.0, 3.0, 2.0, 1.0], flow_names=["a", "b", "c", "d"], user_names=["x", "y", "z"]
    )
    plans = [
        nc.channels.plan(interest, groups=2, sessions=3, method="gf"),
        nc.channels.hybrid(interest, groups=2),
        nc.channels.hybrid(interest, groups=1, sessions=2, weights=(1, 1, 2)),
    ]
    assert plans[-1].to_tables().tables["session_group"].num_rows == 2
    for plan in (with_key(plan, ["s"]) for plan in plans):
        texts = profiles_of(plan)
        assert texts["x"] == "s IN ('a', 'c')"
        routing = routing_of(plan, Subscribers(texts, dict.fromkeys(texts, "e")))
        assert set(routing.taken) == {"x", "y", "z"}
        for symbol in "abcdz":
            sound(routing, texts, {"s": symbol})


def test_a_channels_plan_without_a_key_is_refused_with_the_way_out() -> None:
    interest = nc.Interest.from_pairs([0], [0], [1.0])
    plan = nc.channels.plan(interest, groups=1, sessions=1, method="gf")
    with pytest.raises(InputError, match="--key"):
        routing_of(plan, Subscribers({}, {}))


def test_a_query_plan_becomes_channels_of_merged_boxes() -> None:
    boxes = [[[0, 2], [0, 9]], [[1, 3], [0, 9]], [[8, 9], [5, 6]]]
    plan = merged(QueryDemand(boxes, ("x", "y"), names=("q0", "q1", "q2")), km=1, kt=1, ku=0.1)
    texts = profiles_of(plan)
    routing = routing_of(plan, Subscribers(texts, dict.fromkeys(texts, "e")))
    assert set(routing.taken) == {"q0", "q1", "q2"}
    for x in range(10):
        for y in range(10):
            sound(routing, texts, {"x": x, "y": y})


def test_many_merged_queries_share_the_groups_there_are_and_stay_sessions_of_their_own() -> None:
    boxes = [[[20 * k, 20 * k + 3]] for k in range(12)]
    plan = merged(QueryDemand(boxes, ("x",), names=tuple(f"q{k}" for k in range(12))), km=1, kt=1, ku=9)
    texts = profiles_of(plan)
    who = Subscribers(texts, {name: f"edge{int(name[1:]) % 3}" for name in texts})
    apart, shared = routing_of(plan, who), routing_of(plan, who, groups=3)
    assert len(apart.addresses) == 12, "each query is a set of its own here"
    addresses = [address for address in shared.addresses.values() if isinstance(address, Multicast)]
    assert {address.group for address in addresses} == {0, 1, 2}
    assert len({address.session for address in addresses}) == 12
    assert shared.taken == apart.taken
    for edge in set(who.edges.values()):
        groups = {shared.addresses[c].group for name in texts if who.edges[name] == edge for c in shared.taken[name]}  # type: ignore[union-attr]
        assert len(groups) == 1, "what one edge takes is together"
    for x in range(0, 240, 2):
        sound(shared, texts, {"x": x})


def test_a_filter_plan_becomes_one_channel_on_its_tree() -> None:
    tree = nc.Tree([-1, 0, 0], names=["w", "a", "b"])
    plan = placed(TreeDemand(tree, np.array([2.0, 1, 1])), [0], {"objective": "traffic", "k": 1})
    who = Subscribers({"u": "p > 1", "v": "p > 2"}, {"u": "e", "v": "f"}, {"e": "a", "f": "elsewhere"})
    routing = routing_of(plan, who)
    assert routing.addresses == {0: Overlay("w", (("w", "a"), ("w", "b")))}
    assert (routing.climbs, routing.taken) == (True, {})  # subscriptions climb by themselves
    assert routing.filters == ("w",)


@pytest.mark.parametrize("method", ["semcast", "merge", "noise-merge", "central"])
def test_a_semantic_plan_becomes_overlay_trees(method: str) -> None:
    topology = nc.Topology([(0, 1), (1, 2), (1, 3), (3, 4)])
    wanted, clients = ["p > 3", "p > 7", "p <= 1"], [(0, 2), (1, 3), (2, 4), (0, 4)]
    window = pa.table({"p": [0, 1, 2, 4, 5, 8, 9, 9]})
    plan = nc.semantic.plan(topology, wanted, clients, window, sources=0, method=method)
    profiles = {f"client{i}": wanted[k] for i, (k, _) in enumerate(clients)}
    edges = {name: f"edge-{name}" for name in profiles}
    gateways = {edges[f"client{i}"]: str(g) for i, (_, g) in enumerate(clients)}
    routing = routing_of(plan, Subscribers(profiles, edges, gateways))
    assert routing.taken
    for name, taken in routing.taken.items():
        for channel in taken:
            address = routing.addresses[channel]
            assert isinstance(address, Overlay)
            assert gateways[edges[name]] in address.brokers
    for p in range(-2, 14):
        sound(routing, profiles, {"p": p})


def searched(
    seed: int, brokers: int = 12, n: int = 60
) -> tuple[Plan, dict[str, str], Subscribers, list[dict[str, Any]]]:
    """A plan of `search` on a random overlay, and the subscriptions it was made for."""
    rng = Random(seed)
    links = [(rng.randrange(k), k) for k in range(1, brokers)] + [(0, brokers - 1), (1, brokers - 2)]
    wanted = ["p > 3", "p > 7", "p <= 1", "p BETWEEN 2 AND 5", "s = 'a'", "s = 'b' AND p < 6", "s <> 'a'"]
    clients = [(rng.randrange(len(wanted)), rng.randrange(2, brokers)) for _ in range(10)]
    stream = [{"p": rng.randrange(10), "s": rng.choice(("a", "b", "c"))} for _ in range(n)]
    window = pa.Table.from_pylist(stream)
    topology = nc.Topology(links, cost=[rng.randrange(1, 9) for _ in links])
    made = nc.semantic.plan(topology, wanted, clients, window, sources=0, method="search", seed=seed)
    profiles = {f"client{i}": wanted[k] for i, (k, _) in enumerate(clients)}
    edges = {name: f"edge-{name}" for name in profiles}
    gateways = {edges[f"client{i}"]: str(g) for i, (_, g) in enumerate(clients)}
    return made, profiles, Subscribers(profiles, edges, gateways), stream


@pytest.mark.parametrize("seed", range(4))
def test_a_semantic_plan_by_audience_sends_as_it_was_planned_and_reaches_everybody(seed: int) -> None:
    plan, profiles, who, stream = searched(seed)
    routing = Routing.from_bytes(routing_of(plan, who).to_bytes())
    assert set(routing.taken) == set(profiles), "everybody the plan was made for is served by it"
    for name, taken in routing.taken.items():
        for channel in taken:
            address = routing.addresses[channel]
            assert isinstance(address, Overlay)
            assert who.gateways[who.edges[name]] in address.brokers
    for message in [*stream, *({"p": p, "s": s} for p in (-1, 3, 99, None) for s in ("a", "b", "z", None))]:
        sound(routing, profiles, message)
    sample = plan.to_tables().tables["sample"]
    assert sample.num_rows
    assert routing.audiences is not None
    prices = {c: price for c, price, *_ in (*routing.audiences.channels, *routing.audiences.blocks)}
    for row in sample.to_pylist():
        chosen = routing.route(row)[1]
        # Ties are broken by the planner's own order; what it costs must be the same.
        assert sum(prices[c] for c in chosen) == pytest.approx(sum(prices[c] for c in row["_channels"])), row


def test_whoever_comes_after_a_plan_by_audience_is_reached_or_left_to_the_log() -> None:
    plan, profiles, who, stream = searched(7)
    more = {"late": "p > 1", "stranger": "p > 1", "nowhere": "p > 1"}
    known = next(iter(who.gateways.values()))
    edges = {**who.edges, "late": "e-late", "stranger": "e-stranger", "nowhere": "e-nowhere"}
    gateways = {**who.gateways, "e-late": known, "e-stranger": "not a broker"}
    routing = routing_of(plan, Subscribers({**profiles, **more}, edges, gateways))
    assert set(routing.taken) == {*profiles, "late"}
    for message in stream:
        sound(routing, {**profiles, **more}, message)


@given(
    st.lists(
        st.tuples(st.floats(0, 9), st.sets(st.sampled_from("abcde")), st.sets(st.sampled_from("abcde"))), max_size=5
    ),
    st.lists(st.integers(0, 1), min_size=5, max_size=5),
    st.sets(st.sampled_from("abcde")),
)
def test_every_choice_reaches_the_whole_audience(
    made: list[tuple[float, set[str], set[str]]], split_at: list[int], audience: set[str]
) -> None:
    channels = tuple((c, price, tuple(core & reach), tuple(reach)) for c, (price, core, reach) in enumerate(made))
    halves = [[g for g, half in zip("abcde", split_at, strict=True) if half == k] for k in (0, 1)]
    rule = Audiences(channels, tuple((9 + k, 1.0 + k, tuple(members)) for k, members in enumerate(halves)))
    chosen = rule.choose(frozenset(audience))
    for gateway in audience:
        assert set(chosen) & set(rule.taken_at(gateway)), "a gateway where it is wanted takes none of its channels"
    assert bool(chosen) == bool(audience)
