"""One subscription at one shard: its watermark, and the only two ways to move it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from narrowcast.deliver.parts.coverage import Coverage
from narrowcast.deliver.parts.part import NEVER
from narrowcast.deliver.routing.message_tests import MessageTests
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Entry, Unicast
from narrowcast.deliver.wire import (
    END,
    Batch,
    ColumnBatch,
    Frame,
    Malformed,
    Pulse,
    decode_entry,
    decode_payloads,
    place,
)
from narrowcast.deliver.wire.frame import NO_FLOW
from narrowcast.profiles import Profile
from narrowcast.profiles.possible import certain, possible
from narrowcast.profiles.predicate import predicate

if TYPE_CHECKING:
    from narrowcast.deliver.wire.columns import Columns

Message = tuple[int, bytes]
# What is handed over, in lists of items in order: a Message, or Columns, the rows of one entry.


def way_of(routing: Routing, channel: int) -> str:
    """How what comes by a channel is counted."""
    if channel in routing.rest:
        return "came by rest"
    return "came by unicast" if isinstance(routing.addresses[channel], Unicast) else "came by channel"


ROWS_FOR_ONE = 16
NO, PERHAPS, YES = 0, 1, 2  # what a message's flow alone says about a profile


class Opened:
    """A frame being looked at by several readers: each message is decoded at most once, and only if one must know.

    With `tests` over the profiles of all of them, each is tested at most once, too.
    """

    def __init__(self, frame: Frame, routing: Routing, tests: MessageTests | None = None) -> None:
        self.frame, self.routing, self.tests = frame, routing, tests
        self._decoded: dict[int, dict[str, Any] | Malformed] = {}
        self._wanted: dict[int, set[str]] = {}

    def wanted(self, indices: Sequence[int], tests: MessageTests) -> list[set[str]]:
        """The profiles that match each of some messages, by their texts."""
        known = self._wanted
        unknown = [index for index in indices if index not in known]
        for index, message in zip(unknown, self.messages(unknown), strict=True):
            known[index] = set() if isinstance(message, Malformed) else tests(message)
        return [known[index] for index in indices]

    def messages(self, indices: Sequence[int]) -> list[dict[str, Any] | Malformed]:
        """What is in some of the frame's messages."""
        known, messages = self._decoded, self.frame.messages
        unknown = [index for index in indices if index not in known]
        if unknown:
            known.update(zip(unknown, decode_payloads([messages[index][2] for index in unknown]), strict=True))
        return [known[index] for index in indices]


def _flow(routing: Routing, number: int) -> str | None:
    """The name of a flow; None for a message of none that the plan knows."""
    flows = routing.flows
    return None if number == NO_FLOW or number >= len(flows) else flows[number][0]


