"""The edge: exact filtering, each message once, in order, repaired from the log where frames are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.climbed import Climbed
from narrowcast.deliver.parts.effects import Deliver, Gap, Locate, Lookup, Read, Send, Subscribed, Watch, Write
from narrowcast.deliver.parts.events import (
    Arrived,
    Consumed,
    Failed,
    Located,
    Noted,
    Subscribe,
    Tick,
    Unsubscribe,
    WasRead,
)
from narrowcast.deliver.parts.node import MOST_PLANS, Node
from narrowcast.deliver.parts.part import NEVER
from narrowcast.deliver.parts.reader import Opened, Reader, are_messages, n_messages, way_of
from narrowcast.deliver.parts.relay import columns_in
from narrowcast.deliver.routing.message_tests import MessageTests
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.sites import pulses_of, site_asks
from narrowcast.deliver.transport import Address, Link, Overlay
from narrowcast.deliver.wire import Attach, Frame, Pulse, end_of, generation_of, sequence_of
from narrowcast.profiles import Profile
from narrowcast.profiles.parsed import parsed

if TYPE_CHECKING:
    from narrowcast.deliver.routing.table_tests import TableTests
    from narrowcast.deliver.wire.columns import Columns

TOGETHER = 3  # subscriptions that take a channel, from which on one matcher for all of them is worth it


ASKS = 3  # times a relay is asked for what a hole lacks, `grace` apart, before the log is read
BUSY_S = 0.02  # until the next look at what is missing, where more stands ready to be heard
MOST_RETRY = 4.0  # seconds: a log that answers late is not asked for the same again and again


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """`grace`: how long a hole may be closed by frames that are late, up to `most_grace` where they are later than
    that again and again. `patience`: how long silence is believed, up to `most_patience` where frames come after all.

    `tail`: how often the log is read for a subscription that no plan covers. `trust`: how long an edge goes by what it
    hears alone, before it asks the log whether that is all. `most_held`: messages held
    beyond a hole before the log takes over. `most_lag`: entries a subscriber without credit may fall
    behind before it is told of a gap.
    """

    grace: float = 0.1
    most_grace: float = 1.0
    patience: float = 0.75
    most_patience: float = 3.0
    tail: float = 0.05
    trust: float = 30.0
    retry: float = 0.25
    attach: float = 0.5
    register: float = 5.0
    report: float = 1.0
    read_most: int = 256
    most_held: int = 10_000
    most_lag: int = 100_000


@dataclass(slots=True)
class _Subscription:
    profile: Profile
    credit: int | None
    start: dict[int, int]
    readers: dict[int, Reader] = field(default_factory=dict)
    registered: float = NEVER  # when to write it to the registry again

    def spend(self, messages: int) -> None:
        if self.credit is not None:
            self.credit -= messages


class Edge(Node):
    """Serves the subscriptions of one process, or of many as a gateway."""

    role = "edge"
    reader = Reader

    def __init__(
        self,
        name: str,
        shards: tuple[int, ...],
        settings: EdgeSettings | None = None,
        *,
        gateway: str | None = None,
        beat: float = 1.0,
    ) -> None:
        super().__init__(name, beat=beat)
        self.shards = shards
        self.gateway = gateway
        self.settings = settings or EdgeSettings()
        self.grace, self.patience = self.settings.grace, self.settings.patience
        self._closed_until = 0.0  # frames that come late until then tell how late they are
        self.subscriptions: dict[str, _Subscription] = {}
        self._takers: dict[tuple[int, int, int], list[Reader]] = {}  # by shard, epoch, channel
        self._matchers: dict[tuple[int, int, int], MessageTests] = {}  # of those who take a channel
        self._asked: dict[int, tuple[str, int]] = {}  # open requests: subscription and shard
        self._reads: dict[tuple[int, int, int | None], int] = {}  # of this moment: what is asked of the log, by whom
        self._sharing: dict[int, list[int]] = {}  # requests that an earlier one's answer is for too
        self._retry = self.settings.retry  # when to ask the log again; longer where it answers late
        self._climbed = Climbed(name, shards)  # what a filtered tree carries for us
        self._tests: tuple[dict[str, int], TableTests] | None = None  # of all subscriptions, once columns come along
        self._locate_at = self._attach_at = self._report_at = self._read_due = NEVER
        self._handlers |= {
            Arrived: self._on_arrived,
            Subscribe: self._on_subscribe,
            Unsubscribe: self._on_unsubscribe,
            Consumed: self._on_consumed,
            Located: self._on_located,
            WasRead: self._on_read,
            Failed: self._on_failed,
        }

    # Subscriptions come and go.

    def _on_subscribe(self, event: Subscribe, now: float) -> None:
        self._drop(event.subscription)
        start = {shard: at for shard, at in (event.position or {}).items() if shard in self.shards}
        self.subscriptions[event.subscription] = _Subscription(parsed(event.profile), event.credit, start)
        self._locate(now)
        self._open(event.subscription, now)

    def _on_unsubscribe(self, event: Unsubscribe, now: float) -> None:
        self._drop(event.subscription)
        self._do(Write(self._request(), records.named(records.SUBSCRIPTION, event.subscription), None))
        self._prepare(now)

    def _drop(self, name: str) -> None:
        self.subscriptions.pop(name, None)
        self._tests = None
        self._climbed.drop(name)
        self._asked = {request: asked for request, asked in self._asked.items() if asked[0] != name}

    def _locate(self, now: float) -> None:
        """Ask where the log ends, for every subscription that does not know where it starts."""
        self._locate_at = NEVER
        for name, subscription in self.subscriptions.items():
            for shard in self.shards:
                if shard not in subscription.start:
                    self._locate_at = now + self.settings.retry
                    request = self._request()
                    self._asked[request] = (name, shard)
                    self._do(Locate(request, shard))
        self._locate_climbed(now)

    def _on_located(self, event: Located, now: float) -> None:
        if self._climbed.located(event.request, event.shard, end_of(event.sequence)):
            self._prepare(now)
            return
        name, shard = self._asked.pop(event.request, (None, event.shard))
        subscription = self.subscriptions.get(name) if name is not None else None
        if subscription is None or name is None:
            return
        reader = subscription.readers.get(shard)
        if reader is None:
            subscription.start.setdefault(shard, end_of(event.sequence))
            self._open(name, now)
        elif subscription.credit == 0:
            reader.reading, reader.heard = 0, now
            reader.head = max(reader.head, end_of(event.sequence))
            self._advance(reader, now)
        else:
            reader.reading, reader.checked = 0, now
            reader.end, reader.end_at = end_of(event.sequence), now
            self._plan_read(reader, now)

    def _open(self, name: str, now: float) -> None:
        """Once every shard's start is known, the subscription is acknowledged and served from the log."""
        subscription = self.subscriptions[name]
        if subscription.readers or any(shard not in subscription.start for shard in self.shards):
            return
        for shard in self.shards:
            at = subscription.start[shard]
            subscription.readers[shard] = self.reader(
                name, shard, subscription.profile, at, told=at, read_at=now, checked=now
            )
        self._asked = {request: asked for request, asked in self._asked.items() if asked[0] != name}
        self._read_due = now
        self._do(Subscribed(name, dict(subscription.start)))
        self._register(name, subscription, now)
        self._report_at = min(self._report_at, now + self.settings.report)
        self._locate_climbed(now)
        self._prepare(now)

    def _register(self, name: str, subscription: _Subscription, now: float) -> None:
        record = {"profile": subscription.profile.text, "edge": self.name, "gateway": self.gateway}
        self._do(Write(self._request(), records.named(records.SUBSCRIPTION, name), records.pack(record)))
        subscription.registered = now + self.settings.register

    # Keys: of the channels to take.

    @property
    def _keys_at(self) -> str:
        return records.ring_of(self.name)

    def _take_keys(self, event: Noted) -> None:
        record = self._understood(event.key, event.data)
        if record is not None:
            keys = {int(channel): bytes.fromhex(key) for channel, key in record["keys"].items()}
            self.seal.add_keys(records.ring_epoch(event.key), record["plan"], keys)

    def _has_keys(self, epoch: int) -> bool:
        return self.name not in self.plans[epoch].edges.values() or self.seal.is_ready(epoch)

    def _replaced(self, epoch: int) -> None:
        """What was claimed under a plan that is not the one any more is worth nothing."""
        if epoch in self.plans:
            self.counts["plans replaced"] += 1
            for subscription in self.subscriptions.values():
                for reader in subscription.readers.values():
                    reader.go_blind()

    # Plans: which channels to take.

    def _prepare(self, now: float) -> None:
        self._climb()
        self._retake()
        super()._prepare(now)
        self._attach_at = now

    def _climb(self) -> None:
        """Follow what our gateway says of our subscriptions, in every plan where they climb a tree."""
        for epoch, routing in self.plans.items():
            if routing.climbs and self.gateway is not None and epoch not in self._climbed.keys:
                key = self._climbed.keys[epoch] = records.wants_of(epoch, self.gateway)
                self._do(Watch(key))
                self._do(Lookup(key))
        self._climbed.forget(self.plans)

    def _noted(self, event: Noted, now: float) -> None:
        if event.key.startswith(records.WANTS):
            record = self._understood(event.key, event.data)
            if record is not None and self._climbed.hear(event.key, record, event.revision):
                self._locate_climbed(now)
                self._prepare(now)

    def _locate_climbed(self, now: float) -> None:
        """From where on the tree carries what has just become sure: not before the log's end of now."""
        profiles = {name: each.profile.text for name, each in self.subscriptions.items() if each.readers}
        if self._climbed.settle(profiles):
            self._locate_at = min(self._locate_at, now + self.settings.retry)
            for shard in self.shards:
                request = self._request()
                self._climbed.ask(request)
                self._do(Locate(request, shard))

    def _retake(self) -> None:
        self._takers = {}
        self._matchers = {}
        for name, subscription in self.subscriptions.items():
            found = {n: self._channels(name, subscription, routing, n) for n, routing in self.plans.items()}
            taken = {epoch: frozenset(channels) for epoch, channels in found.items() if channels}
            for reader in subscription.readers.values():
                reader.take_channels(taken)
                for epoch, channels in taken.items():
                    for channel in channels:
                        self._takers.setdefault((reader.shard, epoch, channel), []).append(reader)

    def _channels(self, name: str, subscription: _Subscription, routing: Routing, epoch: int) -> tuple[int, ...]:
        """What a plan has for a subscription; nothing if it was made for another profile, edge or gateway."""
        if routing.climbs:
            tree = (c for c, address in routing.addresses.items() if isinstance(address, Overlay))
            return tuple(tree) if self._climbed.carries(epoch, name) else ()
        same = (
            routing.profiles.get(name) == subscription.profile.text
            and routing.edges.get(name) == self.name
            and routing.gateways.get(self.name) == self.gateway
        )
        return routing.taken.get(name, ()) if same else ()

    def _drain(self) -> None:
        """Plans before the current one are kept until every mark has passed the cut-over."""
        current = self.epoch["current"]
        cutover: Mapping[str, int] = self.epoch["cutover"]
        readers = [reader for each in self.subscriptions.values() for reader in each.readers.values()]
        passed = all(reader.mark >= end_of(cutover.get(str(reader.shard), 0)) for reader in readers)
        kept = [n for n in sorted(self.plans)[-MOST_PLANS:] if n >= current or not passed]
        if len(kept) < len(self.plans):
            for gone in self.plans.keys() - kept:
                self.seal.forget(gone)
            self.plans = {n: self.plans[n] for n in kept}
            self._retake()

    def _wanted(self) -> dict[Address, None]:
        wanted: dict[Address, None] = {}
        for epoch, routing in sorted(self.plans.items()):
            for name, subscription in self.subscriptions.items():
                channels = self._channels(name, subscription, routing, epoch)
                wanted |= {routing.addresses[channel]: None for channel in channels}
                if channels and routing.pulse is not None:
                    wanted |= dict.fromkeys(pulses_of(routing, channels))
        return wanted

    def _attach(self, now: float) -> None:
        """Tell the broker which overlay channels to pass on; it forgets, so tell it again and again."""
        self._attach_at = NEVER
        if self.gateway is None:
            return
        for epoch, routing in sorted(self.plans.items()):
            taken = {c for name, each in self.subscriptions.items() for c in self._channels(name, each, routing, epoch)}
            for channel in sorted(taken):
                if isinstance(routing.addresses[channel], Overlay):
                    turn = self._climbed.turn(epoch)
                    self._do(Send(Link(self.gateway), Attach(self.name, epoch, channel, turn=turn)))
                    self._attach_at = now + self.settings.attach

    # Frames.

    def _on_arrived(self, event: Arrived, now: float) -> None:
        frame = event.what
        if isinstance(frame, Pulse):
            self._feel(frame, now)
            return
        if not isinstance(frame, Frame):
            self.counts["stray"] += 1
            return
        readers = self._takers.get((frame.shard, frame.epoch, frame.channel))
        if not readers:
            self.counts["filtered by session"] += len(frame.messages) or 1
            return
        if now < self._closed_until:
            for reader in readers:
                self._mind_closed(reader, frame, now)
        routing = self.plans[frame.epoch]
        columns = columns_in(frame.messages)
        if columns is not None:
            if not columns.is_whole():
                self.counts["malformed columns"] += 1
                return
            self._take_columns(frame, columns, [reader for reader in readers if reader.takes_columns], now)
            readers = [reader for reader in readers if not reader.takes_columns]
        opened = Opened(frame, routing, self._message_tests(frame, readers))
        for reader in readers:
            at = self._climbed.start(frame.epoch, reader.subscription, frame.shard) if routing.climbs else 0
            reader.take(opened if frame.after >= at else Opened(_after(frame, at), routing), now, self.counts)
            self._advance(reader, now)

    def _message_tests(self, frame: Frame, readers: list[Reader]) -> MessageTests | None:
        """One matcher for all who take a channel, where they are more than a few."""
        if len(readers) < TOGETHER or not frame.messages:
            return None
        key = (frame.shard, frame.epoch, frame.channel)
        if key not in self._matchers:
            self._matchers[key] = MessageTests(reader.profile for reader in readers)
        return self._matchers[key]

    def _take_columns(self, frame: Frame, columns: Columns, readers: list[Reader], now: float) -> None:
        """One matcher over all subscriptions looks at the rows once; each reader gets those that it wants."""
        routing = self.plans[frame.epoch]
        wanted = self._wanted_rows(columns, routing, {reader.profile.text: reader for reader in readers})
        way = way_of(routing, frame.channel)
        for reader in readers:
            rows = wanted[reader.profile.text]
            at = self._climbed.start(frame.epoch, reader.subscription, frame.shard) if routing.climbs else 0
            if frame.after < at:
                rows = rows.part(rows.upto(at), len(rows))
            part = frame if frame.after >= at else replace(frame, after=min(at, frame.upto))
            reader.take_columns(part, rows, way, now, self.counts)
            self._advance(reader, now)

    def _wanted_rows(self, columns: Columns, routing: Routing, readers: Mapping[str, Reader]) -> dict[str, Columns]:
        """The rows that each profile wants, by its text. What flows decide is not looked at."""
        from narrowcast.deliver.parts.reader_columns import rows_by_flow  # only who has columns needs Arrow
        from narrowcast.deliver.routing.table_tests import TableTests

        found = {text: rows_by_flow(reader, routing, columns.flows) for text, reader in readers.items()}
        if any(rows is None for rows in found.values()):
            if self._tests is None:
                profiles = {each.profile.text: each.profile for each in self.subscriptions.values()}
                self._tests = ({text: k for k, text in enumerate(profiles)}, TableTests(list(profiles.values())))
            numbers, tests = self._tests
            tested = tests(columns.batch)
            found = {text: tested[numbers[text]] if rows is None else rows for text, rows in found.items()}
        return {text: columns.select(rows) for text, rows in found.items() if rows is not None}

    def _feel(self, pulse: Pulse, now: float) -> None:
        for subscription in self.subscriptions.values():
            reader = subscription.readers.get(pulse.shard)
            if reader is not None and pulse.epoch in reader.taken:
                reader.feel(pulse, self.plans[pulse.epoch], now)
                self._advance(reader, now)

    def _advance(self, reader: Reader, now: float) -> None:
        """Hand over what the channels have made certain, and see whether something is missing."""
        subscription = self.subscriptions[reader.subscription]
        upto = reader.reach()
        if upto > reader.mark and reader.hole < now:
            if reader.asks:  # by what was late, or by what a relay sent again: a second one will tell
                self._mind_closing(reader, now)
            else:
                self._mind_lateness(reader.hole, now)
        if upto > reader.mark and subscription.credit != 0:
            self._hand(subscription, reader, reader.held_upto(upto), upto)
        if (reader.held or reader.columns) and reader.holds() > self.settings.most_held:
            self.counts["blinded"] += 1
            reader.go_blind()
        if subscription.credit == 0:
            self._mind_lag(reader, now)
        self._plan_read(reader, now)

    def _hand(self, subscription: _Subscription, reader: Reader, wanted: list[Any], upto: int) -> None:
        items = reader.pass_on(wanted, upto, subscription.credit)
        if items:
            count = n_messages(items)
            subscription.spend(count)
            reader.told = reader.mark
            self.counts["delivered"] += count
            self._deliver(reader, items)

    def _deliver(self, reader: Reader, items: list[Any]) -> None:
        """Messages that follow each other together, columns by themselves; the last says how far all of it gets."""
        runs: list[Sequence[tuple[int, bytes]]] = []
        if are_messages(items):
            runs.append(tuple(items))
        else:
            from narrowcast.deliver.wire.columns import ColumnRows

            for single, some in groupby(items, key=lambda item: type(item) is tuple):
                if single:
                    runs.append(tuple(some))
                else:
                    runs += map(ColumnRows, some)
        for messages in runs[:-1]:
            self._do(Deliver(reader.subscription, reader.shard, messages, messages[-1][0]))
        self._do(Deliver(reader.subscription, reader.shard, runs[-1], reader.mark))

    def _on_consumed(self, event: Consumed, now: float) -> None:
        subscription = self.subscriptions.get(event.subscription)
        if subscription is not None and subscription.credit is not None:
            subscription.credit += event.messages
            for reader in subscription.readers.values():
                self._advance(reader, now)

    def _mind_lateness(self, since: float, now: float) -> None:
        """Frames have come, so long after the first word of them: twice that is waited for others.

        A machine that is busy, or a long way, makes frames late without losing any. Reading the log would only add to
        the load.
        """
        self.grace = max(self.grace, min(2 * (now - since), self.settings.most_grace))

    def _mind_closing(self, reader: Reader, now: float) -> None:
        """A hole is being closed by what we asked for; perhaps it would have been without."""
        reader.closed, reader.closed_at, reader.was_silent = reader.hole, reader.mark, reader.hole == NEVER
        if reader.was_silent:
            reader.closed = reader.heard
        self._closed_until = now + 2 * self.settings.most_grace

    def _mind_closed(self, reader: Reader, frame: Frame, now: float) -> None:
        """Whether the log was read, or a relay asked, in vain: the frame that was missing comes after all."""
        if reader.closed < NEVER and frame.after <= reader.closed_at < frame.upto <= reader.mark:
            self.counts["read in vain"] += 1
            if reader.was_silent:  # not dead but slow: a source that is busy says nothing meanwhile
                self.patience = max(self.patience, min(2 * (now - reader.closed), self.settings.most_patience))
            else:
                self._mind_lateness(reader.closed, now)
            reader.closed = NEVER

    def _mind_lag(self, reader: Reader, now: float) -> None:
        """A subscriber that takes nothing and has fallen too far behind is told what it will not get."""
        behind = sequence_of(reader.head) - sequence_of(reader.mark)
        if behind > self.settings.most_lag:
            after = reader.mark
            reader.pass_on([], reader.head, None)
            self._tell_gap(reader, after, "slow")

    def _tell_gap(self, reader: Reader, after: int, reason: str) -> None:
        self.counts["gaps"] += 1
        reader.told = reader.mark
        self._do(Gap(reader.subscription, reader.shard, after, reader.mark, reason))

    # The log.

    def _covered(self, reader: Reader) -> bool:
        return not reader.blind and self.epoch["current"] in reader.taken

    def _plan_read(self, reader: Reader, now: float) -> None:
        """When to read the log: soon after a hole shows, at once and again without a plan, late in silence."""
        if reader.reading:
            return
        s = self.settings
        if not self._covered(reader):
            due = min(reader.read_at, now + s.tail)
        elif reader.head > reader.mark:
            if reader.hole == NEVER:
                reader.hole, reader.asks = now, 0
            due = reader.hole + (1 + reader.asks) * self.grace
        else:
            due = min(reader.heard + self.patience, reader.checked + s.trust)
            due = min(due, reader.end_at + self.patience) if reader.end > reader.mark else due
        reader.read_at = due
        self._read_due = min(self._read_due, due)

    def _read(self, reader: Reader, now: float) -> None:
        """Ask the log for what is missing, or for whatever is new; but a relay of the site first, if there is one."""
        subscription = self.subscriptions[reader.subscription]
        beyond = reader.missing_before() if self._covered(reader) else None
        ask = beyond is not None and not reader.reading and reader.asks < ASKS
        if ask and beyond is not None and self._ask_relay(reader, beyond):
            reader.asks += 1
            reader.hole = now - reader.asks * self.grace
            reader.read_at = now + self.grace
            return
        self._asked.pop(reader.reading, None)
        request = reader.reading = self._request()
        self._asked[request] = (reader.subscription, reader.shard)
        reader.read_at = now + self._retry
        reader.tailing = not self._is_carried(reader)
        if subscription.credit == 0 or self._is_only_checking(reader, now):
            self._do(Locate(request, reader.shard))
            return
        at = sequence_of(reader.mark)
        after = at if reader.mark == end_of(at) else at - 1
        upto = None if beyond is None else sequence_of(beyond)
        first = self._asked_for(reader.shard, after, upto)
        if first is not None:
            self._sharing.setdefault(first, []).append(request)
            return
        self._reads[reader.shard, after, upto] = request
        self.counts["repairs" if beyond is not None else "reads"] += 1
        self._do(Read(request, reader.shard, after, upto, self.settings.read_most))

    def _is_only_checking(self, reader: Reader, now: float) -> bool:
        """Whether all seems well, and the log need only say where it ends: frames that far are on their way."""
        s = self.settings
        well = self._covered(reader) and reader.head <= reader.mark and now < reader.heard + self.patience
        return well and reader.end <= reader.mark and now >= reader.checked + s.trust

    def _asked_for(self, shard: int, after: int, upto: int | None) -> int | None:
        """Who asks at this moment, for another subscription, what this begins with and goes at least as far."""
        for (other, begin, end), request in self._reads.items():
            near = other == shard and begin <= after < begin + self.settings.read_most
            if near and (end is None or (upto is not None and upto <= end)):
                return request
        return None

    def _ask_relay(self, reader: Reader, beyond: int) -> bool:
        """Ask for frames of a site's channels that have not come; whether there was anybody to ask."""
        asked = False
        for epoch, channels in sorted(reader.taken.items()):
            routing = self.plans[epoch]
            for channel in sorted(channels) if routing.relayed else ():
                relay, after = routing.relay_of(channel), reader.ends.get(epoch, {}).get(channel, reader.mark)
                if relay and after < beyond and generation_of(sequence_of(after)) == generation_of(sequence_of(beyond)):
                    self._do(Send(site_asks(relay), lacking(Frame(reader.shard, channel, epoch, after, beyond))))
                    asked = True
        self.counts["asked"] += asked
        return asked

    def _on_read(self, event: WasRead, now: float) -> None:
        self._retry = max(self.settings.retry, self._retry / 2)
        self._take_read(event, now)
        for request in self._sharing.pop(event.request, ()):
            if not self._falls_short(request, event, now):
                self._take_read(replace(event, request=request), now)

    def _falls_short(self, request: int, event: WasRead, now: float) -> bool:
        """Whether the answer to another's question ends before where this one stands, which then asks for itself."""
        name, shard = self._asked.get(request, ("", event.shard))
        subscription = self.subscriptions.get(name)
        reader = None if subscription is None else subscription.readers.get(shard)
        if reader is None or end_of(event.upto) >= reader.mark:
            return False
        self._take_failed(request, now)
        return True

    def _take_read(self, event: WasRead, now: float) -> None:
        name, shard = self._asked.pop(event.request, ("", event.shard))
        subscription = self.subscriptions.get(name)
        if subscription is None or shard not in subscription.readers:
            return
        reader = subscription.readers[shard]
        if event.request == reader.reading:
            reader.reading = 0
        gone = end_of(event.first - 1)
        if event.first > event.after + 1 and gone > reader.mark:
            after = reader.mark
            reader.pass_on([], gone, None)
            self._tell_gap(reader, after, "restored" if event.back else "log")
        if reader.tailing and self._covered(reader):
            event = self._left_to_channels(reader, event, now)
        upto = end_of(event.upto)
        full = event.goes_on(self.settings.read_most)
        if end_of(event.after) <= reader.mark < upto and subscription.credit != 0:
            if self._is_carried(reader):
                self._mind_closing(reader, now)
            wanted = reader.from_log(event.entries)
            self.counts["repaired"] += n_messages(wanted)
            self._hand(subscription, reader, wanted, upto)
        if not full:
            reader.heard = reader.checked = now
            reader.blind = False
        reader.read_at = now if full else NEVER
        self._advance(reader, now)
        if full and not reader.reading:
            reader.read_at = self._read_due = now

    def _is_carried(self, reader: Reader) -> bool:
        """Whether channels of the plan in force carry all from here on."""
        return self._covered(reader) and reader.mark >= self._carried_from(reader)

    def _carried_from(self, reader: Reader) -> int:
        epoch = self.epoch["current"]
        start = self._climbed.start(epoch, reader.subscription, reader.shard) if self.plans[epoch].climbs else 0
        return max(end_of(self.epoch["cutover"].get(str(reader.shard), 0)), start)

    def _left_to_channels(self, reader: Reader, event: WasRead, now: float) -> WasRead:
        """The part that lies before what channels carry: asked before the plan came, answered after.

        The rest is on its way, mostly; what has not come that far within `patience` is read.
        """
        until = sequence_of(self._carried_from(reader))
        if until >= event.upto:
            return event
        reader.end, reader.end_at = end_of(event.upto), now
        return replace(event, upto=until, entries=tuple(each for each in event.entries if each.sequence <= until))

    def _on_failed(self, event: Failed, now: float) -> None:
        for request in (event.request, *self._sharing.pop(event.request, ())):
            self._take_failed(request, now)

    def _take_failed(self, request: int, now: float) -> None:
        name, shard = self._asked.pop(request, ("", 0))
        subscription = self.subscriptions.get(name)
        if subscription is not None and shard in subscription.readers:
            reader = subscription.readers[shard]
            if request == reader.reading:
                reader.reading = 0
                reader.read_at = now + self.settings.tail
                self._read_due = min(self._read_due, reader.read_at)

    # Time.

    def _on_tick(self, event: Tick, now: float) -> None:
        super()._on_tick(event, now)
        if now >= self._locate_at:
            self._locate(now)
        if now >= self._attach_at:
            self._attach(now)
        if now >= self._read_due:
            self._read_all(now, event.busy)
        if now >= self._report_at:
            self._report(now)

    def _read_all(self, now: float, busy: bool) -> None:
        """Whoever is due; where more stands ready to be heard, only those for whom channels carry nothing."""
        readers = [reader for each in self.subscriptions.values() for reader in each.readers.values()]
        due = sorted((reader for reader in readers if now >= reader.read_at), key=lambda reader: reader.mark)
        if any(reader.reading for reader in due):  # unanswered
            self._retry = min(2 * self._retry, MOST_RETRY)
        self._reads.clear()
        for reader in due:  # who is furthest behind asks for the others too
            if reader.tailing and not reader.reading and self._is_carried(reader):
                reader.tailing = False  # a plan has come since: what it lacks shows by its frames
                self._plan_read(reader, now)
            if busy and self._covered(reader):
                reader.read_at = now + BUSY_S
            elif now >= reader.read_at:
                self._read(reader, now)
        self._read_due = min((reader.read_at for reader in readers), default=NEVER)

    def _report(self, now: float) -> None:
        """Tell positions that moved without a message, drop what is drained, and register again now and then."""
        self._report_at = now + self.settings.report if self.subscriptions else NEVER
        self.grace = max(self.settings.grace, 0.98 * self.grace)
        self.patience = max(self.settings.patience, 0.98 * self.patience)
        for name, subscription in self.subscriptions.items():
            for reader in subscription.readers.values():
                if reader.told < reader.mark:
                    reader.told = reader.mark
                    self._do(Deliver(name, reader.shard, (), reader.mark))
            if now >= subscription.registered:
                self._register(name, subscription, now)
        self._drain()
        self._join()

    def _next_wake(self, now: float) -> float:
        return min(self._beat_at, self._locate_at, self._attach_at, self._read_due, self._report_at)


def lacking(frame: Frame) -> Attach:
    """What to tell a relay of frames that have not come: an attachment by their stretch.

    Not an empty frame of that stretch: whoever got hold of one would take it for the claim that there is nothing.

    >>> lacked(lacking(Frame(0, 7, 1, 5, 9)))
    Frame(shard=0, channel=7, epoch=1, after=5, upto=9, messages=())
    """
    return Attach(f"{frame.shard} {frame.after} {frame.upto}", frame.epoch, frame.channel)


def lacked(attach: Attach) -> Frame | None:
    """The stretch that `lacking` told of; None for any other attachment."""
    try:
        shard, after, upto = (int(number) for number in attach.edge.split())
    except ValueError:
        return None
    return Frame(shard, attach.channel, attach.epoch, after, upto)


def _after(frame: Frame, at: int) -> Frame:
    """The part of a frame that lies beyond a place."""
    messages = tuple(message for message in frame.messages if message[0] > at)
    return replace(frame, after=min(at, frame.upto), messages=messages)
