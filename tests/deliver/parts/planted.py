"""Bugs planted on purpose, each in one part, so that the simulator and its checker can be seen to catch them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from random import Random
from typing import Any

from narrowcast.deliver.parts.broker import Broker
from narrowcast.deliver.parts.climb import Climb
from narrowcast.deliver.parts.coordinator import Coordinator
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.effects import Acked, Append, Effect, PlanWanted, Send, Write
from narrowcast.deliver.parts.events import Noted, Subscribe, WasRead
from narrowcast.deliver.parts.publisher import Publisher
from narrowcast.deliver.parts.reader import Message, Opened, Reader
from narrowcast.deliver.parts.site_relay import SiteRelay, SiteSender
from narrowcast.deliver.parts.source import Source
from narrowcast.deliver.parts.wanted_below import WantedBelow
from narrowcast.deliver.routing.audience import Audiences
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Entry
from narrowcast.deliver.wire import (
    Attach,
    Batch,
    Frame,
    Malformed,
    Marker,
    Pulse,
    Seal,
    decode_entry,
    decode_payload,
    end_of,
    generation_of,
    in_generation,
)
from narrowcast.deliver.wire.columns import Columns
from narrowcast.deliver.wire.seal import SEALED
from narrowcast.profiles import Profile
from narrowcast.profiles.parsed import parsed
from simulator.disk import SimLog
from simulator.parts import Parts, random_plan


def _with_reader(kind: type[Reader]) -> type[Edge]:
    """An edge whose readers are of another class."""

    class Other(Edge):
        def _open(self, name: str, now: float) -> None:
            before = set(self.subscriptions[name].readers)
            super()._open(name, now)
            readers = self.subscriptions[name].readers
            for shard, reader in readers.items():
                if shard not in before:
                    readers[shard] = kind(**{f.name: getattr(reader, f.name) for f in fields(Reader) if f.init})
            self._retake()

    return Other


class SkipsTheDrain(Edge):
    """Takes the old plan for finished as soon as the registry says that the new one is in force."""

    def _on_noted(self, event: Noted, now: float) -> None:
        super()._on_noted(event, now)
        for shard, sequence in self.epoch["cutover"].items():
            for subscription in self.subscriptions.values():
                reader = subscription.readers.get(int(shard))
                if reader is not None and reader.mark < end_of(sequence):
                    reader.pass_on([], end_of(sequence), None)


class AcksBeforeTheLog(Publisher):
    """Says that messages are safe when they have only been sent."""

    def _do(self, effect: Effect) -> None:
        super()._do(effect)
        if isinstance(effect, Append):
            sent = self._lines[effect.shard].sent
            assert sent is not None
            for token, first in sent.tokens:
                super()._do(Acked(token, effect.shard, self._number, first))
            sent.tokens = ()


class _Forgets(Reader):
    def from_log(self, entries: Iterable[Entry]) -> list[Message]:
        return []


class _JumpsHoles(Reader):
    def claim(self, epoch: int, channel: int, after: int, upto: int) -> None:
        super().claim(epoch, channel, min(after, self.mark), upto)


class _AsksThePlan(Reader):
    takes_columns = False
    routing: Routing | None = None

    def take(self, opened: Opened, now: float, counts: Any) -> None:
        type(self).routing = opened.routing
        super().take(opened, now, counts)

    def from_log(self, entries: Iterable[Entry]) -> list[Message]:
        found = super().from_log(entries)
        if self.routing is None:
            return found
        taken = set(self.routing.taken.get(self.subscription, ()))
        return [m for m in found if taken & set(self.routing.route(decode_payload(m[1]))[1])]  # type: ignore[arg-type]


class _LeavesAtCommit(Reader):
    newest: int = 0

    def take(self, opened: Opened, now: float, counts: Any) -> None:
        if opened.frame.epoch > max(self.newest, min(self.taken)) and opened.frame.after > self.mark:
            self.mark = opened.frame.after
        self.newest = max(self.newest, opened.frame.epoch)
        super().take(opened, now, counts)


class _KeepsWhatIsDone(Reader):
    takes_columns = False

    def pass_on(self, wanted: list[Message], upto: int, credit: int | None) -> list[Message]:
        held = dict(self.held)
        found = super().pass_on(wanted, upto, credit)
        self.held = held
        return found

    def held_upto(self, upto: int) -> list[Message]:
        return sorted((at, payload) for at, payload in self.held.items() if at <= upto)


class _Eager(Reader):
    """Hands over what has come in without waiting for what is still missing before it."""

    def reach(self) -> int:
        return max([self.mark, *self.held]) if len(self.seen) > 1 else super().reach()


class IgnoresThePosition(Edge):
    """Starts at the end of the log also after a restart."""

    def _on_subscribe(self, event: Subscribe, now: float) -> None:
        super()._on_subscribe(replace(event, position=None), now)


class TrustsTheLimit(Edge):
    """Takes a read that was cut short for a whole one."""

    def _on_read(self, event: WasRead, now: float) -> None:
        more = event.upto + 2 if len(event.entries) >= self.settings.read_most else event.upto
        super()._on_read(replace(event, upto=more), now)


class HidesGaps(Edge):
    """Drops what a slow subscriber did not take, and does not say so."""

    def _tell_gap(self, reader: Reader, after: int, reason: str) -> None:
        reader.told = reader.mark


class StartsLate(Edge):
    """Acknowledges a subscription from a place that lies ahead of the log."""

    def _on_located(self, event: Any, now: float) -> None:
        super()._on_located(replace(event, sequence=event.sequence + 2), now)


class TakesAnyPlan(Edge):
    """Takes what a plan has under its subscription's name, whatever profile and edge the plan was made for."""

    def _channels(self, name: str, subscription: Any, routing: Routing, epoch: int) -> tuple[int, ...]:
        if routing.climbs:
            return super()._channels(name, subscription, routing, epoch)
        return routing.taken.get(name, ())


