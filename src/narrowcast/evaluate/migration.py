"""From one plan to the next without leaving anybody out: add, move, drain, remove.

First everything that the new plan needs beside the old is put in place (joins at the rate the network
bears), then every content that changes its way is moved at once, then what is on its way arrives, and
only then the old joins are given up. Before the move the old ways are whole, after it the new ones, and
while it drains both: nobody is uncovered at any step (docs/decisions/0092).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from narrowcast.errors import InputError
from narrowcast.evaluate.ways import SIGNALLED, Need, Ways
from narrowcast.model.plan import Tables

# What takes a need back.
UNDO = {
    "join": "leave", "take": "drop", "copy": "stop copy", "ask": "ask no more", "forward": "stop forwarding",
    "filter": "stop filtering",
}  # fmt: skip


class Move(NamedTuple):
    """A content that goes another way; nowhere before: it is new; nowhere after: it ends."""

    content: str
    before: str | None
    after: str | None
    weight: float


@dataclass(frozen=True, slots=True)
class Step:
    """`kind` is add, move, drain or remove; it begins `at_s` seconds from the start and lasts `lasts_s`.

    `do` and `undo` are needs put in place and taken back, `moves` the contents that change their way.
    """

    kind: str
    at_s: float
    lasts_s: float
    do: tuple[Need, ...] = ()
    undo: tuple[Need, ...] = ()
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Migration:
    """The steps from `old` to `new`, whose numbers are made to agree with the old one's."""

    old: Tables
    new: Tables
    before: Ways
    after: Ways
    steps: tuple[Step, ...]

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(move for step in self.steps for move in step.moves)

    @property
    def seconds(self) -> float:
        return max((step.at_s + step.lasts_s for step in self.steps), default=0.0)

    def counts(self, verb: str = "join") -> tuple[Counter[str], Counter[str]]:
        """How often each subscriber does this, and takes it back."""
        done = Counter(need.who for step in self.steps for need in step.do if need.verb == verb)
        undone = Counter(need.who for step in self.steps for need in step.undo if need.verb == verb)
        return done, undone

    @property
    def peak_joins(self) -> Mapping[str, int]:
        """The most that each subscriber is joined to at any time: old and new together."""
        both = {need for need in self.before.needs | self.after.needs if need.verb == "join"}
        return Counter(need.who for need in both)

    @property
    def cost(self) -> dict[str, tuple[float | None, float | None]]:
        """Each term of the cost, before and after."""
        names = dict.fromkeys([*self.old.cost, *self.new.cost])
        return {name: (self.old.cost.get(name), self.new.cost.get(name)) for name in names}

    def as_dict(self, most: int | None = None) -> dict[str, Any]:
        """For programs; of long lists the first `most`."""
        joins, leaves = self.counts()
        subscribers = sorted(joins | leaves, key=lambda who: (-joins[who] - leaves[who], who))
        return {
            "moved": [move._asdict() for move in self.moves[:most]],
            "n_moved": len(self.moves),
            "joins": sum(joins.values()),
            "leaves": sum(leaves.values()),
            "subscribers": [{"who": w, "joins": joins[w], "leaves": leaves[w]} for w in subscribers[:most]],
            "n_subscribers": len(subscribers),
            "cost": {name: {"before": a, "after": b} for name, (a, b) in self.cost.items()},
            "seconds": self.seconds,
            "most_joins_at_once": max(self.peak_joins.values(), default=0),
            "steps": [_step_as_dict(step, most) for step in self.steps],
        }


def migrate(
    old: Tables,
    new: Tables,
    ways_of: Callable[[Tables], Ways],
    *,
    join_rate: float | None = None,
    subscriber_join_rate: float | None = None,
    drain_s: float = 1.0,
) -> Migration:
    """The ordered way from one plan to another of the same kind, whose ways `ways_of` reads; see `narrowcast.diff`."""
    for name, value in (("join_rate", join_rate), ("subscriber_join_rate", subscriber_join_rate)):
        if value is not None and not value > 0:
            raise InputError(f"{name} must be above 0, got {value}", name=name, got=value)
    if not drain_s >= 0:
        raise InputError(f"drain_s must be zero or more, got {drain_s}", name="drain_s", got=drain_s)
    before, after = ways_of(old), ways_of(new)
    pace = _Pace(join_rate, subscriber_join_rate)
    return Migration(old, new, before, after, tuple(_timed(_steps(new, before, after, pace, drain_s))))


