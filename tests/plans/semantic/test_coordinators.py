"""Several coordinators in a seeded simulator: delays, deaths and returns, one at a time."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import pytest

from narrowcast.plans.semantic.live.coordinators import (
    Acknowledge,
    ChannelCoordinator,
    ClientRecord,
    Reorganise,
    SendPeer,
    holders,
)

NAMES = ("a", "b", "c", "d", "e")


class World:
    """A network that delays each message by chance; the dead neither hear nor speak."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.now, self.count = 0.0, itertools.count()
        self.queue: list[tuple[float, int, str, str, object]] = []
        self.alive = {name: ChannelCoordinator(name, NAMES) for name in NAMES}
        self.next_tick = 0.0
        self.acknowledged: dict[str, int] = {}
        self.plans: list[Reorganise] = []
        for name, each in self.alive.items():
            self.done(name, each.start(self.now))

    def done(self, name: str, effects: list) -> None:
        for effect in effects:
            match effect:
                case SendPeer():
                    at = self.now + float(self.rng.uniform(0.01, 0.4))
                    heapq.heappush(self.queue, (at, next(self.count), name, effect.to, effect.message))
                case Acknowledge():
                    self.acknowledged[effect.client] = max(effect.version, self.acknowledged.get(effect.client, 0))
                case Reorganise():
                    self.plans.append(effect)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            first = self.queue[0][0] if self.queue else np.inf
            if min(first, self.next_tick) > end:
                self.now = end
                return
            if self.next_tick <= first:
                self.now = self.next_tick
                self.next_tick += 1.0
                for name in list(self.alive):
                    self.done(name, self.alive[name].tick(self.now))
            else:
                self.now, _, sender, to, message = heapq.heappop(self.queue)
                if to in self.alive:
                    self.done(to, self.alive[to].receive(self.now, sender, message))

    def kill(self, name: str) -> None:
        del self.alive[name]
        self.queue = [event for event in self.queue if event[2] != name and event[3] != name]
        heapq.heapify(self.queue)

    def revive(self, name: str) -> None:
        """Back with nothing in memory."""
        self.alive[name] = ChannelCoordinator(name, NAMES)
        self.done(name, self.alive[name].start(self.now))


@pytest.mark.parametrize("seed", range(25))
def test_what_was_acknowledged_is_in_every_later_plan_though_one_after_another_dies_and_returns(seed: int) -> None:
    world = World(seed)
    rng = np.random.default_rng([seed, 1])
    wanted: dict[str, list[ClientRecord]] = {}
    dead: str | None = None
    for _ in range(12):
        for _ in range(int(rng.integers(0, 6))):
            client = f"client {rng.integers(12)}"
            attributes = tuple(sorted(set(rng.choice(["price", "symbol", "venue", "size"], 2).tolist())))
            history = wanted.setdefault(client, [])
            text = None if rng.random() < 0.3 else f"price > {rng.integers(100)}"
            record = ClientRecord(client, len(history) + 1, text, attributes, int(rng.integers(9)))
            history.append(record)
            at = str(rng.choice(sorted(world.alive)))
            world.done(at, world.alive[at].submit(world.now, record))
            world.run(float(rng.uniform(0, 0.5)))
        world.run(1.0)
        if dead is None and rng.random() < 0.6:
            dead = str(rng.choice(sorted(world.alive)))
            world.kill(dead)
        elif dead is not None:
            world.revive(dead)
            dead = None
        world.run(6.0)  # the others notice and hand over
        assert {each.leader for each in world.alive.values()} == {min(world.alive)}
        safe = dict(world.acknowledged)
        before = len(world.plans)
        for name in sorted(world.alive):
            world.done(name, world.alive[name].reorganise(world.now))
        world.run(3.0)
        assert len(world.plans) == before + 1
        planned = {record.client: record for record in world.plans[-1].records}
        for client, version in safe.items():
            # What is planned is the version that was safe, or a later one that came in meanwhile.
            allowed = [record for record in wanted[client] if record.version >= version]
            assert planned.get(client) in [record if record.profile else None for record in allowed]
    assert [plan.term for plan in world.plans] == sorted({plan.term for plan in world.plans})
    assert world.acknowledged


def test_a_minority_does_not_plan() -> None:
    world = World(0)
    for name in ("a", "b", "c"):
        world.kill(name)
        world.run(6.0)
    world.done("d", world.alive["d"].reorganise(world.now))
    world.run(3.0)
    assert world.alive["d"].leader == "d"
    assert world.plans == []


def test_each_attribute_has_two_holders_and_a_death_moves_only_what_the_dead_one_held() -> None:
    attributes = [f"attribute {i}" for i in range(200)]
    before = {name: holders([name], NAMES) for name in attributes}
    after = {name: holders([name], NAMES[1:]) for name in attributes}
    assert all(len(found) == 2 for found in before.values())
    assert {name for found in before.values() for name in found} == set(NAMES)
    assert all(before[name] == after[name] for name in attributes if "a" not in before[name])
    assert holders(attributes[:2], NAMES) == before[attributes[0]] | before[attributes[1]]