class CutsOverLate(Source):
    """Sends the entry after the marker by the old plan, but speaks for it under the new one."""

    late: int | None = None

    def _take(self, entry: Entry) -> bool:
        found = decode_entry(entry.data)
        if isinstance(found, Marker) and found.epoch > self.in_force and self.late is None:
            self.late = found.epoch
            self.sequence = entry.sequence
            self._speak(end_of(self.sequence))
            return True
        if self.late is not None and isinstance(found, Batch):
            self._route(entry.sequence, found.payloads)
            for lane in self._lanes.values():
                self._send(lane, lane.waiting[-1][0] if lane.waiting else lane.claimed)
            epoch, self.late = self.late, None
            self._enter(epoch)  # from the end of the marker on
            self.sequence = entry.sequence
            return self._routing is not None
        return super()._take(entry)


class ForgetsARow(Source):
    """Sends columns without their last row, with the claim unchanged."""

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Send) and isinstance(effect.what, Frame) and isinstance(effect.what.messages, Columns):
            rows = effect.what.messages
            few = rows.part(0, len(rows) - 1) if len(rows) > 1 else ()
            effect = replace(effect, what=replace(effect.what, messages=few))
        super()._do(effect)


class LiesWhenIdle(Source):
    """A heartbeat speaks for an entry that has not been read."""

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Send) and isinstance(effect.what, Pulse | Frame):
            said = effect.what
            if isinstance(said, Pulse) or not said.messages:
                effect = replace(effect, what=replace(said, upto=said.upto + (1 << 16)))
        super()._do(effect)


class PromisesTooMuchAfterRestart(Source):
    """Speaks at its start for everything since the log's generation began, as if it had sent it."""

    def _enter(self, epoch: int) -> None:
        super()._enter(epoch)
        if self._saved == self.sequence:
            begun = end_of(in_generation(generation_of(self.sequence), 0))
            self._pulses[0] = begun
            for lane in self._lanes.values():
                lane.claimed = begun


class ReusesNames(Publisher):
    """Numbers its batches from 0 again under the name it had before."""

    def __init__(self, name: str, settings: Any = None) -> None:
        super().__init__(name.partition(".")[0], settings)


class ForgetsFencing(Coordinator):
    """Writes whatever the revision is, over another's plan too, and goes on when somebody else holds the lease."""

    def _step_down(self) -> None:
        pass

    def _steady(self, now: float) -> None:
        self._plans = set()
        super()._steady(now)

    def _do(self, effect: Effect) -> None:
        super()._do(replace(effect, revision=None) if isinstance(effect, Write) else effect)


