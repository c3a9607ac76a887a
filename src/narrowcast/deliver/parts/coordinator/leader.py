"""One of several leads: whoever holds the lease, a key that it writes again and again. Every write is checked.

A write succeeds only on the revision that it was decided on, so one that lost the lease without knowing cannot take a
step, and the next one goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.effects import Write
from narrowcast.deliver.parts.events import Appended, Failed, Noted, Refused, Written
from narrowcast.deliver.parts.part import Part

MOST_OPEN = 256
MOST_TERM = 1 << 32


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """`ttl`: a lease that is not renewed for so long may be taken. `prepare`: how long nodes are waited for.

    `move`: the same where another plan was offered; who is late then does not miss the move, but undoes it. It is
    more than `alive`, so that the dead hold nobody up. `every`: plan again after so long even if nothing changed
    (None: only on change), and never sooner than `pause` after the last time, nor sooner after a plan than that took
    to make. `alive`: a node that shows nothing for so long counts as dead. `seal`: make keys for every epoch.
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

    def paced(self, every: float | None) -> CoordinatorSettings:
        """The same with a plan every so many seconds: nothing that is waited for between two takes longer than that.

        >>> CoordinatorSettings().paced(1.0).prepare
        0.3
        """
        if every is None:
            return self
        return replace(self, every=every, pause=min(self.pause, every), prepare=min(self.prepare, 0.3 * every))


@dataclass(slots=True)
class Stamped:
    """A key with its revision, and when it last changed by our own clock."""

    record: dict[str, Any] | None = None
    revision: int = 0
    changed: float = 0.0


class Leader(Part):
    """A part of which several run and one works: the others watch the lease."""

    def __init__(self, name: str, settings: CoordinatorSettings) -> None:
        super().__init__(name)
        self.settings = settings
        self.leads = False
        self.term = 0
        self._lease = Stamped()
        self._open: dict[int, Callable[[int | None, bool], None]] = {}  # what to do with an answer
        self._steps: set[int] = set()  # requests of the step that is under way
        self._renewed = self._renew_at = self._busy_until = self._now = 0.0
        self._handlers |= {
            Written: self._on_written,
            Refused: self._on_refused,
            Appended: self._on_appended,
            Failed: self._on_failed,
        }

    def _take_over(self) -> None:
        """What to do first on leading."""
        raise NotImplementedError

    def _work(self, now: float) -> None:
        """Whatever is to be done, if we lead and no step is under way."""
        raise NotImplementedError

    # The lease.

    def _note_lease(self, event: Noted, record: dict[str, Any] | None, now: float) -> None:
        if record is None and event.revision >= self._lease.revision:
            self._lease = Stamped(None, event.revision, now - self.settings.ttl)  # nobody holds it: no need to wait
            self._step_down()
        elif event.revision > self._lease.revision:
            self._lease = Stamped(record, event.revision, now)
            if record is not None and (record["holder"], record["term"]) != (self.name, self.term):
                self._step_down()

    def _mind_lease(self, now: float) -> None:
        """Renew it, give it up, or try to get it, as time has come."""
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

    def _lease_due(self) -> list[float]:
        """When to look after it again."""
        if self.leads:
            return [self._renew_at, self._renewed + self.settings.ttl]
        return [max(self._renew_at, self._lease.changed + self.settings.ttl)]

    def _campaign(self, now: float) -> None:
        term = ((self._lease.record or {"term": 0})["term"] + 1) % MOST_TERM

        def won(revision: int | None, stale: bool) -> None:
            if revision is not None:
                self.leads, self.term = True, term
                self._renewed, self._renew_at = now, now + self.settings.renew
                self._lease = Stamped({"holder": self.name, "term": term}, revision, now)
                self.counts["elected"] += 1
                self._take_over()

        self._write(records.LEASE, {"holder": self.name, "term": term}, self._lease.revision, won)

    def _write_lease(self, now: float) -> None:
        """Renewed as of when it was asked for, not of when the answer came."""

        def renewed(revision: int | None, stale: bool) -> None:
            if revision is not None:
                self._renewed = now
                self._lease = Stamped(self._lease.record, revision, now)
            elif stale:
                self._step_down()

        self._write(records.LEASE, {"holder": self.name, "term": self.term}, self._lease.revision, renewed)

    def _step_down(self) -> None:
        if self.leads:
            self.counts["stepped down"] += 1
            self.leads = False
            self._open, self._steps = {}, set()

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
