"""Time, network and disk: an event heap, hosts that can fail, and messages that can get lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

from history import History
from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.broker import Broker
from narrowcast.deliver.parts.effects import (
    Append,
    Effect,
    Join,
    Leave,
    Locate,
    Lookup,
    Read,
    Send,
    Watch,
    Write,
)
from narrowcast.deliver.parts.events import (
    Appended,
    Arrived,
    Event,
    Failed,
    Located,
    Noted,
    Refused,
    Tick,
    WasRead,
    Written,
)
from narrowcast.deliver.parts.part import NEVER, Part
from narrowcast.deliver.parts.relay import Unopened, glance
from narrowcast.deliver.transport import Address, Link, Overlay
from narrowcast.deliver.wire import Attach, Frame, Malformed, Pulse, decode
from narrowcast.errors import TransportError
from simulator.attacker import Attacker
from simulator.disk import SimLog, SimRegistry
from simulator.gate import SimGate
from simulator.schedule import Schedule

Opener = Callable[[bytes], Frame | Attach | Pulse | Malformed]
ENGINE = "engine"
TICK = Tick()


@dataclass(slots=True)
class Host:
    """A process that runs one part. Each start is a new incarnation; answers to an earlier one are lost."""

    name: str
    make: Callable[[int], Part]
    offset: float  # clocks do not agree, and nothing may depend on it
    part: Part
    incarnation: int = 0
    up: bool = True
    paused_until: float = 0.0
    timer: float = NEVER
    late: bool = False  # the next tick, as the driver would find it after a pause
    dies: bool = False  # in the middle of what it does next
    watches: list[str] = field(default_factory=list)
    missed: dict[str, None] = field(default_factory=dict)  # keys that changed while it was cut off


class World:
    """Runs hosts. What applications see goes to `apps`, by the class of the effect."""

    def __init__(
        self, schedule: Schedule, history: History, log: type[SimLog] = SimLog, relay: Opener = glance
    ) -> None:
        self.schedule, self.relay = schedule, relay
        self.history = history
        self.attacker = Attacker(schedule)
        self.rng = Random(schedule.seed)
        self.now = 0.0
        self.log = log(schedule.shards, window=6.0)
        self.registry = SimRegistry()
        self.gate = SimGate()
        self.full_until = 0.0  # of the log's disk
        self.hosts: dict[str, Host] = {}
        self.apps: dict[type[Any], Callable[[Host, Any], None]] = {}
        self.restarted: Callable[[Host], None] = lambda host: None
        self.healed = False  # no faults from now on
        self.down_until = 0.0  # of the engines
        self.malformed = 0
        self.steps = 0
        self._members: dict[Address, dict[str, None]] = {}
        self._side: dict[str, int] = {}  # who is cut off from whom: hosts on different sides
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._do: dict[type[Any], Callable[[Host, Any], None]] = {
            Send: self._send,
            Join: self._join,
            Leave: self._leave,
            Append: self._append,
            Read: self._read,
            Locate: self._locate,
            Watch: self._watch,
            Lookup: self._lookup,
            Write: self._write,
        }

    # Time.

    def at(self, when: float, call: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heappush(self._heap, (when, self._count, call, arguments))

    def run(self, until: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, call, arguments = heappop(heap)
            call(*arguments)
        self.now = until

    # Hosts.

    def start(self, name: str, make: Callable[[int], Part]) -> Host:
        host = Host(name, make, self.rng.uniform(0, 1000), make(0))
        self.hosts[name] = host
        self._set_timer(host)
        return host

    def step(self, host: Host, incarnation: int, event: Event) -> None:
        """Something happens to a host, if it is still the one it was meant for."""
        if not host.up or incarnation != host.incarnation:
            return
        if self.now < host.paused_until:
            self.at(host.paused_until, self.step, host, incarnation, event)
            return
        self.steps += 1
        effects = host.part.step(event, self.now + host.offset)
        if host.dies:
            host.dies = False
            effects = effects[: self.rng.randrange(len(effects) + 1)]
            self._carry_out(host, effects)
            self._crash(host)
            return
        self._carry_out(host, effects)
        self._set_timer(host)

    def _carry_out(self, host: Host, effects: list[Effect]) -> None:
        for effect in effects:
            kind = type(effect)
            (self._do.get(kind) or self.apps[kind])(host, effect)

    def tell(self, host: Host, event: Event, delay: float = 0.0) -> None:
        """An event for the host as it is now."""
        self.at(self.now + delay, self.step, host, host.incarnation, event)

    def _set_timer(self, host: Host) -> None:
        when = max(host.part.wake_at - host.offset, self.now + 1e-4)
        if when != host.timer and when < NEVER:
            host.timer = when
            self.at(when, self._tick, host, host.incarnation, when)

    def _tick(self, host: Host, incarnation: int, when: float) -> None:
        if host.timer != when or incarnation != host.incarnation:
            return
        if self.now < host.paused_until:
            host.timer, host.late = host.paused_until, True
            self.at(host.paused_until, self._tick, host, incarnation, host.paused_until)
            return
        tick, host.timer, host.late = Tick(busy=True) if host.late else TICK, NEVER, False
        self.step(host, incarnation, tick)

    # Faults.

    def fault(self, kind: str) -> None:
        self.history.fault(kind)

    def crash(self, name: str, seconds: float) -> None:
        """A host dies, at once or half-way through its next step, and starts again later with nothing in memory."""
        host = self._standing(name)
        self.fault("crash")
        self.at(self.now + seconds, self.restart, host)
        if self.rng.random() < 0.5:
            host.dies = True
        else:
            self._crash(host)

    def _standing(self, name: str) -> Host:
        """The host of that name if it is up, else another: a fault asked for is a fault that happens."""
        up = [host for host in self.hosts.values() if host.up and not host.dies]
        return next((host for host in up if host.name == name), up[0] if up else self.hosts[name])

    def _crash(self, host: Host) -> None:
        host.up = False
        host.incarnation += 1
        host.watches, host.missed = [], {}
        for members in self._members.values():
            members.pop(host.name, None)

    def restart(self, host: Host) -> None:
        if host.dies:
            host.dies = False
            self._crash(host)
        if not host.up:
            host.up, host.timer, host.paused_until = True, NEVER, 0.0
            host.part = host.make(host.incarnation)
            self._set_timer(host)
            self.restarted(host)

    def pause(self, name: str, seconds: float) -> None:
        """A host stops and goes on, not knowing that time has passed."""
        host = self._standing(name)
        host.paused_until = max(host.paused_until, self.now + seconds)
        self.fault("pause")

    def partition(self, names: list[str], seconds: float) -> None:
        """These hosts reach each other and nobody else, neither log nor registry, unless ENGINE is with them."""
        self._side = {**dict.fromkeys(self._side, 0), **dict.fromkeys(names, 1)}
        self.fault("partition")
        self.at(self.now + seconds, self.heal)

    def heal(self) -> None:
        self._side = {}
        self._catch_up()

    def outage(self, seconds: float) -> None:
        self.down_until = max(self.down_until, self.now + seconds)
        self.fault("outage")
        self.at(self.down_until, self._catch_up)

    def fill_disk(self, seconds: float) -> None:
        """The log takes nothing for a while, and says so; it can be read."""
        self.full_until = max(self.full_until, self.now + seconds)
        self.fault("full disk")

    def revoke(self) -> None:
        """The account behind the gate ends: NATS and the gate are closed to it, and the registry knows."""
        self.fault("revocation")
        self.gate.revoke(list(self.registry.keys(records.PLAN)))
        for address, members in self._members.items():
            if not self.gate.carries(address):
                for name in [name for name in members if self.gate.is_for(name)]:
                    del members[name]
        self.put(self.gate.account()[0], None)

    def _catch_up(self) -> None:
        """Watches go on where they were cut off: every key that changed is told again, as it is now."""
        for host in self.hosts.values():
            if host.up and self._reaches_engine(host):
                missed, host.missed = host.missed, {}
                for key in missed:
                    self.at(self.now + self._delay(), self._note, host, host.incarnation, key)

    # The network.

    def _delay(self) -> float:
        return 0.001 + self.rng.random() * 0.004

    def _apart(self, a: str, b: str) -> bool:
        return bool(self._side) and self._side.get(a, 0) != self._side.get(b, 0)

    def _reaches_engine(self, host: Host) -> bool:
        if self.gate.revoked and self.gate.is_for(host.name):
            return False
        return self.now >= self.down_until and not self._apart(host.name, ENGINE)

    def _join(self, host: Host, effect: Join) -> None:
        if not effect.sender and (not self.gate.is_for(host.name) or self.gate.carries(effect.address)):
            self._members.setdefault(effect.address, {})[host.name] = None

    def _leave(self, host: Host, effect: Leave) -> None:
        if not effect.sender:
            self._members.get(effect.address, {}).pop(host.name, None)

    def _send(self, host: Host, effect: Send) -> None:
        address = effect.address
        if isinstance(address, Link):
            targets = [address.node]
        elif isinstance(address, Overlay):
            targets = [address.root]
        else:
            targets = list(self._members.get(address, ()))
        try:
            data = _bytes(host.part, address, effect.what) if targets else b""
        except TransportError:
            host.part.counts["send failed"] += 1
            return
        for target in targets:
            self._carry(host.name, target, data)
        if targets and not self.healed and self.rng.random() < self.schedule.attack:
            for forged in self.attacker.made_from(effect.what, data):
                self.fault("attack")
                self.at(self.now + self._delay(), self._assault, self.rng.choice(targets), forged)

    def _carry(self, source: str, target: str, data: bytes) -> None:
        host, s, rng = self.hosts.get(target), self.schedule, self.rng
        if host is None or self._apart(source, target):
            return
        delay = self._delay()
        if not self.healed:
            if rng.random() < s.loss:
                self.fault("loss")
                return
            if rng.random() < s.reorder:
                self.fault("reorder")
                delay += rng.random() * 0.15
            if rng.random() < s.repeat:
                self.fault("repeat")
                self.at(self.now + delay + rng.random() * 0.2, self._arrive, host, host.incarnation, data)
            if rng.random() < s.corrupt:
                self.fault("corrupt")
                data = _flipped(data, rng)
        self.at(self.now + delay, self._arrive, host, host.incarnation, data)

    def _assault(self, target: str, data: bytes) -> None:
        host = self.hosts.get(target)
        if host is not None and host.up:
            self._arrive(host, host.incarnation, data)

    def _arrive(self, host: Host, incarnation: int, data: bytes) -> None:
        """As the driver has it."""
        if incarnation != host.incarnation:
            return
        found: Frame | Attach | Pulse | Malformed | bytes = host.part.seal.open(data)
        if isinstance(found, bytes):
            found = self.relay(found) if isinstance(host.part, Broker) else decode(found)
        if isinstance(found, Malformed):
            self.malformed += 1
            host.part.counts[found.reason] += 1
            return
        if isinstance(found, Frame) and isinstance(found.messages, Unopened):
            found.messages.sent = data
        if self.gate.is_for(host.name):
            self.gate.watch(found)
        self.step(host, incarnation, Arrived(found))

    # Log and registry: every request may be lost on its way, or its answer.

    def _ask(self, host: Host, request: int, call: Callable[[], Event | None]) -> None:
        self.at(self.now + self._delay(), self._serve, host, host.incarnation, request, call)

    def _serve(self, host: Host, incarnation: int, request: int, call: Callable[[], Event | None]) -> None:
        rng = self.rng
        if not self._reaches_engine(host):
            self._answer_late(host, incarnation, request)
            return
        lost = not self.healed and rng.random() < self.schedule.engine_loss
        if lost:
            self.fault("engine loss")
            if rng.random() < 0.5:
                self._answer_late(host, incarnation, request)
                return
        answer = call()
        if answer is not None and not lost:
            self.at(self.now + self._delay(), self.step, host, incarnation, answer)

    def _answer_late(self, host: Host, incarnation: int, request: int) -> None:
        """Nothing was done; the asker may be told so, or hear nothing."""
        if request and self.rng.random() < 0.5:
            self.at(self.now + 0.05, self.step, host, incarnation, Failed(request))
            self.at(self.now + 0.05, self.step, host, incarnation, Refused(request, stale=False))

    def _append(self, host: Host, effect: Append) -> None:
        def call() -> Event:
            if self.now < self.full_until and not self.healed:
                return Failed(effect.request, "the disk is full", final=True)
            sequence = self.log.append(effect.shard, effect.data, effect.dedup, self.now)
            return Appended(effect.request, sequence)

        self._ask(host, effect.request, call)

    def _read(self, host: Host, effect: Read) -> None:
        def call() -> Event:
            found = self.log.read(effect.shard, effect.after, effect.upto, effect.most)
            gone = (found.first, found.back)
            entries = self.gate.entries(found.entries) if self.gate.is_for(host.name) else found.entries
            return WasRead(effect.request, effect.shard, found.after, found.upto, entries, *gone)

        self._ask(host, effect.request, call)

    def _locate(self, host: Host, effect: Locate) -> None:
        self._ask(host, effect.request, lambda: Located(effect.request, effect.shard, self.log.last(effect.shard)))

    def _lookup(self, host: Host, effect: Lookup) -> None:
        self._ask(host, 0, lambda: self._noted(host, effect.key))

    def _noted(self, host: Host, key: str) -> Noted:
        data, revision = self.registry.get(key)
        return Noted(key, self.gate.seen(key, data) if self.gate.is_for(host.name) else data, revision)

    def _write(self, host: Host, effect: Write) -> None:
        def call() -> Event:
            made = self.gate.written(effect) if self.gate.is_for(host.name) else effect
            revision = None if made is None else self.put(made.key, made.data, made.revision)
            return Refused(effect.request) if revision is None else Written(effect.request, revision)

        self._ask(host, effect.request, call)

    def put(self, key: str, data: bytes | None, revision: int | None = None) -> int | None:
        """Write to the registry and tell whoever watches."""
        written = self.registry.put(key, data, revision)
        if written is not None:
            for host in self.hosts.values():
                if any(key.startswith(prefix) for prefix in host.watches):
                    self.at(self.now + self._news_delay(), self._note, host, host.incarnation, key)
        return written

    def _watch(self, host: Host, effect: Watch) -> None:
        host.watches.append(effect.prefix)
        for key in self.registry.keys(effect.prefix):
            self.at(self.now + self._news_delay(), self._note, host, host.incarnation, key)

    def _news_delay(self) -> float:
        if self.healed or not self.schedule.late_news or self.rng.random() >= self.schedule.late_news:
            return self._delay()
        self.fault("late news")
        return self.rng.random() * 0.4

    def _note(self, host: Host, incarnation: int, key: str) -> None:
        if incarnation == host.incarnation:
            if self._reaches_engine(host):
                self.step(host, incarnation, self._noted(host, key))
            else:
                host.missed[key] = None


def _bytes(part: Part, address: Address, what: Frame | Attach | Pulse) -> bytes:
    """As the driver has it: what was not opened goes out as it came."""
    return part.seal.passes(what) or part.seal.pack(what, address.node if isinstance(address, Link) else "")


def _flipped(data: bytes, rng: Random) -> bytes:
    bit = rng.randrange(8 * len(data))
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
