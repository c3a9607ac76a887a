"""The coordinator: holds the lease, asks for plans and moves the system from epoch to epoch.

It is off the data path: while none is alive, messages are delivered under the plan in force and new
subscriptions are served from the log. Every step is one revision-checked write, so a coordinator that
lost the lease without knowing cannot take one, and the next one goes on where it stopped.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Append, Lookup, PlanWanted, Watch, Write
from narrowcast.deliver.parts.events import Appended, Failed, Noted, Planned, Refused, Replan, Tick, Written
from narrowcast.deliver.parts.filter_moves import FilterMode, next_order
from narrowcast.deliver.parts.node import STEADY
from narrowcast.deliver.parts.part import NEVER, Part
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Overlay
from narrowcast.deliver.wire import Marker, encode_entry
from narrowcast.deliver.wire.frame import EVERY
from narrowcast.deliver.wire.seal import session_key
from narrowcast.errors import InfeasibleError

MOST_OPEN = 256
MOST_TERM = 1 << 32


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """`ttl`: a lease that is not renewed for so long may be taken. `prepare`: how long nodes are waited for.

    `move`: the same where another plan was offered; who is late then does not miss the move, but undoes it. It is
    more than `alive`, so that the dead hold nobody up. `every`: plan again after so long even if nothing changed
    (None: only on change), and never sooner than `pause` after the last time. `alive`: a node that shows
    nothing for so long counts as dead. `seal`: make keys for every epoch.
    """

    ttl: float = 3.0
    renew: float = 1.0
    prepare: float = 2.0
    move: float = 10.0
    pause: float = 1.0
    every: float | None = None
    alive: float = 5.0
    retry: float = 0.5
    seal: bool = False


@dataclass(slots=True)
class _Key:
    """A key with its revision, and when it last changed by our own clock."""

    record: dict[str, Any] | None = None
    revision: int = 0
    changed: float = 0.0


class Coordinator(Part):
    """One of any number; the one with the lease works, the others watch."""

    def __init__(self, name: str, shards: tuple[int, ...], settings: CoordinatorSettings | None = None) -> None:
        super().__init__(name)
        self.shards = shards
        self.settings = settings or CoordinatorSettings()
        self.leads = False
        self.term = 0
        self._lease = _Key()
        self._epoch = _Key(dict(STEADY))
        self._offer = _Key()
        self._new_offer: dict[str, Any] | None = None  # that the plan being made is made from
        self._subscriptions: dict[str, _Key] = {}
        self._nodes: dict[str, _Key] = {}  # those that are alive
        self._accounts: dict[str, dict[str, Any]] = {}
        self._plans: set[int] = set()
        self._written: dict[int, bytes] = {}  # the plans as they stand there
        self._tree: tuple[int, Routing | None] = (0, None)  # the plan in force, if subscriptions climb its tree
        self._filters: dict[str, _Key] = {}  # what each filter does, by its broker
        self._placement: frozenset[str] | None = None  # the brokers whose filters should work, once that is known
        self._roots: dict[int, bytes] = {}
        self._rings: dict[int, set[str]] = {}  # the keys of the registry with keys of frames, by epoch
        self._sources: dict[int, int] = {}  # the epoch in force at each shard's checkpoint
        self._open: dict[int, Callable[[int | None, bool], None]] = {}  # what to do with an answer
        self._steps: set[int] = set()  # requests of the step of the epoch that is under way
        self._dirty = True  # what was planned for has changed
        self._anew = False  # the next plan is written even if it is the one in force
        self._number = 0  # of the plan being written
        self._planning = 0
        self._markers: dict[int, int] = {}  # the sequence number of the marker in each shard
        self._renewed = self._renew_at = self._next_plan_at = self._since = self._busy_until = 0.0
        self._now = 0.0
        self._handlers |= {
            Noted: self._on_noted,
            Written: self._on_written,
            Refused: self._on_refused,
            Appended: self._on_appended,
            Failed: self._on_failed,
            Planned: self._on_planned,
            Replan: self._on_replan,
        }

    def _start(self, now: float) -> None:
        self._lease.changed = now
        for prefix in (
            records.LEASE,
            records.EPOCH,
            records.SUBSCRIPTION,
            records.NODE,
            records.PLAN,
            records.SOURCE,
            records.OFFER,
            records.SEAL,
            records.RING,
            records.FILTER,
            records.ACCOUNT,
        ):
            self._do(Watch(prefix))
        self._do(Lookup(records.LEASE))

    # What the registry says.

    def _on_noted(self, event: Noted, now: float) -> None:
        bulk = event.key.startswith((records.PLAN, records.SEAL, records.RING))
        record = None if bulk else self._understood(event.key, event.data)
        if event.key == records.LEASE:
            if record is None and event.revision >= self._lease.revision:
                self._lease = _Key(None, event.revision, now - self.settings.ttl)  # nobody holds it: no need to wait
                self._step_down()
            elif event.revision > self._lease.revision:
                self._lease = _Key(record, event.revision, now)
                if record is not None and (record["holder"], record["term"]) != (self.name, self.term):
                    self._step_down()
        elif event.key == records.EPOCH:
            if event.revision > self._epoch.revision and event.data is not None:
                # Over rubbish whoever leads writes what it knew: no term is that of -1.
                self._epoch = _Key(record or self._record | {"term": -1}, event.revision, now)
                self._since = now
                self._steps, self._busy_until = set(), now
        elif event.key == records.OFFER:
            self._offer = _Key(record, event.revision, now)
            self._dirty |= self._offered() is not None
        else:
            try:
                self._note_one(event, record, now)
            except ValueError:  # a key that names nobody
                self.counts["malformed records"] += 1
        self._work(now)

    def _note_one(self, event: Noted, record: dict[str, Any] | None, now: float) -> None:
        """One of many: a subscription, a node, a plan or a source."""
        if event.key.startswith(records.SUBSCRIPTION):
            self._note(self._subscriptions, event, record, now)
        elif event.key.startswith(records.NODE):
            self._note(self._nodes, event, record, now)
        elif event.key.startswith(records.ACCOUNT):
            self._note_account(records.name_of(event.key), record)
        elif event.key.startswith(records.PLAN):
            number = records.number_of(event.key)
            self._plans = self._plans - {number} if event.data is None else self._plans | {number}
            self._written.pop(number, None)
            if event.data is not None:
                self._written[number] = event.data
        elif event.key.startswith(records.FILTER):
            self._filters[records.name_of(event.key)] = _Key(record, event.revision, now)
        elif event.key.startswith((records.SEAL, records.RING)):
            if event.key.startswith(records.SEAL) and (found := self._understood(event.key, event.data)) is not None:
                self._roots[records.number_of(event.key)] = bytes.fromhex(found["root"])
            elif event.key.startswith(records.SEAL):
                self._roots.pop(records.number_of(event.key), None)
            known = self._rings.setdefault(records.ring_epoch(event.key), set())
            (known.discard if event.data is None else known.add)(event.key)
            self._rings = {epoch: keys for epoch, keys in self._rings.items() if keys}
        elif record is not None and (shard := records.number_of(event.key)) in self.shards:
            self._sources[shard] = record["epoch"]

    def _note(self, known: dict[str, _Key], event: Noted, record: dict[str, Any] | None, now: float) -> None:
        """A subscription or a node has come, changed or gone."""
        name = records.name_of(event.key)
        before = known.pop(name, None)
        if record is not None:
            known[name] = _Key(record, event.revision, now)
        if known is self._nodes:
            self._dirty |= before is None and record is not None and record["role"] != "source"
        else:
            self._dirty |= (before.record if before else None) != record

    def _note_account(self, name: str, record: dict[str, Any] | None) -> None:
        """An account has come, changed or gone: what it subscribed to under the old one ends, and so do all keys.

        Frames of the epoch that begins then are sealed with keys that it never had.
        """
        before = self._accounts.pop(name, None)
        if record is not None:
            self._accounts[name] = record
        if before == record:
            return
        for known, prefix in ((self._subscriptions, records.SUBSCRIPTION), (self._nodes, records.NODE)):
            for each in [each for each, seen in known.items() if (seen.record or {}).get("account") == name]:
                self._dirty = True
                if before is not None:
                    self._anew = True
                    gone = known.pop(each)
                if before is not None and self.leads:
                    self._do(Write(self._request(), records.named(prefix, each), None, gone.revision))

    def _entitled(self, record: dict[str, Any]) -> bool:
        """Whether a subscription is of an account that is one, or of nobody's."""
        return record.get("account") is None or record["account"] in self._accounts

    # The lease.

    def _on_tick(self, event: Tick, now: float) -> None:
        s = self.settings
        if self.leads and now >= self._renewed + s.ttl:
            self._step_down()  # nobody confirmed it for so long that somebody else may hold it
        if self.leads:
            if now >= self._renew_at:
                self._renew_at = now + s.renew
                self._write_lease(now)
        elif now >= self._lease.changed + s.ttl and now >= self._renew_at:
            self._renew_at = now + s.ttl
            self._campaign(now)
        self._bury(now)
        self._work(now)

    def _campaign(self, now: float) -> None:
        term = ((self._lease.record or {"term": 0})["term"] + 1) % MOST_TERM

        def won(revision: int | None, stale: bool) -> None:
            if revision is not None:
                self.leads, self.term = True, term
                self._renewed, self._renew_at = now, now + self.settings.renew
                self._lease = _Key({"holder": self.name, "term": term}, revision, now)
                self.counts["elected"] += 1
                self._take_over()

        self._write(records.LEASE, {"holder": self.name, "term": term}, self._lease.revision, won)

    def _write_lease(self, now: float) -> None:
        """Renewed as of when it was asked for, not of when the answer came."""

        def renewed(revision: int | None, stale: bool) -> None:
            if revision is not None:
                self._renewed = now
                self._lease = _Key(self._lease.record, revision, now)
            elif stale:
                self._step_down()

        self._write(records.LEASE, {"holder": self.name, "term": self.term}, self._lease.revision, renewed)

    def _step_down(self) -> None:
        if self.leads:
            self.counts["stepped down"] += 1
            self.leads = False
            self._open, self._steps, self._planning = {}, set(), 0

    def _take_over(self) -> None:
        """Put our term on the epoch, so that whoever led before us can no longer write it."""
        self._steps, self._markers, self._dirty = set(), {}, True
        self._anew = True  # the log may have gone back while nobody led
        self._set_epoch()

    # The epoch, step by step. Each step is finished or tried again; none is taken twice.

    @property
    def _record(self) -> dict[str, Any]:
        assert self._epoch.record is not None
        return self._epoch.record

    def _work(self, now: float) -> None:
        self._now = now
        if not self.leads or now < self._busy_until:
            return
        if self._record["term"] != self.term:
            self._set_epoch()
            return
        {"steady": self._steady, "preparing": self._preparing, "committing": self._committing}[self._record["phase"]](
            now
        )

    def _steady(self, now: float) -> None:
        s = self.settings
        if self._move_filter():
            return
        self._give_keys()
        due = self._dirty or (s.every is not None and now >= self._next_plan_at - s.pause + s.every)
        if self._planning or not due or now < self._next_plan_at:
            return
        self._next_plan_at = now + s.pause
        self._dirty = False
        self._tidy()
        self._number = self._next_number()
        self._planning = self._request()
        self._new_offer = self._offered()
        wanted = {
            name: seen.record
            for name, seen in sorted(self._subscriptions.items())
            if seen.record is not None and seen.record["edge"] in self._nodes and self._entitled(seen.record)
        }
        accounts = {name: at for name, record in wanted.items() if (at := record.get("account")) is not None}
        entitled = {name: self._accounts[account].get("entitled") for name, account in accounts.items()}
        profiles = {name: record["profile"] for name, record in wanted.items()}
        edges = {name: record["edge"] for name, record in wanted.items()}
        gateways = {record["edge"]: at for record in wanted.values() if (at := record.get("gateway")) is not None}
        nodes, new = tuple(sorted(self._nodes)), self._new_offer
        offer = new or self._record.get("offer")
        self._do(
            PlanWanted(
                self._planning, self._number, profiles, edges, gateways, nodes, offer,
                trying=new is not None, entitled=entitled,
            )
        )  # fmt: skip

    def _next_number(self) -> int:
        """A number that no plan ever had, whatever became of it: nodes know a plan by its number."""
        record = self._record
        last: int = max(record["current"], record["next"] or 0, record.get("burnt") or 0, *self._plans, 0)
        return last + 1

    def _offered(self) -> dict[str, Any] | None:
        """Another plan than the one in force that was offered and has not been refused."""
        offer, accepted = self._offer.record, self._record.get("offer") or {"number": 0}
        done = max(self._record.get("refused") or 0, accepted["number"])
        return offer if offer is not None and offer["number"] > done else None

    def _on_planned(self, event: Planned, now: float) -> None:
        if event.request != self._planning or not self.leads:
            return
        self._planning = 0
        if self._record["phase"] != "steady" or now < self._busy_until:
            self._dirty = True
        elif event.routing is not None and not self._anew and self._is_in_force(event.routing):
            self._place(frozenset(event.routing.filters))
            self._work(now)
        elif (packed := self._packed(event.routing)) is not None:
            self._write_plan(packed, event.routing)
        elif self._new_offer is not None:  # it cannot be put in force: never, rather than for ever again
            self.counts["offers refused"] += 1
            self._dirty = True
            self._set_epoch(refused=self._new_offer["number"])

    def _packed(self, routing: Routing | None) -> bytes | None:
        """As the registry will have it; None for no routing, or one that is too large."""
        try:
            return None if routing is None else routing.to_bytes()
        except InfeasibleError:
            self.counts["plans refused"] += 1
            return None

    def _on_replan(self, event: Replan, now: float) -> None:
        self._dirty = self._anew = True
        self._work(now)

    def _write_plan(self, packed: bytes, routing: Routing | None) -> None:
        """A plan is written once. If its number is taken, another coordinator was here: plan again."""
        number, offer = self._number, self._new_offer

        def written(revision: int | None, stale: bool) -> None:
            if revision is None:
                self._dirty = True
                self._plans |= {number} if stale else set()
            else:
                self._plans |= {number}
                self._written[number] = packed
                self._anew = False
                self._since = self._now
                if self.settings.seal and routing is not None:
                    self._write_keys(number, routing, crc32(packed))
                self._set_epoch(phase="preparing", next=number, trying=offer)

        self._step(self._write(records.numbered(records.PLAN, number), packed, 0, written))

    def _write_keys(self, epoch: int, routing: Routing, plan: int) -> None:
        """Keys of an epoch: their root for sources and brokers, and for each edge those of what it takes.

        Written once the plan's number is ours, so that nobody else writes others.
        """
        root = secrets.token_bytes(32)
        taken: dict[str, set[int]] = {}
        for name, channels in routing.taken.items():
            if name in routing.edges:
                taken.setdefault(routing.edges[name], {EVERY}).update(channels)
        self._do(Write(self._request(), records.numbered(records.SEAL, epoch), records.pack({"root": root.hex()})))
        self._write_rings(epoch, root, plan, taken)

    def _write_rings(self, epoch: int, root: bytes, plan: int, taken: Mapping[str, Iterable[int]]) -> None:
        for edge, channels in sorted(taken.items()):
            keys = {str(c): session_key(root, epoch, c, plan).hex() for c in sorted(channels)}
            ring = records.pack({"plan": plan, "keys": keys})
            self._rings.setdefault(epoch, set()).add(records.ring_of(edge, epoch))
            self._do(Write(self._request(), records.ring_of(edge, epoch), ring))

    # Filters move without a new epoch: on the same tree, any of them may work or not at any moment.

    def _in_force(self) -> Routing | None:
        """The plan in force, if it is a tree that subscriptions climb."""
        current = self._record["current"]
        if self._tree[0] != current and current in self._written:
            try:
                found = Routing.from_bytes(self._written[current])
            except ValueError:
                return None
            self._tree = (current, found if found.climbs else None)
            self._placement = None
        return self._tree[1] if self._tree[0] == current else None

    def _is_in_force(self, routing: Routing) -> bool:
        """Whether a plan differs from the one in force in nothing but its filters."""
        present = self._in_force()
        if present is None or not routing.climbs:
            return False
        return replace(routing, filters=()).to_bytes() == replace(present, filters=()).to_bytes()

    def _place(self, filters: frozenset[str]) -> None:
        """The filters to work from now on; if they were offered, the offer is in force with that."""
        self._placement = filters
        if self._new_offer is not None:
            self._set_epoch(offer=self._new_offer, trying=None)

    def _move_filter(self) -> bool:
        """The next order to a filter, if one is where it should not be: a step of its own."""
        routing, current = self._in_force(), self._record["current"]
        if routing is None or self._placement is None:
            return False
        states = {}
        for broker in sorted(routing.addresses[0].brokers):  # type: ignore[union-attr]
            known = self._filters.get(broker, _Key()).record
            if known is not None and known.get("epoch") in (None, current):
                states[broker] = known["state"]
            elif broker in routing.filters:
                states[broker] = FilterMode.ACTIVE.value
        order = next_order(states, self._placement)
        if order is None:
            return False
        broker, mode = order
        before = self._filters.get(broker, _Key())
        version = ((before.record or {}).get("version") or 0) + 1
        record = {"state": mode.value, "version": version, "epoch": current}

        def written(revision: int | None, stale: bool) -> None:
            if revision is not None:
                self.counts[f"filters {mode.value}"] += 1
                self._filters[broker] = _Key(record, revision, self._now)

        key = records.named(records.FILTER, broker)
        self._step(self._write(key, record, before.revision, written))
        return True

    def _give_keys(self) -> None:
        """Keys of the tree for edges that have come since it was planned."""
        routing, current = self._in_force(), self._record["current"]
        root = self._roots.get(current)
        if routing is None or root is None or not self.settings.seal:
            return
        known = [seen.record for seen in self._subscriptions.values() if seen.record is not None]
        edges = {record["edge"] for record in known if record.get("account") is None}
        missing = {edge for edge in edges if records.ring_of(edge, current) not in self._rings.get(current, ())}
        channels = {EVERY, *(c for c, address in routing.addresses.items() if isinstance(address, Overlay))}
        self._write_rings(current, root, crc32(self._written[current]), dict.fromkeys(missing, channels))

    def _preparing(self, now: float) -> None:
        """Wait until everybody alive is ready, but not for ever.

        Subscriptions that came or went are served: who is late repairs from the log. Another plan, which is there
        only to be cheaper, is not worth anybody's trouble: the old one stays. It can be taken back as long as no
        marker is written, and none is before `committing` is.
        """
        offer = self._record.get("trying")
        if self._is_prepared() or (offer is None and now >= self._since + self.settings.prepare):
            self._markers = {}
            self._set_epoch(phase="committing")
        elif offer is not None and now >= self._since + self.settings.move:
            self.counts["rolled back"] += 1
            self._dirty = True
            number = self._record["next"]
            self._set_epoch(phase="steady", next=None, trying=None, refused=offer["number"], burnt=number)

    def _is_prepared(self) -> bool:
        wanted = self._record["next"]
        return all(seen.record is not None and seen.record["ready"] >= wanted for seen in self._nodes.values())

    def _committing(self, now: float) -> None:
        """Write the marker into every shard, then record where it stands."""
        missing = [shard for shard in self.shards if shard not in self._markers]
        if not missing:
            cutover = {str(shard): sequence for shard, sequence in sorted(self._markers.items())}
            offer = self._record.get("trying") or self._record.get("offer")
            self._set_epoch(
                phase="steady", current=self._record["next"], next=None, cutover=cutover, offer=offer, trying=None
            )
            return
        epoch = self._record["next"]
        for shard in missing:
            request = self._request()

            def done(sequence: int | None, stale: bool, shard: int = shard) -> None:
                if sequence is not None and self._record["next"] == epoch:
                    self._markers[shard] = sequence

            self._open[request] = done
            self._step(request)
            self._do(Append(request, shard, encode_entry(Marker(epoch)), f"epoch-{epoch}"))

    def _set_epoch(self, **changes: Any) -> None:
        """One step: a write that only succeeds on the record it was decided on."""
        record = self._record | changes | {"term": self.term}

        def written(revision: int | None, stale: bool) -> None:
            if revision is not None and revision > self._epoch.revision:
                self._epoch = _Key(record, revision, self._now)
                self._since = self._now

        self._step(self._write(records.EPOCH, record, self._epoch.revision, written))

    def _delete_keys(self, epoch: int) -> None:
        """They are known until they are gone: what was not deleted is deleted the next time."""
        self._roots.pop(epoch, None)
        for key in sorted(self._rings.get(epoch, ())):
            self._do(Write(self._request(), key, None))

    def _tidy(self) -> None:
        """Delete plans that were taken back, and those that no source can come back to."""
        current = self._record["current"]
        for epoch in sorted(n for n in self._rings if n < current and n not in self._plans):
            self._delete_keys(epoch)
        self._delete(n for n in self._plans if current < n <= (self._record.get("burnt") or 0))
        if len(self._sources) < len(self.shards):
            return
        oldest = min(current, *self._sources.values()) - 1
        self._delete(n for n in self._plans if n < oldest)

    def _delete(self, plans: Iterable[int]) -> None:
        for number in sorted(plans):
            self._plans.discard(number)
            self._do(Write(self._request(), records.numbered(records.PLAN, number), None))
            self._forget_tree(number)
            self._delete_keys(number)

    def _forget_tree(self, number: int) -> None:
        """What brokers said and did in a tree that is over."""
        self._roots.pop(number, None)
        try:
            routing = Routing.from_bytes(self._written.pop(number, b""))
        except ValueError:
            return
        brokers = {b for a in routing.addresses.values() if isinstance(a, Overlay) for b in a.brokers if routing.climbs}
        for broker in sorted(brokers):
            self._do(Write(self._request(), records.wants_of(number, broker), None))
            known = self._filters.get(broker)
            if known is not None and known.record is not None and known.record.get("epoch") == number:
                self._do(Write(self._request(), records.named(records.FILTER, broker), None, known.revision))

    def _bury(self, now: float) -> None:
        """A node that has shown nothing for long is dead: nobody waits for it, and trees go around it.

        It may only be slow to speak, so what it wrote is deleted at its present revision or not at all;
        an edge that comes back registers its subscriptions again, and reads the log until it is planned for.
        """
        dead = [name for name, seen in self._nodes.items() if now >= seen.changed + self.settings.alive]
        for name in dead:
            seen = self._nodes.pop(name)
            self.counts["buried"] += 1
            self._dirty |= seen.record is not None and seen.record["role"] != "source"
            if self.leads:
                self._do(Write(self._request(), records.named(records.NODE, name), None, seen.revision))
        if dead and self.leads:
            for name, seen in self._subscriptions.items():
                if seen.record is not None and seen.record["edge"] in dead:
                    self._do(Write(self._request(), records.named(records.SUBSCRIPTION, name), None, seen.revision))

    # Answers.

    def _step(self, request: int) -> None:
        """Nothing else is begun until the answer is there, or is too late."""
        self._steps.add(request)
        self._busy_until = self._now + self.settings.retry

    def _write(
        self, key: str, record: dict[str, Any] | bytes, revision: int, then: Callable[[int | None, bool], None]
    ) -> int:
        request = self._request()
        self._open[request] = then
        for lost in [open_ for open_ in self._open if open_ < request - MOST_OPEN]:
            del self._open[lost]  # an answer this late is no answer
        self._do(Write(request, key, record if isinstance(record, bytes) else records.pack(record), revision))
        return request

    def _answer(self, request: int, found: int | None, stale: bool, now: float) -> None:
        then = self._open.pop(request, None)
        if then is None:
            return
        self._now = now
        if request in self._steps:
            self._steps.discard(request)
            if found is not None and not self._steps:
                self._busy_until = now  # done; a step that failed is tried again only when its time is up
        then(found, stale)
        self._work(now)

    def _on_written(self, event: Written, now: float) -> None:
        self._answer(event.request, event.revision, False, now)

    def _on_refused(self, event: Refused, now: float) -> None:
        self._answer(event.request, None, event.stale, now)

    def _on_appended(self, event: Appended, now: float) -> None:
        self._answer(event.request, event.sequence, False, now)

    def _on_failed(self, event: Failed, now: float) -> None:
        self._answer(event.request, None, False, now)

    def _next_wake(self, now: float) -> float:
        s = self.settings
        times = [seen.changed + s.alive for seen in self._nodes.values()]
        if self.leads:
            times += [self._renew_at, self._renewed + s.ttl, max(self._busy_until, self._next_step())]
        else:
            times.append(max(self._renew_at, self._lease.changed + s.ttl))
        return max(now + 1e-3, min(times))

    def _next_step(self) -> float:
        """When time alone moves the epoch on; answers and notes do it otherwise."""
        s, phase = self.settings, self._record["phase"]
        if phase == "preparing":
            return self._since + (s.prepare if self._record.get("trying") is None else s.move)
        if phase == "committing" or self._record["term"] != self.term:
            return 0.0
        if self._planning:
            return NEVER
        if self._dirty:
            return self._next_plan_at
        return NEVER if s.every is None else self._next_plan_at - s.pause + s.every
