"""The publishing side: batches, one at a time per shard, repeated under the same name until the log has them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from narrowcast.deliver.parts.effects import Acked, Append, Rejected, Unsure
from narrowcast.deliver.parts.events import Appended, Failed, Publish, PublishColumns, Tick
from narrowcast.deliver.parts.part import NEVER, Part
from narrowcast.deliver.wire import MOST_PAYLOAD, Batch, ColumnBatch, encode_entry
from narrowcast.deliver.wire.entry import publisher_bytes
from narrowcast.deliver.wire.place import MOST
from narrowcast.errors import InputError

EARLIER = "it is unknown whether an earlier try of the same messages got through"


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """`linger`: how long a message waits for company, where none is under way: what comes meanwhile is the next batch.

    `window`: how long the log knows repeats, less a margin.
    `most_payload`: of one message, which may be an entry of its own beyond `most_bytes`. `most_columns`: bytes of
    columns, which have an entry for themselves.
    """

    most_messages: int = 1024
    most_bytes: int = 256 << 10
    most_payload: int = MOST_PAYLOAD
    most_columns: int = 512 << 10
    linger: float = 0.0
    retry: float = 0.25
    window: float = 60.0


@dataclass(slots=True)
class _Sent:
    """A batch on its way: what it holds and for whom, since when, and when to try again."""

    data: bytes
    dedup: str
    tokens: tuple[tuple[int, int], ...]  # (token, its first index)
    since: float
    again: float
    tries: int = 0


@dataclass(slots=True)
class _Line:
    """The messages of one shard that are not acknowledged yet."""

    waiting: deque[Publish | PublishColumns] = field(default_factory=deque)
    messages: int = 0
    bytes: int = 0
    due: float = NEVER
    sent: _Sent | None = None


class Publisher(Part):
    """Publishes. `name` must be new for every start, since batches are numbered from 0.

    One batch per shard is under way at a time, so that messages of one publisher keep their order
    whatever fails; the rest gathers into the next one, which grows as the log slows down.
    """

    def __init__(self, name: str, settings: PublisherSettings | None = None) -> None:
        super().__init__(name)
        publisher_bytes(name)
        self.settings = settings or PublisherSettings()
        self._lines: dict[int, _Line] = {}
        self._asked: dict[int, int] = {}  # the shard of each open request
        self._number = 0
        self._handlers |= {
            Publish: self._on_publish,
            PublishColumns: self._on_columns,
            Appended: self._on_appended,
            Failed: self._on_failed,
        }

    def _on_publish(self, event: Publish, now: float) -> None:
        if not 0 < len(event.payloads) <= MOST:
            raise InputError(f"a batch must have 1 to {MOST} messages, got {len(event.payloads)}", name="messages")
        largest, most = max(map(len, event.payloads)), self.settings.most_payload
        if largest > most:
            raise InputError(f"message must be at most {most} bytes, got {largest}", name="message", got=largest)
        line = self._lines.setdefault(event.shard, _Line())
        line.waiting.append(event)
        line.messages += len(event.payloads)
        line.bytes += sum(map(len, event.payloads))
        line.due = min(line.due, now + self.settings.linger)
        if now >= line.due or line.messages >= self.settings.most_messages or line.bytes >= self.settings.most_bytes:
            self._send(event.shard, line, now)

    def _on_columns(self, event: PublishColumns, now: float) -> None:
        """Columns need not wait for company."""
        size, most = len(event.data), self.settings.most_payload
        if not 0 < event.count <= MOST:
            raise InputError(f"a batch must have 1 to {MOST} messages, got {event.count}", name="messages")
        if size > most:
            raise InputError(f"columns must be at most {most} bytes, got {size}", name="message", got=size)
        line = self._lines.setdefault(event.shard, _Line())
        line.waiting.append(event)
        self._send(event.shard, line, now)

    def _on_appended(self, event: Appended, now: float) -> None:
        shard = self._asked.pop(event.request, None)
        if shard is None:
            return
        line = self._lines[shard]
        assert line.sent is not None
        for token, first in line.sent.tokens:
            self._do(Acked(token, shard, event.sequence, first))
        self._settle(shard, line, now)

    def _on_failed(self, event: Failed, now: float) -> None:
        shard = self._asked.pop(event.request, None)
        if shard is None:
            return
        line = self._lines[shard]
        assert line.sent is not None
        if event.final:
            reason = event.reason if line.sent.tries == 1 else f"{event.reason}; {EARLIER}"
            for token, _ in line.sent.tokens:
                self._do(Rejected(token, reason))
            self._settle(shard, line, now)
        else:
            line.sent.again = min(line.sent.again, now + self.settings.retry / 2)

    def _on_tick(self, event: Tick, now: float) -> None:
        for shard, line in self._lines.items():
            if line.sent is None:
                if line.waiting and now >= line.due:
                    self._send(shard, line, now)
            elif now >= line.sent.since + self.settings.window:
                for token, _ in line.sent.tokens:
                    self._do(Unsure(token))
                self._settle(shard, line, now)
            elif now >= line.sent.again:
                self.counts["repeated"] += 1
                self._append(shard, line.sent, now)

    def _settle(self, shard: int, line: _Line, now: float) -> None:
        """The batch under way is dealt with; the next may go."""
        line.sent = None
        self._asked = {request: at for request, at in self._asked.items() if at != shard}
        if line.waiting:
            self._send(shard, line, now)

    def _send(self, shard: int, line: _Line, now: float) -> None:
        if line.sent is not None:
            return
        first = line.waiting[0]
        if isinstance(first, PublishColumns):
            line.waiting.popleft()
            entry: Batch | ColumnBatch = ColumnBatch(self.name, self._number, first.count, first.data)
            tokens = [(first.token, 0)]
        else:
            entry, tokens = self._gathered(line)
        line.due = now if line.waiting else NEVER
        line.sent = _Sent(encode_entry(entry), f"{self.name}-{self._number}", tuple(tokens), now, now)
        self._number += 1
        self._append(shard, line.sent, now)

    def _gathered(self, line: _Line) -> tuple[Batch, list[tuple[int, int]]]:
        """Messages that wait, up to columns: as many as an entry may have."""
        payloads: list[bytes] = []
        tokens = []
        size = 0
        while line.waiting:
            next_ = line.waiting[0]
            if isinstance(next_, PublishColumns):
                break
            size += sum(map(len, next_.payloads))
            too_much = len(payloads) + len(next_.payloads) > self.settings.most_messages
            if payloads and (too_much or size > self.settings.most_bytes):
                break
            line.waiting.popleft()
            tokens.append((next_.token, len(payloads)))
            payloads += next_.payloads
        line.messages -= len(payloads)
        line.bytes -= sum(map(len, payloads))
        return Batch(self.name, self._number, tuple(payloads)), tokens

    def _append(self, shard: int, sent: _Sent, now: float) -> None:
        sent.again = now + self.settings.retry
        sent.tries += 1
        request = self._request()
        self._asked[request] = shard
        self._do(Append(request, shard, sent.data, sent.dedup))

    def _next_wake(self, now: float) -> float:
        return min((line.due if line.sent is None else line.sent.again for line in self._lines.values()), default=NEVER)
