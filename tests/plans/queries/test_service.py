"""The service without a network: whatever queries come and go, each client's answers are what it would get alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.plans.queries.judge import cost, faults
from narrowcast.plans.queries.plan import make
from narrowcast.plans.queries.result import QueriesPlan, QueryDemand
from narrowcast.plans.queries.route import route
from narrowcast.plans.queries.service.answers import Query, answer
from narrowcast.plans.queries.service.messages import (
    AnswerReceiver,
    answer_messages,
    directory_messages,
    end_messages,
)
from narrowcast.plans.queries.service.server import QueryChange, QueryService
from narrowcast.plans.queries.sizes import GridHistogram

CHANNELS = 4


def places(n: int = 600, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"x": rng.uniform(0, 100, n), "y": rng.uniform(0, 100, n), "id": np.arange(n)})


def ask(rng: np.random.Generator, name: str, client: str, every: int = 1) -> Query:
    x, y = rng.uniform(0, 85, 2)
    profile = f"x BETWEEN {x:.3f} AND {x + 12:.3f} AND y > {y:.3f} AND y <= {y + 12:.3f}"
    return Query(name, client, nc.Profile.parse(profile), every)


def begin(queries: list[Query], table: pa.Table, procedure: str = "rectangle", channels: int | None = CHANNELS):
    points = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], 1)
    boxes = nc.queries.range_boxes([q.profile for q in queries], ["x", "y"])
    names, clients = tuple(q.query for q in queries), tuple(q.client for q in queries)
    demand = QueryDemand(boxes, ("x", "y"), names, clients)
    grid = GridHistogram.from_points(points, 20)
    return make(demand, procedure=procedure, km=20, kt=1, ku=0.1, size=grid, channels=channels)


def sent(service: QueryService, table: pa.Table, period: int, clients) -> list[dict]:
    headers = service.headers(period)
    found = list(directory_messages(period, {client: service.listens(client) for client in clients}))
    for one in answer(table, headers):
        found += answer_messages(period, one)
    return found + list(end_messages(period, Counter(header.physical for header in headers)))


def taken_all(client: str, messages: list[dict]) -> list:
    receiver = AnswerReceiver(client)
    return [found for message in messages for found in receiver.take(message)]


def direct(query: Query, table: pa.Table) -> list[dict]:
    rows, _ = nc.Matcher([query.profile]).match(table)
    return table.take(rows).to_pylist()


@pytest.mark.parametrize("procedure", ["rectangle", "polygon"])
def test_clients_extract_exactly_their_answers_while_queries_come_and_go(procedure):
    rng = np.random.default_rng(1)
    queries = {f"q{i}": ask(rng, f"q{i}", f"c{i % 7}", every=1 + i % 3) for i in range(40)}
    service = QueryService(begin(list(queries.values()), places(), procedure))
    receivers = {f"c{i}": AnswerReceiver(f"c{i}") for i in range(9)}
    heard: Counter[str] = Counter()
    for period in range(6):
        table = places(seed=period)
        changed = service.follow(queries.values())
        for message in sent(service, table, period, service.clients if period == 0 else changed.retuned):
            for client, receiver in receivers.items():
                for found in receiver.take(message):
                    mine = {q.query: q for q in queries.values() if q.client == client and period % q.every == 0}
                    assert found.answers.keys() == mine.keys()
                    heard[client] += 1
                    for name, got in found.answers.items():
                        assert sorted(got.to_pylist(), key=repr) == sorted(direct(mine[name], table), key=repr)
        plan = service.plan()
        assert faults(plan.to_tables()) == []
        assert cost(plan.to_tables())["total"] == pytest.approx(plan.cost.total)
        assert len(set(plan.physical)) <= CHANNELS
        gone = rng.choice(list(queries), 3, replace=False)
        for name in gone:
            del queries[name]
        for i in range(3):
            queries[f"n{period}-{i}"] = ask(rng, f"n{period}-{i}", f"c{rng.integers(9)}")
        name = next(iter(queries))
        queries[name] = ask(rng, name, queries[name].client)  # asks something else under its old name
    assert min(heard[f"c{i}"] for i in range(7)) >= 5


def test_the_plan_that_follows_stays_close_to_one_made_anew():
    rng = np.random.default_rng(3)
    queries = [ask(rng, f"q{i}", f"c{i % 20}") for i in range(300)]
    table = places(4000)
    service = QueryService(begin(queries, table))
    for step in range(10):
        queries = queries[3:] + [ask(rng, f"s{step}-{i}", f"c{i}") for i in range(3)]
        service.follow(queries)
    anew = begin(queries, table)
    merging = [plan.cost.total - plan.cost.overheard for plan in (service.plan(), anew)]
    assert merging[0] <= merging[1] + 0.1 * (anew.baseline - merging[1])
    assert service.plan().cost.total <= 1.15 * anew.cost.total


def test_who_is_not_touched_stays_where_it_is():
    rng = np.random.default_rng(5)
    queries = [ask(rng, f"q{i}", f"c{i}") for i in range(60)]
    service = QueryService(begin(queries, places()))
    before = {q.client: service.listens(q.client) for q in queries}
    assert service.follow(queries) == QueryChange(0, 0, ())
    followed = service.follow(queries[1:])
    moved = {c for c, channels in before.items() if service.listens(c) != channels}
    assert moved == set(followed.retuned) >= {"c0"}
    assert len(moved) <= 6


def test_answers_lost_on_the_way_are_said_and_never_passed_over():
    rng = np.random.default_rng(2)
    queries = [ask(rng, f"q{i}", "ann") for i in range(6)]
    service = QueryService(begin(queries, places()))
    whole = sent(service, places(), 0, ["ann"])
    for lost in range(1, len(whole)):
        if "sets" not in whole[lost]:
            with pytest.raises(InputError, match="lacks"):
                taken_all("ann", whole[:lost] + whole[lost + 1 :])
    receiver = AnswerReceiver("ann")
    assert receiver.take({"price": 3}) == receiver.take({"answer_channel": "x", "period": 0}) == ()
    assert sum(len(receiver.take(message)) for message in whole + whole) >= 1


def test_names_of_clients_are_only_names():
    receiver = AnswerReceiver("o'hara' OR 1 = 1 --")
    assert nc.Profile.parse(receiver.profile).matches({"answer_channel": -1, "answer_client": "o'hara' OR 1 = 1 --"})
    assert not nc.Profile.parse(receiver.profile).matches({"answer_channel": -1, "answer_client": "ann"})


def test_answers_travel_in_the_group_of_their_physical_channel_and_nobody_takes_others():
    rng = np.random.default_rng(4)
    queries = [ask(rng, f"q{i}", f"c{i % 5}") for i in range(30)]
    plan = QueriesPlan.from_tables(begin(queries, places()).to_tables())
    receiver = AnswerReceiver("c1", QueryService(plan).listens("c1"))
    row = nc.queries.box_profile(plan.demand.boxes[3], plan.demand.attributes).text
    who = Subscribers({"answers": receiver.profile, "rows": row}, {"answers": "a", "rows": "b"})
    found = route(plan, who)
    for channel in range(CHANNELS):
        (session,) = found.route({"answer_channel": channel})[1]
        assert found.addresses[session].group == channel
        assert (session in found.taken["answers"]) == (channel in receiver.channels)
    (told,) = found.route({"answer_channel": -1, "answer_client": "c1"})[1]
    assert told in found.taken["answers"]
    at = next(i for i, members in enumerate(plan.sets) if 3 in members)
    assert found.taken["rows"] == (plan.numbers[at],)
    assert found.addresses[plan.numbers[at]].group == plan.physical[at]


def test_plans_without_physical_channels_and_exact_ones():
    rng = np.random.default_rng(6)
    queries = [ask(rng, f"q{i}", "c") for i in range(5)]
    service = QueryService(begin(queries, places(), channels=None))
    assert len({header.physical for header in service.headers()}) == len(service.headers())
    exact = QueryService(begin(queries, places(), "exact", channels=None))
    assert exact.plan().procedure == "exact"
    with pytest.raises(UnsupportedError, match="answer --plan does"):
        exact.headers()


def test_a_plan_on_channels_with_real_sizes_is_swept_adapted_and_explained(tmp_path):
    rng = np.random.default_rng(7)
    queries = [ask(rng, f"q{i}", f"c{i % 4}") for i in range(12)]
    plan = begin(queries, places()).save(tmp_path / "plan")
    read = nc.load(tmp_path / "plan")
    assert nc.check(read).sound
    assert (read.physical, read.cost.total) == (plan.physical, pytest.approx(plan.cost.total))
    swept = nc.whatif(read, channels=[1, 2, 8], workers=1)
    costs = {int(point.settings["channels"]): point.found for point in swept.points}
    assert costs[4] == pytest.approx(plan.cost.total)
    assert costs[1] >= costs[2] >= costs[4] >= costs[8]
    assert "own size" in nc.explain(read, query="q3").facts
    profiles = {q.query: q.profile.text for q in queries[2:]}
    interest = nc.Interest.from_pairs([0], [0], [1.0])
    now = nc.Demand(interest, profiles=profiles)
    from narrowcast.plans.continued import Budget
    from narrowcast.plans.kinds import kind_of

    adapted = kind_of("queries").replan.continued(read, now).improved(Budget()).plan()
    assert (len(adapted.demand.boxes), adapted.parameters["size"]) == (10, "histogram")
    assert nc.check(adapted).sound
    assert adapted.physical is not None


@pytest.mark.parametrize("damage", ["two", "none", "many", "grid"])
def test_the_judge_finds_damaged_channels_and_sizes(damage):
    from dataclasses import replace

    rng = np.random.default_rng(8)
    plan = begin([ask(rng, f"q{i}", f"c{i}") for i in range(9)], places())
    tables = plan.to_tables()
    changed = dict(tables.tables)
    held = changed["physical"]
    if damage == "two":
        changed["physical"] = pa.concat_tables([held, held.slice(0, 1)])
    elif damage == "none":
        changed["physical"] = held.slice(1)
    elif damage == "grid":
        changed["grid"] = pa.table({"cell": pa.array([10**9]), "count": pa.array([1.0])})
    parameters = {**tables.parameters, "channels": 1} if damage == "many" else tables.parameters
    assert faults(replace(tables, tables=changed, parameters=parameters))


def test_a_plan_is_checked_with_messages():
    from dataclasses import replace

    rng = np.random.default_rng(9)
    queries = [ask(rng, f"q{i}", f"c{i}") for i in range(10)]
    tables, messages = begin(queries, places()).to_tables(), places()
    wants = pa.table({"subscriber": [q.query for q in queries], "profile": [q.profile.text for q in queries]})
    found = nc.plans.verbs.check_tables(tables, messages, wants)
    assert found.sound
    assert found.checked[-1].endswith("wanted messages reach their subscribers")
    wider = wants.set_column(1, "profile", pa.array(["x >= 0"] * 10))
    assert any("misses" in fault for fault in nc.plans.verbs.check_tables(tables, messages, wider).faults)
    other = replace(tables, tables={**tables.tables})
    stranger = pa.table({"subscriber": ["zoe"], "profile": ["x >= 0"]})
    assert "zoe is no query" in nc.plans.verbs.check_tables(other, messages, stranger).faults[0]


def test_exact_covers_that_would_be_too_large_are_refused_at_once_and_the_advice_works():
    import time

    boxes = nc.workloads.rectangles(n=150, seed=2)
    begun = time.process_time()
    with pytest.raises(InputError, match="too many cells"):
        nc.queries.merge(boxes, "directed", procedure="exact")
    assert time.process_time() - begun < 1.0
    assert len(nc.queries.merge(boxes[:60], "pair", procedure="exact").sets) >= 1
    assert len(nc.queries.merge(boxes[:60], "pair", procedure="polygon").sets) >= 1