class DropsUnderLoad(Broker):
    """Passes on at most one message of a frame, with the claim unchanged."""

    def _forward(self, frame: Frame, now: float) -> None:
        super()._forward(replace(frame, messages=frame.messages[:1]), now)


class PulsesOverData(Source):
    """A pulse says of busy channels what is true of idle ones only."""

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Send) and isinstance(effect.what, Pulse):
            effect = replace(effect, what=replace(effect.what, lately=()))
        super()._do(effect)


class FiltersByAnOldTable(Broker):
    """Filters by the first table it ever had."""

    def __init__(self, name: str, settings: Any = None, **kwargs: Any) -> None:
        super().__init__(name, settings, **kwargs)
        self._first: WantedBelow | None = None

    def _thinned(self, frame: Frame, targets: list[str], climb: Climb) -> list[Frame]:
        self._first = self._first or climb.wanted
        climb.wanted = self._first
        return super()._thinned(frame, targets, climb)


class TakesBackWhatWasCommitted(Coordinator):
    """Gives a plan up although markers of it may stand in the log, and uses its number again."""

    def _committing(self, now: float) -> None:
        super()._committing(now)
        if self._record.get("trying") is not None:
            self._set_epoch(phase="steady", next=None, trying=None, refused=self._record["trying"]["number"])
            self._plans.discard(self._record["next"])
            self._do(Write(self._request(), f"plan.{self._record['next']}", None))


def narrows_a_merge(wanted: PlanWanted, rng: Random) -> Routing:
    """Leaves a condition out of a channel's content, or a flow out of a session, with the members unchanged."""
    found = random_plan(wanted, rng)
    sent = [channels for _, channels in found.flows if channels]
    if found.key and sent:
        gone = sent[0][0]
        flows = tuple((flow, tuple(c for c in channels if c != gone)) for flow, channels in found.flows)
        return replace(found, flows=flows)
    low = Profile.parse("p < 7")
    return replace(found, content={c: (parsed(text) & low if text else low).text for c, text in found.content.items()})


class _ReachesMost(Audiences):
    """Takes a channel that reaches part of an audience for one that reaches it all."""

    def choose(self, audience: frozenset[str]) -> tuple[int, ...]:
        return super().choose(audience)[:1]


class ForgetsTheRest(Source):
    """Sends a message to the first channel of its audience and forgets the gateways that this one leaves out."""

    def _enter(self, epoch: int) -> None:
        super()._enter(epoch)
        rule = self._routing.audiences if self._routing else None
        if self._routing is not None and rule is not None:
            self._routing = replace(self._routing, audiences=_ReachesMost(rule.channels, rule.blocks))


class TakesWhatIsNotSealed(Seal):
    """Opens what is sealed, and lets everything else in as it is."""

    def open(self, data: bytes) -> bytes | Malformed:
        return super().open(data) if data[3:4] and data[3] & SEALED else data


class SealsForEverybody(Seal):
    """Seals what is true for one node as if it were true for all of them."""

    def pack(self, what: Frame | Attach | Pulse, to: str = "") -> bytes:
        return super().pack(what)


class TakesAnySystem(Seal):
    """Takes frames of another system for its own; as long as they are not sealed, they can be read."""

    def open(self, data: bytes) -> bytes | Malformed:
        return data if not self.sealed else super().open(data)


class ForgetsGenerations(SimLog):
    """A log that went back and uses its numbers again."""

    def bear(self, shard: int, now: float) -> None:
        if not self.entries[shard]:
            super().bear(shard, now)


class RelaysAhead(SiteRelay):
    """Speaks in its site for what it has heard of, not for what it has got."""

    def _advance(self, reader: Reader, now: float) -> None:
        super()._advance(reader, now)
        outgoing = self._outgoing[reader.shard]
        if generation_of(reader.head >> 16) == generation_of(outgoing.mark >> 16):
            outgoing.mark = max(outgoing.mark, reader.head)


class RelaysByTheNextPlan(SiteRelay):
    """Sends what came by the trees of one plan as if it were all that the newest one wants."""

    def _forward(self, reader: Reader, messages: Any, upto: int, epoch: int, now: float) -> None:
        super()._forward(reader, messages, upto, max(self.plans, default=epoch), now)


