"""One run: build a small system, let things happen to it, heal it, and ask the checker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa

from history import History, HistoryVerdict, check
from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.broker import BrokerSettings, FilterMode
from narrowcast.deliver.parts.coordinator import CoordinatorSettings
from narrowcast.deliver.parts.edge import Edge, EdgeSettings
from narrowcast.deliver.parts.effects import Acked, Deliver, Gap, PlanWanted, Rejected, Subscribed, Unsure
from narrowcast.deliver.parts.events import Consumed, Planned, Publish, PublishColumns, Replan, Subscribe, Unsubscribe
from narrowcast.deliver.parts.part import Part
from narrowcast.deliver.parts.publisher import PublisherSettings
from narrowcast.deliver.parts.site_relay import RelaySettings
from narrowcast.deliver.parts.source import SourceSettings
from narrowcast.deliver.processes.planner import apart
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.wire import (
    Batch,
    ColumnBatch,
    decode_entry,
    decode_payload,
    encode_payload,
    end_of,
    index_of,
    sequence_of,
)
from narrowcast.deliver.wire.columns import ColumnRows, decode_columns, encode_columns, rows_of
from simulator.attacker import SYSTEM
from simulator.gate import ACCOUNT, ENTITLED, HOST
from simulator.parts import Parts
from simulator.schedule import Schedule
from simulator.workload import TEXTS, message, one_for_everybody, wants
from simulator.world import ENGINE, Host, World

BEAT = 0.3
PATIENCE = 25.0  # simulated seconds after healing by which everything must have arrived


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    schedule: Schedule
    verdict: HistoryVerdict
    drained: bool
    seconds: float  # simulated, from healing until everything was there
    steps: int
    held: int  # things in the containers of all parts, and keys in the registry: must not grow with time
    counts: dict[str, int] = field(default_factory=dict)
    let_in: tuple[str, ...] = ()  # what somebody got who may not have it

    @property
    def good(self) -> bool:
        return self.drained and self.verdict.sound and not self.let_in

    def __str__(self) -> str:
        end = f"drained in {self.seconds:.1f} s" if self.drained else "NOT DRAINED"
        return f"seed {self.schedule.seed}: {self.verdict}; {end}; {self.steps} steps"


@dataclass(slots=True)
class _Application:
    """A subscriber that stores what it gets together with its position: one write, never half of it.

    `name` is its own in the history; `key` is what the runtime calls it, which may have been another's before.
    """

    name: str
    key: str
    profile: str
    host: Host
    credit: int | None = None
    position: dict[int, int] | None = None
    active: bool = True


class _Run:
    def __init__(self, schedule: Schedule, parts: Parts) -> None:
        self.schedule, self.parts = schedule, parts
        self.history = History()
        self.history.asked = schedule.asked
        self.world = World(schedule, self.history, parts.log, parts.relay)
        self.rng = Random(schedule.seed * 2 + 1)
        self.payloads = Random(schedule.seed * 2 + 2)
        self.shards = tuple(range(schedule.shards))
        self.applications: list[_Application] = []
        self.served: dict[tuple[str, str], _Application] = {}  # by edge and key: who gets what comes out there
        self.published: dict[int, tuple[str, int, list[dict[str, Any]]]] = {}  # by token: whose, when, what
        self.messages = self.tokens = 0
        self.lost: set[tuple[int, int]] = set()  # shards and numbers of entries that a restored log no longer has
        self.healed_at = 0.0
        self.world.apps = {
            Acked: self._acked,
            Unsure: lambda host, effect: None,
            Rejected: lambda host, effect: self.published.pop(effect.token),
            Subscribed: self._subscribed,
            Deliver: self._delivered,
            Gap: self._gap,
            PlanWanted: self._plan,
        }
        self.world.restarted = self._restarted
        self._build()

    # The system.

    def _build(self) -> None:
        s, parts, world, shards = self.schedule, self.parts, self.world, self.shards
        source = SourceSettings(
            most_messages=s.frame_messages,
            most_bytes=s.frame_bytes,
            most_columns=5 * s.frame_bytes,
            few=(0, 2, 16)[s.seed % 3],
            settle=0.03,
            heartbeat=0.2,
            poll=0.04,
            retry=0.2,
            checkpoint=0.3,
            read_most=8,
        )
        edge = EdgeSettings(
            grace=0.08,
            patience=0.5,
            tail=0.08,
            retry=0.2,
            attach=0.2,
            register=1.0,
            report=0.25,
            read_most=8,
            most_held=6 if s.slow else 1000,
            most_lag=10 if s.slow else 10_000,
        )
        lead = CoordinatorSettings(
            ttl=0.4, renew=0.12, prepare=0.3, move=0.4, pause=0.5, every=1.0, alive=1.2, retry=0.2,
            seal=s.sealed,
        )  # fmt: skip

        def sealing(part: Part) -> Part:
            part.seal = parts.seal(SYSTEM, sealed=s.sealed, name=part.name)
            return part

        def coordinator(name: str) -> None:
            world.start(name, lambda n: parts.coordinator(name, shards, lead))

        def source_of(name: str, shard: int) -> None:
            world.start(name, lambda n: sealing(parts.source(name, shard, source, beat=BEAT)))

        def broker(name: str) -> None:
            world.start(name, lambda n: sealing(parts.broker(name, BrokerSettings(forget=0.7), beat=BEAT)))

        def edge_at(name: str, gateway: str | None) -> None:
            world.start(name, lambda n: sealing(parts.edge(name, shards, edge, gateway=gateway, beat=BEAT)))

        def relay(name: str, gateway: str) -> None:
            settings = RelaySettings(kept_s=2.0, kept_bytes=4000, edge=replace(edge, most_held=1000), source=source)
            world.start(name, lambda n: sealing(parts.site_relay(name, shards, settings, gateway=gateway, beat=BEAT)))

        def client(name: str) -> None:
            # Batches are numbered from 0 at every start, so every start has a name of its own.
            settings = PublisherSettings(linger=0.005, retry=0.2, window=5.0)
            world.start(name, lambda n: self._client(parts, f"{name}.{n}", settings))

        for name in ("coordinator-0", "coordinator-1"):
            coordinator(name)
        for shard in shards:
            for k in range(s.sources):
                source_of(f"source-{shard}-{k}", shard)
        for k in range(3):
            broker(f"broker-{k}")
        for name, gateway in (("edge-0", "broker-1"), ("edge-1", "broker-2"), ("edge-2", s.third_gateway)):
            edge_at(name, gateway)
        for k, gateway in enumerate(s.relays):
            relay(f"relay-{k}", gateway)
        for name in ("client-0", "client-1"):
            client(name)
        if s.spy:
            edge_at(HOST, None)
            world.put(*world.gate.account())
        self.clients = [host for name, host in world.hosts.items() if name.startswith("client")]
        self.edges = [host for name, host in world.hosts.items() if name.startswith("edge")]

    def _client(self, parts: Parts, name: str, settings: PublisherSettings) -> Part:
        return parts.client(name, settings)

    # What will happen.

    def plan_faults(self) -> None:
        s, rng, world = self.schedule, self.rng, self.world
        names = list(world.hosts)

        def when() -> float:
            return rng.uniform(0.4, s.seconds - 0.2)

        for k in range(s.subscriptions):
            world.at(0.02 + 0.05 * k, self.subscribe, s.slow and k == 0)
        for _ in range(s.batches):
            world.at(rng.uniform(0.5, s.seconds), self.publish)
        for _ in range(s.churn):
            world.at(when(), self.churn)
        for _ in range(s.returns):
            world.at(when(), self.leave_and_return)
        for _ in range(s.crashes):
            world.at(when(), world.crash, rng.choice(names), rng.uniform(0.05, 0.9))
        for _ in range(s.relay_crashes if s.relays else 0):
            world.at(when(), world.crash, f"relay-{rng.randrange(len(s.relays))}", rng.uniform(0.05, 0.9))
        for _ in range(s.pauses):
            name = rng.choice(names if rng.random() < 0.7 else names[:2])  # the first two coordinate
            world.at(when(), world.pause, name, rng.uniform(0.1, 1.3))
        for _ in range(s.partitions):
            apart = [name for name in (*names, ENGINE) if rng.random() < 0.3] or [rng.choice(names)]
            begin, seconds = when(), rng.uniform(0.1, 1.0)
            world.at(begin, world.partition, apart, seconds)
            if rng.random() < 0.4:  # misfortunes come together: a source starts again as the network comes back
                sources = [name for name in names if name.startswith("source")]
                world.at(begin + seconds - 0.02, world.crash, rng.choice(sources), rng.uniform(0.02, 0.08))
        for _ in range(s.outages):
            world.at(when(), world.outage, rng.uniform(0.1, 0.6))
        for _ in range(s.restores):
            world.at(when(), self.restore)
        for _ in range(s.truncations):
            world.at(when(), self.truncate)
        for _ in range(s.full_disks):
            world.at(when(), world.fill_disk, rng.uniform(0.1, 0.8))
        if s.spy:
            world.at(0.05, self.subscribe_spy)
        if s.revoked:
            world.at(when(), self.revoke)
        for _ in range(s.filter_moves):
            state = rng.choice((*FilterMode, None))
            world.at(when(), self.move_filter, f"broker-{rng.randrange(3)}", state)
        for k in range(s.offers):
            begin = when()
            world.at(begin, self.offer, k + 1)
            if rng.random() < 0.5:  # somebody does not prepare for it
                world.at(begin + 0.03, world.pause, rng.choice(names[2:]), rng.uniform(0.6, 1.3))

    def heal(self) -> None:
        world = self.world
        world.healed = True
        world.heal()
        for host in world.hosts.values():
            host.paused_until = min(host.paused_until, world.now)
            world.restart(host)
        self.healed_at = world.now

    def closing_round(self) -> None:
        """Everyone left has something to miss."""
        for k, each in enumerate(one_for_everybody(self.messages)):
            self._publish(self.clients[k % 2], k % len(self.shards), [each])
        self.messages += 5

    # Applications.

    def publish(self) -> None:
        host = self.rng.choice(self.clients)
        if host.up:
            batch = [message(self.messages + k, self.rng) for k in range(self.rng.choice((1, 1, 2, 5)))]
            self.messages += len(batch)
            self._publish(host, self.rng.choice(self.shards), batch)

    def _publish(self, host: Host, shard: int, batch: list[dict[str, Any]]) -> None:
        self.tokens += 1
        token = self.tokens
        self.published[token] = (host.name, self.history.now(), batch)
        if self.payloads.random() < self.schedule.columns:
            columns = pa.RecordBatch.from_pylist(batch)
            event: Publish | PublishColumns = PublishColumns(token, shard, len(batch), encode_columns(columns))
        else:
            event = Publish(token, shard, tuple(encode_payload(each) for each in batch))
        self.world.step(host, host.incarnation, event)

    def _acked(self, host: Host, effect: Acked) -> None:
        _, sent, batch = self.published.pop(effect.token)
        if (effect.shard, effect.sequence) in self.lost:
            return
        for k, each in enumerate(batch):
            self.history.acked(effect.shard, effect.sequence, effect.first + k, each, sent)

    def subscribe(self, slow: bool = False) -> None:
        host = self.rng.choice(self.edges)
        name = f"s{len(self.applications)}"
        key = self._old_key(host) or name
        application = _Application(name, key, self.rng.choice(TEXTS), host, 2 if slow else None)
        self.applications.append(application)
        self.served[host.name, key] = application
        if host.up:
            self._ask(application)

    def subscribe_spy(self) -> None:
        """One whose account may see some of what there is, and wants that."""
        application = _Application(ACCOUNT, ACCOUNT, ENTITLED, self.world.hosts[HOST])
        self.applications.append(application)
        self.served[HOST, ACCOUNT] = application
        if application.host.up:
            self._ask(application)

    def revoke(self) -> None:
        for application in self.applications:
            if application.name == ACCOUNT:
                application.active = False
                if application.position is not None:
                    self.history.ended(ACCOUNT)
        self.world.revoke()

    def _old_key(self, host: Host) -> str | None:
        """The key of one that has left, now and then: plans that are still about must not be mistaken for its own."""
        busy = {each.key for each in self.applications if each.active}
        free = sorted({each.key for each in self.applications} - busy - {ACCOUNT})
        if not free or self.world.now < host.paused_until or self.rng.random() < 0.5:
            return None
        return self.rng.choice(free)

    def _ask(self, application: _Application) -> None:
        event = Subscribe(application.key, application.profile, application.position, application.credit)
        self.world.step(application.host, application.host.incarnation, event)

    def churn(self) -> None:
        active = [each for each in self.applications if each.active and each.position is not None]
        active = [each for each in active if each.name != ACCOUNT]
        self.world.fault("churn")
        if len(active) > 2 and self.rng.random() < 0.5:
            self._leave(self.rng.choice(active))
        else:
            self.subscribe()

    def _leave(self, leaver: _Application) -> None:
        leaver.active = False
        self.history.ended(leaver.name)
        if leaver.host.up:
            self.world.step(leaver.host, leaver.host.incarnation, Unsubscribe(leaver.key))

    def leave_and_return(self) -> None:
        """News of the one that left may still be about, and look as if they were of the one that came."""
        active = [each for each in self.applications if each.active and each.position is not None and each.host.up]
        active = [each for each in active if each.name != ACCOUNT and self.world.now >= each.host.paused_until]
        if active:
            self.world.fault("return")
            leaver = self.rng.choice(active)
            self._leave(leaver)
            self.world.at(self.world.now + self.rng.uniform(0.003, 0.03), self._return, leaver)

    def _return(self, leaver: _Application) -> None:
        if any(each.active and each.key == leaver.key for each in self.applications):
            return  # another has the name by now
        again = replace(leaver, name=f"s{len(self.applications)}", position=None, active=True)
        self.applications.append(again)
        self.served[again.host.name, again.key] = again
        if again.host.up:
            self._ask(again)

    def _restarted(self, host: Host) -> None:
        """The applications of an edge go on from the positions they stored."""
        for application in self.applications:
            if application.host is host and application.active:
                self._ask(application)
        if host in self.clients:
            self.published = {t: found for t, found in self.published.items() if found[0] != host.name}

    def _subscribed(self, host: Host, effect: Subscribed) -> None:
        application = self.served[host.name, effect.subscription]
        if application.position is None:
            application.position = dict(effect.start)
            start = {shard: _point(at) for shard, at in effect.start.items()}
            self.history.subscribed(application.name, application.profile, start)

    def _delivered(self, host: Host, effect: Deliver) -> None:
        application = self.served[host.name, effect.subscription]
        if not application.active:
            return
        for at, found in _rows(effect):
            self.history.delivered(application.name, effect.shard, *_point(at), found)
        self._store(application, effect.shard, effect.position)
        if application.credit is not None and effect.messages:
            delay = 0.05 if self.world.healed else self.rng.uniform(0.05, 0.6)
            self.world.tell(host, Consumed(application.key, len(effect.messages)), delay)

    def _gap(self, host: Host, effect: Gap) -> None:
        application = self.served[host.name, effect.subscription]
        if application.active:
            self.history.gap(application.name, effect.shard, _point(effect.after), _point(effect.upto))
            self._store(application, effect.shard, effect.upto)

    def _store(self, application: _Application, shard: int, position: int) -> None:
        assert application.position is not None
        application.position[shard] = position

    # Plans.

    def _plan(self, host: Host, effect: PlanWanted) -> None:
        routing = self.parts.planner(effect, Random(f"{self.schedule.seed} {effect.epoch} {host.name}"))
        who = Subscribers(effect.subscriptions, effect.edges, effect.gateways)
        routing = apart(routing, who, self.parts.kept_apart(routing, effect.entitled))
        self.world.tell(host, Planned(effect.request, routing), self.rng.uniform(0.001, 0.1))

    def truncate(self) -> None:
        """The log drops its oldest entries, whoever still needs them."""
        self.world.fault("truncation")
        for shard in self.shards:
            self.world.log.forget(shard, max(0, len(self.world.log.entries[shard]) - 3))

    def restore(self) -> None:
        """The server stops, an older copy takes the log's place, and it starts again. What is gone is not owed.

        Whoever got it before had it from the log, and who coordinates hears that the connection was lost.
        """
        log = self.world.log
        self.world.fault("restore")
        for shard in self.shards:
            end = len(log.entries[shard])
            kept = self.rng.randrange(max(0, end - 12), end + 1)
            for at in range(kept + 1, end + 1):
                number = log.number(shard, at)
                self.lost.add((shard, number))
                self._log_entry(shard, number, log.entries[shard][at - 1])
            log.go_back(shard, kept)
        log.starts += 1
        for at in [at for at in self.history.acks if at[:2] in self.lost]:
            del self.history.acks[at]
        for name, host in self.world.hosts.items():
            if name.startswith("coordinator"):
                self.world.tell(host, Replan(), 0.02)

    def move_filter(self, broker: str, state: FilterMode | None) -> None:
        data = None if state is None else records.pack({"state": state.value})
        self.world.put(records.named(records.FILTER, broker), data)

    def offer(self, number: int) -> None:
        self.world.put(records.OFFER, records.pack({"number": number, "folder": f"plans/{number}"}))

    # The end.

    def drained(self) -> bool:
        """Every message is acknowledged, and every subscriber has been told of the whole log."""
        if self.published:
            return False
        ends = {shard: end_of(self.world.log.last(shard)) for shard in self.shards}
        return all(
            each.position is not None and all(each.position[shard] >= ends[shard] for shard in self.shards)
            for each in self.applications
            if each.active
        )

    def held(self) -> int:
        containers = [value for host in self.world.hosts.values() for value in vars(host.part).values()]
        containers += [reader.columns for host in self.edges for each in self._subscriptions(host) for reader in each]
        containers += [reader.held for host in self.edges for each in self._subscriptions(host) for reader in each]
        keys = sum(data is not None for data, _ in self.world.registry.values.values())
        return keys + sum(len(value) for value in containers if isinstance(value, dict | list | set))

    def _subscriptions(self, host: Host) -> list[list[Any]]:
        assert isinstance(host.part, Edge)
        return [list(each.readers.values()) for each in host.part.subscriptions.values()]

    def fill_log(self) -> None:
        for shard in self.shards:
            for at, data in enumerate(self.world.log.entries[shard], start=1):
                self._log_entry(shard, self.world.log.number(shard, at), data)
        leads = [records.unpack(d) for k, (d, _) in self.world.registry.values.items() if k == records.EPOCH and d]
        self.history.fault("epoch", leads[0]["current"] if leads else 0)

    def _log_entry(self, shard: int, number: int, data: bytes) -> None:
        batch = decode_entry(data)
        if isinstance(batch, Batch):
            for index, payload in enumerate(batch.payloads):
                found: Any = decode_payload(payload)
                self.history.logged(shard, number, index, found)
        elif isinstance(batch, ColumnBatch):
            self.history.fault("columns")
            for index, row in enumerate(rows_of(decode_columns(batch.data, batch.count))):
                self.history.logged(shard, number, index, row)


def simulate(schedule: Schedule, parts: Parts | None = None) -> Outcome:
    """Run a schedule to its end, heal everything, wait until all is delivered, and check.

    The run goes on for up to 25 simulated seconds after healing; if something is still missing then,
    it is not `drained`. Deterministic: same schedule and parts, same outcome.
    """
    run = _Run(schedule, parts or Parts())
    world = run.world
    run.plan_faults()
    world.run(schedule.seconds)
    run.heal()
    world.run(world.now + 0.3)
    run.closing_round()
    limit = world.now + PATIENCE
    world.run(world.now + 0.3)

    def registered(key: str) -> bytes | None:
        return world.registry.get(key)[0]

    while not (run.drained() and (not schedule.sealed or world.gate.is_out(registered))) and world.now < limit:
        world.run(world.now + 0.1)
    run.fill_log()
    if schedule.sealed:
        world.gate.end(registered)
    counts: dict[str, int] = dict(run.history.happened)
    for host in world.hosts.values():
        for name, count in host.part.counts.items():
            role = host.name.partition("-")[0]
            counts[f"{role} {name}"] = counts.get(f"{role} {name}", 0) + count
    verdict = check(run.history, wants=wants)
    counts["spy opened"] = world.gate.opened
    let_in = tuple(world.gate.let_in) if schedule.sealed else ()
    seconds = world.now - run.healed_at
    return Outcome(schedule, verdict, run.drained(), seconds, world.steps, run.held(), counts, let_in)


def _rows(effect: Deliver) -> list[tuple[int, Any]]:
    """The messages that came, each as a dict."""
    if isinstance(effect.messages, ColumnRows):
        columns = effect.messages.columns
        return list(zip(columns.places, rows_of(columns.batch), strict=True))
    return [(at, decode_payload(payload)) for at, payload in effect.messages]


def _point(at: int) -> tuple[int, int]:
    return sequence_of(at), index_of(at)