@dataclass(slots=True)
class Reader:
    """Everything that matches up to `mark` has been handed over; nothing after it has.

    `taken` says for each epoch which channels carry all that this subscription wants. `held` is what has come in beyond
    the mark, `columns` what has come in as columns, by entry, `seen` what has been claimed for each (epoch, channel). A
    reader that is `blind` takes nothing from channels, because it could not hold it; it reads the log. One that does
    not take columns gets their rows as messages one by one.
    """

    takes_columns: ClassVar[bool] = True

    subscription: str
    shard: int
    profile: Profile
    mark: int
    taken: dict[int, frozenset[int]] = field(default_factory=dict)
    held: dict[int, bytes] = field(default_factory=dict)
    columns: dict[int, list[Columns]] = field(default_factory=dict)
    seen: dict[tuple[int, int], Coverage] = field(default_factory=dict)
    furthest: int = 0  # nothing held lies beyond
    blind: bool = False
    head: int = 0  # the furthest place anyone spoke of
    heard: float = 0.0  # when a claim last came in, or the log was last read to its end
    checked: float = 0.0  # when the log was last read to its end, or said where that is
    end: int = 0  # where the log ended when it was last asked
    end_at: float = 0.0  # when that was
    hole: float = NEVER  # since when something is missing
    asks: int = 0  # how often a relay was asked for what it lacks
    closed: float = NEVER  # since when there was the hole that was closed last by asking for it
    closed_at: int = 0  # the place before it
    was_silent: bool = False  # there was no hole: nothing was heard since then
    reading: int = 0  # the open request to the log
    tailing: bool = False  # it was asked because no plan covered this
    read_at: float = NEVER
    told: int = 0  # the position the application was last told
    ends: dict[int, dict[int, int]] = field(default_factory=dict)  # by epoch and channel: how far it connects
    flows: tuple[Routing | None, dict[int, int]] = (None, {})  # what the flows of a plan say
    verdict_of: tuple[Routing | None, Any] = (None, None)  # the same as an array, once columns come along

    test: Callable[[Mapping[str, Any]], bool] = field(init=False)

    def __post_init__(self) -> None:
        self.test = predicate(self.profile)

    # The first way: channels.

    def take(self, opened: Opened, now: float, counts: Counter[str]) -> None:
        """A frame of a channel this subscription takes."""
        frame = opened.frame
        self.heard, self.head = now, max(self.head, frame.upto)
        if self.blind or frame.upto <= self.mark:
            return
        self.claim(frame.epoch, frame.channel, frame.after, frame.upto)
        new = frame.after >= max(self.mark, self.furthest)  # nothing in it was here before
        self.furthest = max(self.furthest, frame.upto)
        mark, held = self.mark, self.held
        flows = {message[1] for message in frame.messages}
        says = self.verdicts(opened.routing, flows)
        way = way_of(opened.routing, frame.channel)
        if new and all(says[flow] == YES for flow in flows):
            held.update([(at, payload) for at, _, payload in frame.messages])
            counts[way] += len(frame.messages)
            return
        before = len(held)
        asked: list[int] = []
        repeated = by_flow = 0
        for index, (at, flow, payload) in enumerate(frame.messages):
            if at <= mark or at in held:
                repeated += 1
            elif (verdict := says[flow]) == YES:
                held[at] = payload
            elif verdict == PERHAPS:
                asked.append(index)
            else:
                by_flow += 1
        for index in self._matching(opened, asked):
            at, _, payload = frame.messages[index]
            held[at] = payload
        came = len(held) - before
        by_profile = len(frame.messages) - repeated - by_flow - came
        filtered = (("filtered by flow", by_flow), ("filtered by profile", by_profile))
        for what, n in (("repeated", repeated), (way, came), *filtered):
            if n:
                counts[what] += n

    def take_columns(self, frame: Frame, rows: Columns, way: str, now: float, counts: Counter[str]) -> None:
        """A frame of columns of a channel this subscription takes, and those of its rows that it wants."""
        self.heard, self.head = now, max(self.head, frame.upto)
        if self.blind or frame.upto <= self.mark:
            return
        self.claim(frame.epoch, frame.channel, frame.after, frame.upto)
        self.furthest = max(self.furthest, frame.upto)
        new = rows.part(rows.upto(self.mark), len(rows))
        if len(new) and rows.base in self.columns:
            new = new.without(self.columns[rows.base])
        if len(new):
            self.columns.setdefault(rows.base, []).append(new)
        counts[way] += len(new)
        counts["repeated"] += len(rows) - len(new)
        counts["filtered by profile"] += len(frame.messages) - len(rows)

    def holds(self) -> int:
        """How much is held, in messages; rows of columns take a fraction of the room."""
        return len(self.held) + sum(len(rows) for parts in self.columns.values() for rows in parts) // ROWS_FOR_ONE

    def feel(self, pulse: Pulse, routing: Routing, now: float) -> None:
        """The heartbeats of all channels of a sender: those taken are claimed, each from where it last spoke.

        A relay names at least one of its channels, and so is known by them.
        """
        self.heard, self.head = now, max(self.head, pulse.upto)
        if self.blind or pulse.upto <= self.mark:
            return
        lately = dict(pulse.lately)
        taken: Iterable[int] = self.taken[pulse.epoch]
        if routing.relayed:
            sender = routing.sent_by.get(routing.relay_of(pulse.lately[0][0]) if lately else "", {})
            taken = [channel for channel in taken if channel in sender]
        for channel in taken:
            self.claim(pulse.epoch, channel, lately.get(channel, pulse.after), pulse.upto)

    def claim(self, epoch: int, channel: int, after: int, upto: int) -> None:
        """Note that everything for a channel in `(after, upto]` is here."""
        seen = self.seen.get((epoch, channel))
        if seen is None:
            seen = self.seen[epoch, channel] = Coverage()
        seen.add(after, upto)
        self.ends.setdefault(epoch, {})[channel] = seen.reach(self.mark)

    def reach(self) -> int:
        """How far every channel of some epoch connects, epoch after epoch."""
        mark = max((self._connected(epoch) for epoch in self.taken), default=self.mark)
        while mark > self.mark and len(self.taken) > 1:
            # Beyond what the first epoch gives, another may go on: at its cut-over.
            best = max(self._connected_from(mark, epoch) for epoch in self.taken)
            if best <= mark:
                return mark
            mark = best
        return mark

    def _connected(self, epoch: int) -> int:
        """From the mark: the least end over an epoch's channels, as kept by `claim` and `pass_on`."""
        ends = self.ends.get(epoch)
        if ends is None or len(ends) < len(self.taken[epoch]):
            return self.mark
        return min(ends.values())

    def _connected_from(self, mark: int, epoch: int) -> int:
        """The same from any place, worked out anew."""
        found = [self.seen.get((epoch, channel)) for channel in self.taken[epoch]]
        return min((mark if seen is None else seen.reach(mark) for seen in found), default=mark)

    def missing_before(self) -> int | None:
        """Where claims go on beyond a hole, if there is one: what lies before must come from the log."""
        starts = [start for seen in self.seen.values() if (start := seen.after(self.mark)) is not None]
        ends = [seen.reach(self.mark) for seen in self.seen.values()]
        beyond = starts + [end for end in ends if end > self.mark]
        return max(beyond, default=None)

    # The second way: the log.

    def from_log(self, entries: Iterable[Entry]) -> list[Any]:
        """What of these entries is wanted and not yet handed over, as items in order. Needs no plan."""
        found: list[Any] = []
        for entry in entries:
            batch = decode_entry(entry.data)
            if isinstance(batch, Batch):
                messages = decode_payloads(batch.payloads)
                for index, (payload, message) in enumerate(zip(batch.payloads, messages, strict=True)):
                    at = place(entry.sequence, index)
                    if at > self.mark and self._wants(message):
                        found.append((at, payload))
            elif isinstance(batch, ColumnBatch):
                found += self._columns_from_log(entry.sequence, batch)
        return found

    def _columns_from_log(self, sequence: int, batch: ColumnBatch) -> list[Any]:
        from narrowcast.deliver.parts.reader_columns import wanted_rows  # only who has columns needs Arrow

        rows = wanted_rows(self.profile if self.takes_columns else None, sequence, batch)
        if rows is None:
            return []
        rows = rows.part(rows.upto(self.mark), len(rows))
        if self.takes_columns:
            return [rows] if len(rows) else []
        return [(at, payload) for at, _, payload in rows]

    # Either way.

    def pass_on(self, wanted: list[Any], upto: int, credit: int | None) -> list[Any]:
        """Move the mark to `upto`, or as far as the credit goes, and return what to hand over."""
        if credit is not None and n_messages(wanted) > credit:
            wanted = _first(wanted, credit)
            upto = end_of_item(wanted[-1]) if wanted else self.mark
        self.mark = upto
        if self.held or self.columns:
            whole = self.furthest <= upto
            self.held = {} if whole else {at: payload for at, payload in self.held.items() if at > upto}
            self.columns = {} if whole or not self.columns else _beyond(self.columns, upto)
        self._move_ends(upto)
        self.hole = NEVER
        return wanted

    def _move_ends(self, upto: int) -> None:
        """What lies behind is forgotten; channels that did not get so far may connect from here."""
        for epoch, ends in self.ends.items():
            for channel, end in ends.items():
                if end <= upto:
                    seen = self.seen[epoch, channel]
                    seen.forget(upto)
                    ends[channel] = seen.reach(upto)

    def held_upto(self, upto: int) -> list[Any]:
        """What is held up to a place, as items in order; mostly all of it."""
        if self.columns:
            from narrowcast.deliver.parts.reader_columns import in_order

            return in_order({at: payload for at, payload in self.held.items() if at <= upto}, self.columns, upto)
        if self.furthest <= upto:
            return sorted(self.held.items())
        return sorted((at, payload) for at, payload in self.held.items() if at <= upto)

    def go_blind(self) -> None:
        """Too much to hold: let go of everything and read it from the log when its time comes."""
        self.blind = True
        self.held, self.columns, self.seen, self.ends = {}, {}, {}, {}

    def take_channels(self, taken: Mapping[int, frozenset[int]]) -> None:
        """The channels of each epoch from now on. Claims for others no longer matter."""
        if taken != self.taken:
            self.taken = dict(taken)
            self.seen = {key: seen for key, seen in self.seen.items() if key[1] in self.taken.get(key[0], ())}
            self.ends = {}
            for (epoch, channel), seen in self.seen.items():
                self.ends.setdefault(epoch, {})[channel] = seen.reach(self.mark)

    def _wants(self, message: dict[str, Any] | Malformed) -> bool:
        return not isinstance(message, Malformed) and self.test(message)

    def _matching(self, opened: Opened, asked: list[int]) -> list[int]:
        """Which of some messages of a frame this subscription wants."""
        if opened.tests is None:
            found = zip(asked, opened.messages(asked), strict=True)
            return [index for index, message in found if self._wants(message)]
        text = self.profile.text
        return [i for i, texts in zip(asked, opened.wanted(asked, opened.tests), strict=True) if text in texts]

    def verdicts(self, routing: Routing, flows: Collection[int]) -> dict[int, int]:
        """What the flows of a frame say, by their numbers; each is asked once per plan."""
        if self.flows[0] is not routing:
            self.flows = (routing, {})
        known = self.flows[1]
        for flow in flows:
            if flow not in known:
                known[flow] = self._verdict(_flow(routing, flow), routing.key)
        return known

    def _verdict(self, flow: str | None, key: tuple[str, ...]) -> int:
        if flow is None:
            return PERHAPS
        expression = self.profile.expression
        if certain(expression, flow, key):
            return YES
        return PERHAPS if possible(expression, flow, key) else NO


def n_messages(items: Sequence[Any]) -> int:
    """How many messages items are."""
    return len(items) if are_messages(items) else sum(1 if type(item) is tuple else len(item) for item in items)


def are_messages(items: Sequence[Any]) -> bool:
    """Whether all items are messages one by one."""
    return {tuple}.issuperset(map(type, items))


def _first(items: list[Any], n: int) -> list[Any]:
    """Items of the first n messages."""
    found: list[Any] = []
    for item in items:
        if n <= 0:
            break
        found.append(item if type(item) is tuple else item.part(0, min(n, len(item))))
        n -= 1 if type(item) is tuple else len(item)
    return found


def end_of_item(item: Any) -> int:
    """The place of an item's last message."""
    end: int = item[0] if type(item) is tuple else item.last
    return end


def _beyond(columns: Mapping[int, list[Columns]], upto: int) -> dict[int, list[Columns]]:
    """What of columns lies beyond a place."""
    found = {}
    for base, parts in columns.items():
        if base + END > upto:
            kept = [part for each in parts if len(part := each.part(each.upto(upto), len(each)))]
            if kept:
                found[base] = kept
    return found