class _JumpsGaps(SiteSender):
    """Goes on where it is told to, and claims what lies between."""

    def forward(self, messages: Any, after: int, upto: int, epoch: int, now: float) -> None:
        super().forward(messages, min(after, self.mark), upto, epoch, now)


class RelaysOverGaps(SiteRelay):
    sends_by = _JumpsGaps

    def _hand(self, subscription: Any, reader: Reader, wanted: Any, upto: int) -> None:
        reader.pass_on([], upto, None)  # read, and not sent on


class _Unsigned(SiteSender):
    def _signed(self, pulse: Pulse) -> Pulse:
        return replace(pulse, lately=())


class PulsesForEverybody(SiteRelay):
    """Its heartbeats do not say whose they are, and so speak for what sources send."""

    sends_by = _Unsigned


class _AnswersAnything(SiteSender):
    def _speak_for(self, asked: Frame) -> int:
        self.mark, mark = max(self.mark, asked.upto), self.mark
        try:
            return super()._speak_for(asked)
        finally:
            self.mark = mark


class AnswersAnything(SiteRelay):
    """Asked for what it has not got yet, it says that there is nothing."""

    sends_by = _AnswersAnything


class _ForgetsRows(SiteSender):
    def _route_rows(self, rows: Columns) -> None:
        super()._route_rows(rows.part(0, max(1, len(rows) - 1)))


class RelaysWithoutARow(SiteRelay):
    """Sends columns on without their last row, with the claim unchanged."""

    sends_by = _ForgetsRows


BUGS: dict[str, Parts] = {
    "skips the drain": Parts(edge=SkipsTheDrain),
    "acknowledges before the log": Parts(client=AcksBeforeTheLog),
    "forgets a repair": Parts(edge=_with_reader(_Forgets)),
    "narrows a merge": Parts(planner=narrows_a_merge),
    "moves the watermark over a lost frame": Parts(edge=_with_reader(_JumpsHoles)),
    "cuts over at the wrong sequence": Parts(source=CutsOverLate),
    "forgets fencing": Parts(coordinator=ForgetsFencing),
    "reuses dedup ids after a restart": Parts(client=ReusesNames),
    "forgets a row of columns": Parts(source=ForgetsARow),
    "lies in a heartbeat": Parts(source=LiesWhenIdle),
    "repairs by the plan instead of the profile": Parts(edge=_with_reader(_AsksThePlan)),
    "leaves the old channel at commit": Parts(edge=_with_reader(_LeavesAtCommit)),
    "claims what a broker dropped": Parts(broker=DropsUnderLoad),
    "pulses over data": Parts(source=PulsesOverData),
    "filters by an old table": Parts(broker=FiltersByAnOldTable),
    "keeps what has been handed over": Parts(edge=_with_reader(_KeepsWhatIsDone)),
    "hands over too early": Parts(edge=_with_reader(_Eager)),
    "ignores the stored position": Parts(edge=IgnoresThePosition),
    "takes a short read for a whole one": Parts(edge=TrustsTheLimit),
    "hides gaps": Parts(edge=HidesGaps),
    "takes a plan made for another profile": Parts(edge=TakesAnyPlan),
    "starts a subscription late": Parts(edge=StartsLate),
    "forgets the rest of an audience": Parts(source=ForgetsTheRest),
    "promises too much after a restart": Parts(source=PromisesTooMuchAfterRestart),
    "lets in what is not sealed": Parts(seal=TakesWhatIsNotSealed),
    "seals for everybody what is true for one": Parts(seal=SealsForEverybody),
    "takes frames of another system": Parts(seal=TakesAnySystem),
    "uses the numbers of a lost log again": Parts(log=ForgetsGenerations),
    "relays what it has not got": Parts(site_relay=RelaysAhead),
    "relays by the next plan": Parts(site_relay=RelaysByTheNextPlan),
    "relays over gaps": Parts(site_relay=RelaysOverGaps),
    "pulses for everybody": Parts(site_relay=PulsesForEverybody),
    "answers for what it has not got": Parts(site_relay=AnswersAnything),
    "relays without a row of columns": Parts(site_relay=RelaysWithoutARow),
}

# What did harm once. A frame says by which plan it was made, so plans that share a number are not mistaken.
HARMLESS: dict[str, Parts] = {"takes back what was committed": Parts(coordinator=TakesBackWhatWasCommitted)}