def _steps(new: Tables, before: Ways, after: Ways, pace: _Pace, drain_s: float) -> Iterator[Step]:
    had, needs = before.needs, after.needs
    filters, gone = _filters(after.filters, before.filters), _filters(before.filters, after.filters)
    moves = tuple(_moves(before, after))
    budget = new.parameters.get("k")
    # A vertex that filters no more passes everything on: too much, never too little. So where the budget
    # does not hold old and new filters together, the old ones go first.
    early = gone if budget is not None and len(before.filters) + len(filters) > budget else ()
    if early:
        yield Step("remove", 0, 0, undo=early)
    yield from (Step("add", 0, lasts, do=batch) for lasts, batch in pace.batches([*_sorted(needs - had), *filters]))
    if moves:
        yield Step("move", 0, 0, moves=moves)
    late = [*_sorted(had - needs), *(gone if not early else ())]
    if moves or late:
        yield Step("drain", 0, drain_s)
    yield from (Step("remove", 0, lasts, undo=batch) for lasts, batch in pace.batches(late))


def _filters(these: Iterable[str], those: Iterable[str]) -> tuple[Need, ...]:
    return tuple(Need("filter", node, "what nobody below wants") for node in sorted(set(these) - set(those)))


def _moves(before: Ways, after: Ways) -> Iterator[Move]:
    """Contents that go elsewhere, the largest first."""
    found = [
        Move(content, before.place.get(content), after.place.get(content), _weight(content, before, after))
        for content in before.place.keys() | after.place.keys()
        if before.place.get(content) != after.place.get(content)
    ]
    return iter(sorted(found, key=lambda move: (-move.weight, move.content)))


def _weight(content: str, before: Ways, after: Ways) -> float:
    return float(after.weight.get(content, before.weight.get(content, 0.0)))


def _sorted(needs: Iterable[Need]) -> list[Need]:
    """What the network need not be told of first; then group by group, so that a group is soon complete."""
    return sorted(needs, key=lambda need: (need.verb in SIGNALLED, need.verb, len(need.what), need.what, need.who))


@dataclass(frozen=True, slots=True)
class _Pace:
    """How many joins fit into one slot of time, in all and of each subscriber."""

    total: float | None
    each: float | None

    def batches(self, needs: Sequence[Need]) -> Iterator[tuple[float, tuple[Need, ...]]]:
        """(seconds, needs) in order; a slot is a second, or as long as one join takes where that is longer."""
        if not needs:
            return
        rates = [rate for rate in (self.total, self.each) if rate is not None]
        if not rates:
            yield 0.0, tuple(needs)
            return
        slot = max(1.0, *(1 / rate for rate in rates))
        room = len(needs) if self.total is None else int(self.total * slot + 1e-9)
        own = len(needs) if self.each is None else int(self.each * slot + 1e-9)
        quiet = [need for need in needs if need.verb not in SIGNALLED]
        queue = deque(need for need in needs if need.verb in SIGNALLED)
        while queue or quiet:
            batch, told, waiting = quiet, Counter[str](), []
            n = 0
            while queue and n < room:
                need = queue.popleft()
                if told[need.who] < own:
                    told[need.who] += 1
                    batch.append(need)
                    n += 1
                else:
                    waiting.append(need)
            queue.extendleft(reversed(waiting))
            yield (slot if n else 0.0), tuple(batch)
            quiet = []


def _timed(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps one after the other."""
    now = 0.0
    for step in steps:
        yield Step(step.kind, now, step.lasts_s, step.do, step.undo, step.moves)
        now += step.lasts_s


def _step_as_dict(step: Step, most: int | None) -> dict[str, Any]:
    undo = [{"do": UNDO[need.verb], "who": need.who, "what": need.what} for need in step.undo[:most]]
    return {
        "kind": step.kind,
        "at_s": step.at_s,
        "lasts_s": step.lasts_s,
        "changes": [{"do": need.verb, "who": need.who, "what": need.what} for need in step.do[:most]] + undo,
        "n_changes": len(step.do) + len(step.undo),
        "moves": [move.content for move in step.moves[:most]],
        "n_moves": len(step.moves),
    }
