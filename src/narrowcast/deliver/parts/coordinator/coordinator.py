"""The coordinator: holds the lease, asks for plans and moves the system from epoch to epoch.

It is off the data path: while none is alive, messages are delivered under the plan in force and new
subscriptions are served from the log. Every step is one revision-checked write, so a coordinator that
lost the lease without knowing cannot take one, and the next one goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.coordinator.frame_keys import FrameKeys
from narrowcast.deliver.parts.coordinator.leader import CoordinatorSettings, Stamped
from narrowcast.deliver.parts.coordinator.members import Members
from narrowcast.deliver.parts.coordinator.tree_filters import TreeFilters
from narrowcast.deliver.parts.effects import Append, Lookup, PlanWanted, Watch, Write
from narrowcast.deliver.parts.events import Noted, Planned, Replan, Tick
from narrowcast.deliver.parts.node import STEADY
from narrowcast.deliver.parts.part import NEVER
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Overlay
from narrowcast.deliver.wire import Marker, encode_entry
from narrowcast.errors import InfeasibleError

WATCHED = (
    records.LEASE, records.EPOCH, records.SUBSCRIPTION, records.NODE, records.PLAN, records.SOURCE, records.OFFER,
    records.SEAL, records.RING, records.FILTER, records.ACCOUNT,
)  # fmt: skip


class Coordinator(Members):
    """One of any number; the one with the lease works, the others watch."""

    def __init__(self, name: str, shards: tuple[int, ...], settings: CoordinatorSettings | None = None) -> None:
        super().__init__(name, settings or CoordinatorSettings())
        self.shards = shards
        self._epoch = Stamped(dict(STEADY))
        self._offer = Stamped()
        self._new_offer: dict[str, Any] | None = None  # that the plan being made is made from
        self._plans: set[int] = set()
        self._written: dict[int, bytes] = {}  # the plans as they stand there
        self._filters = TreeFilters(self._written)
        self._keys = FrameKeys(lambda key, data: self._do(Write(self._request(), key, data)))
        self._sources: dict[int, int] = {}  # the epoch in force at each shard's checkpoint
        self._number = 0  # of the plan being written
        self._planning = 0
        self._markers: dict[int, int] = {}  # the sequence number of the marker in each shard
        self._next_plan_at = self._since = self._asked_at = 0.0
        self._handlers |= {Noted: self._on_noted, Planned: self._on_planned, Replan: self._on_replan}

    def _start(self, now: float) -> None:
        self._lease.changed = now
        for prefix in WATCHED:
            self._do(Watch(prefix))
        self._do(Lookup(records.LEASE))

    # What the registry says.

    def _on_noted(self, event: Noted, now: float) -> None:
        bulk = event.key.startswith((records.PLAN, records.SEAL, records.RING))
        record = None if bulk else self._understood(event.key, event.data)
        if event.key == records.LEASE:
            self._note_lease(event, record, now)
        elif event.key == records.EPOCH:
            if event.revision > self._epoch.revision and event.data is not None:
                # Over rubbish whoever leads writes what it knew: no term is that of -1.
                self._epoch = Stamped(record or self._record | {"term": -1}, event.revision, now)
                self._since = now
                self._steps, self._busy_until = set(), now
        elif event.key == records.OFFER:
            self._offer = Stamped(record, event.revision, now)
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
            self._filters.states[records.name_of(event.key)] = Stamped(record, event.revision, now)
        elif event.key.startswith((records.SEAL, records.RING)):
            found = self._understood(event.key, event.data) if event.key.startswith(records.SEAL) else None
            self._keys.note(event.key, None if found is None else found["root"], there=event.data is not None)
        elif record is not None and (shard := records.number_of(event.key)) in self.shards:
            self._sources[shard] = record["epoch"]

    # Time, and the lease.

    def _on_tick(self, event: Tick, now: float) -> None:
        self._mind_lease(now)
        self._bury(now)
        self._work(now)

    def _step_down(self) -> None:
        super()._step_down()
        self._planning = self._planning if self.leads else 0

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
        self._asked_at = now
        self._dirty = False
        self._tidy()
        self._number = self._next_number()
        self._planning = self._request()
        self._new_offer = self._offered()
        wanted = self._wanted()
        entitled = self._entitled(wanted)
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
        # What comes meanwhile is planned for together: no more than half of the time goes into making plans.
        self._next_plan_at = max(self._next_plan_at, 2 * now - self._asked_at)
        if self._record["phase"] != "steady" or now < self._busy_until:
            self._dirty = True
        elif (
            event.routing is not None
            and not self._anew
            and self._filters.is_in_force(event.routing, self._record["current"])
        ):
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
                    self._keys.make(number, routing, crc32(packed))
                self._set_epoch(phase="preparing", next=number, trying=offer)

        self._step(self._write(records.numbered(records.PLAN, number), packed, 0, written))

    def _place(self, filters: frozenset[str]) -> None:
        """The filters to work from now on; if they were offered, the offer is in force with that."""
        self._filters.placement = filters
        if self._new_offer is not None:
            self._set_epoch(offer=self._new_offer, trying=None)

    def _move_filter(self) -> bool:
        """The next order to a filter, if one is where it should not be: a step of its own."""
        order = self._filters.order(self._record["current"])
        if order is None:
            return False
        broker, record, before = order

        def written(revision: int | None, stale: bool) -> None:
            if revision is not None:
                self.counts[f"filters {record['state']}"] += 1
                self._filters.states[broker] = Stamped(record, revision, self._now)

        self._step(self._write(records.named(records.FILTER, broker), record, before, written))
        return True

    def _give_keys(self) -> None:
        """Keys of the tree for edges that have come since it was planned."""
        current = self._record["current"]
        routing = self._filters.tree(current)
        if routing is None or not self.settings.seal:
            return
        known = [seen.record for seen in self._subscriptions.values() if seen.record is not None]
        edges = {record["edge"] for record in known if record.get("account") is None}
        channels = [c for c, address in routing.addresses.items() if isinstance(address, Overlay)]
        self._keys.give(current, crc32(self._written[current]), edges, channels)

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
                self._epoch = Stamped(record, revision, self._now)
                self._since = self._now

        self._step(self._write(records.EPOCH, record, self._epoch.revision, written))

    def _tidy(self) -> None:
        """Delete plans that were taken back, and those that no source can come back to."""
        current = self._record["current"]
        self._keys.delete_before(current, self._plans)
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
            self._keys.delete(number)

    def _forget_tree(self, number: int) -> None:
        """What brokers said and did in a tree that is over."""
        for broker, revision in self._filters.forgotten(number, self._written.pop(number, b"")):
            self._do(Write(self._request(), records.wants_of(number, broker), None))
            if revision is not None:
                self._do(Write(self._request(), records.named(records.FILTER, broker), None, revision))

    def _next_wake(self, now: float) -> float:
        s = self.settings
        times = [seen.changed + s.alive for seen in self._nodes.values()]
        times += self._lease_due()
        if self.leads:
            times.append(max(self._busy_until, self._next_step()))
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
