"""The relay of a site: what it says in the site it has got, and what is lost in the site it sends again."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from narrowcast.deliver.parts.effects import Effect, Join, PlanWanted, Send
from narrowcast.deliver.parts.events import Arrived, Located, Noted, Tick, WasRead
from narrowcast.deliver.parts.site_relay import RelaySettings, SiteRelay, SiteSender
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.sites import SiteRoutes, by_sites, relay_subscription, site_asks
from narrowcast.deliver.transport import Entry, Multicast, Overlay
from narrowcast.deliver.wire import Attach, Batch, ColumnBatch, Frame, Marker, Pulse, encode_entry, end_of, place
from narrowcast.deliver.wire.columns import Columns, encode_columns
from simulator import Schedule, simulate
from simulator.parts import Parts, network_plan
from simulator.world import World

SITES = ("broker-1", "broker-2", "broker-0")
RELAY = relay_subscription("relay")


def only_networks(wanted: PlanWanted, rng: Random) -> Routing:
    who = Subscribers(wanted.subscriptions, wanted.edges, wanted.gateways)
    return network_plan(who, wanted, rng)


def run(counts: Counter[str], **schedule: object) -> None:
    outcome = simulate(Schedule(relays=SITES, **schedule), Parts(planner=only_networks))  # type: ignore[arg-type]
    assert outcome.good, outcome
    counts.update(outcome.counts)


@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.long)])
def test_relays_die_frames_are_lost_and_plans_change_and_nothing_is_missed_repeated_or_wrong(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + (6 if first == 0 else 60)):
        run(counts, seed=seed, loss=0.05, reorder=0.1, relay_crashes=4, offers=3, churn=3, crashes=1, restores=seed % 2)
    assert counts["crash"] >= 30
    assert counts["relay relayed"] > 500
    assert counts["relay repaired"] > 20, "no relay ever read the log for its site"


@pytest.mark.long
@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.slow)])
def test_columns_are_relayed_as_columns_through_the_same_disasters(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: Counter[str] = Counter()
    send = SiteSender._do

    def counted(self: SiteSender, effect: Effect) -> None:
        if isinstance(effect, Send) and isinstance(effect.what, Frame):
            sent["columns" if isinstance(effect.what.messages, Columns) else "one by one"] += len(effect.what.messages)
        send(self, effect)

    monkeypatch.setattr(SiteSender, "_do", counted)
    counts: Counter[str] = Counter()
    for seed in range(3 * first, 3 * first + (12 if first == 0 else 120), 3):  # whose sources send few rows as columns
        run(counts, seed=seed, columns=1.0, loss=0.05, reorder=0.1, relay_crashes=4, offers=3, churn=3, crashes=1)
    assert sent["columns"] > 200
    assert sent["one by one"] < 0.05 * sent["columns"], "frames that come together are one, and no columns any more"


def test_without_faults_subscribers_of_a_network_hardly_read_the_log_and_relays_do_not() -> None:
    counts: Counter[str] = Counter()
    for seed in range(8):
        run(counts, seed=seed, batches=60)
    assert counts["edge repaired"] < 0.1 * counts["edge delivered"]
    assert counts["relay repaired"] == 0


def test_what_is_lost_in_a_site_is_sent_again_by_its_relay_and_not_read_from_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    carry, rng = World._carry, Random(7)

    def lossy(self: World, source: str, target: str, data: bytes) -> None:
        if not (source.startswith("relay") and target.startswith("edge") and rng.random() < 0.2):
            carry(self, source, target, data)

    monkeypatch.setattr(World, "_carry", lossy)
    counts: Counter[str] = Counter()
    for seed in range(8):
        run(counts, seed=seed, batches=60)
    assert counts["relay sent again"] > 100
    # What is sent again is lost as often: a frame four times in a row, of which there are several in a hole.
    assert counts["edge repairs"] < 0.04 * counts["edge asked"]
    assert counts["relay repaired"] == 0


# By hand: a relay at b1 whose site wants flow a by a session and b by unicast.

TREE = Overlay("b0", (("b0", "b1"),))


def a_relay(**settings: object) -> tuple[SiteRelay, Routing]:
    texts = {"ann": "s IN ('a', 'b')", RELAY: "TRUE"}
    who = Subscribers(texts, {"ann": "desk", RELAY: "relay"}, {"desk": "b1", "relay": "b1"})
    site = SiteRoutes("b1", {"a": 0}, {0: 0}, frozenset({("b", "ann")}))
    routing = by_sites(["s"], [site], {"a": TREE, "b": TREE}, Overlay("b0"), who)
    relay = SiteRelay("relay", (0,), RelaySettings(**settings), gateway="b1")  # type: ignore[arg-type]
    relay.step(Tick(), 0.0)
    (locate,) = [request for request, asked in relay._asked.items() if asked[0] == RELAY]
    relay.step(Located(locate, 0, 10), 0.0)
    relay.step(Noted("plan.1", routing.to_bytes(), 1), 0.0)
    epoch = b'{"term":1,"current":1,"next":null,"phase":"steady","cutover":{"0":10}}'
    effects = relay.step(Noted("epoch", epoch, 2), 0.0)
    assert not [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.what, Frame)]
    return relay, routing


def sent(effects: list[object]) -> list[Frame | Pulse]:
    return [e.what for e in effects if isinstance(e, Send) and not isinstance(e.what, Attach)]


def frame(after: int, upto: int, *messages: tuple[int, int, bytes]) -> Arrived:
    return Arrived(Frame(0, 1, 1, after, upto, messages))


A, B = (place(11, 0), 0, b'{"s":"a"}'), (place(11, 1), 1, b'{"s":"b"}')


def test_it_claims_in_its_site_what_its_own_mark_has_passed_and_nothing_beyond_a_hole() -> None:
    relay, routing = a_relay()
    assert relay.step(frame(end_of(11), end_of(12), (place(12, 0), 0, b'{"s":"a"}')), 0.0) == []
    found = sent(relay.step(frame(end_of(10), end_of(11), A, B), 0.0))
    by_channel = {each.channel: each for each in found if isinstance(each, Frame)}
    assert {routing.addresses[c] for c in by_channel} == {Multicast(0, 2), routing.addresses[max(by_channel)]}
    assert [at for f in found if isinstance(f, Frame) and f.channel == 2 for at, _, _ in f.messages] == [
        place(11, 0), place(12, 0),
    ]  # fmt: skip
    assert all(each.upto <= end_of(12) for each in found)


def test_its_heartbeats_name_one_of_its_channels() -> None:
    relay, routing = a_relay()
    relay.step(frame(end_of(10), end_of(12)), 0.0)
    pulses = [each for each in sent(relay.step(Tick(), 1.0)) if isinstance(each, Pulse)]
    assert pulses
    assert all(routing.relay_of(each.lately[0][0]) == RELAY for each in pulses)


def test_it_sends_again_what_it_is_asked_for_once_for_all_who_ask_and_forgets_the_oldest() -> None:
    relay, _ = a_relay(kept_bytes=20)
    relay.step(frame(end_of(10), end_of(11), A, B), 0.0)
    ask = Arrived(Attach(f"0 {end_of(10)} {end_of(11)}", 1, 2))
    assert [each.messages for each in sent(relay.step(ask, 0.2))] == [(A,)]
    assert sent(relay.step(ask, 0.21)) == [], "asked again at once"
    assert [each.messages for each in sent(relay.step(ask, 0.3))] == [(A,)]
    for n in range(12, 20):
        relay.step(frame(end_of(n - 1), end_of(n), (place(n, 0), 0, b'{"s":"a"}')), 0.5)
    assert sent(relay.step(ask, 0.9)) == [], "it keeps more than it may"


def test_asked_for_what_is_not_there_it_says_so_also_for_the_plan_before() -> None:
    relay, _ = a_relay()
    relay.step(frame(end_of(10), end_of(11), A, B), 0.0)
    relay.step(frame(end_of(11), end_of(13)), 0.1)
    tail = sent(relay.step(Arrived(Attach(f"0 {end_of(11)} {end_of(13)}", 1, 2)), 0.2))
    assert tail == [Frame(0, 2, 1, end_of(11), end_of(13))]
    assert sent(relay.step(Arrived(Attach(f"0 {end_of(13)} {end_of(20)}", 1, 2)), 0.2)) == [], "it does not know that"
    relay._outgoing[0].turn(2, end_of(13))
    again = sent(relay.step(Arrived(Attach(f"0 {end_of(11)} {end_of(13)}", 1, 2)), 0.4))
    assert [(each.after, each.upto) for each in again if isinstance(each, Frame)] == [(end_of(11), end_of(13))]


def test_rows_go_on_as_columns_each_to_the_channels_of_its_flow_and_from_the_log_too() -> None:
    batch = pa.RecordBatch.from_pylist([{"s": "a", "n": 1}, {"s": "b", "n": 2}, {"s": "a", "n": 3}])
    rows = Columns(place(11, 0) - 1, np.arange(3), batch, None, np.array([0, 1, 0]))
    relay, _ = a_relay()
    by_tree = sent(relay.step(Arrived(Frame(0, 1, 1, end_of(10), end_of(11), rows)), 0.0))
    relay, _ = a_relay()
    reader = relay.subscriptions[RELAY].readers[0]
    relay._read(reader, 0.0)
    entry = Entry(11, encode_entry(ColumnBatch("p", 1, 3, encode_columns(batch))))
    from_log = sent(relay.step(WasRead(reader.reading, 0, 10, 11, (entry,)), 0.0))
    for found in (by_tree, from_log):
        frames = {each.channel: each.messages for each in found if isinstance(each, Frame) and each.messages}
        assert all(isinstance(messages, Columns) for messages in frames.values())
        assert {c: [row["n"] for row in m.batch.to_pylist()] for c, m in frames.items()} == {2: [1, 3], 4: [2]}  # type: ignore[attr-defined]


def test_a_plan_that_comes_after_its_marker_is_not_said_to_have_nothing() -> None:
    """What the log brings is given flows by a plan; one that was not known yet has to be taken up first."""
    relay, routing = a_relay()
    reader = relay.subscriptions[RELAY].readers[0]

    def read(*entries: Entry) -> list[Frame]:
        relay._read(reader, 0.0)
        found = sent(
            relay.step(WasRead(reader.reading, 0, entries[0].sequence - 1, entries[-1].sequence, entries), 0.0)
        )
        return [each for each in found if isinstance(each, Frame) and each.epoch == 2]

    read(Entry(11, encode_entry(Marker(2))), Entry(12, encode_entry(Batch("p", 1, (b'{"s":"c"}',)))))
    assert relay._outgoing[0].in_force == 2
    relay.step(Noted("plan.2", routing.to_bytes(), 3), 0.0)
    claims = read(Entry(13, encode_entry(Batch("p", 2, (b'{"s":"a"}', b'{"s":"b"}')))))
    for channel, wanted in ((2, place(13, 0)), (4, place(13, 1))):
        of = [each for each in claims if each.channel == channel and each.after < wanted <= each.upto]
        assert all(wanted in [at for at, _, _ in each.messages] for each in of)
        assert of, "it said nothing at all, so nothing was tried"


@pytest.mark.parametrize("edge", ["", "x", "0 1", "0 1 2 3", "9 1 2", "-1 0 0", "0 " + "9" * 200 + " 1", "0 1e3 5"])
def test_asks_that_are_none_are_counted_and_answered_with_nothing(edge: str) -> None:
    relay, _ = a_relay()
    relay.step(frame(end_of(10), end_of(11), A, B), 0.0)
    assert sent(relay.step(Arrived(Attach(edge, 1, 2)), 0.2)) == []
    assert sent(relay.step(Arrived(Attach("0 0 5", 7, 99)), 0.2)) == []
    assert relay.counts["stray"] >= 1


def test_it_hears_who_asks_and_is_ready_to_send_before_it_says_that_it_is_ready() -> None:
    relay, routing = a_relay()
    assert site_asks(RELAY) in relay._joined
    assert relay._sends_to == set(routing.sent_by[RELAY].values())
    assert relay.ready == 1
    gone = relay.step(Noted("plan.1", None, 3), 0.1)
    assert not [effect for effect in gone if isinstance(effect, Join)]
