"""The serving side: who is answered with whom, on which physical channel, while queries come and go.

    plan + queries --QueryService.follow--> the queries of now --headers(period)--> what to run, and for whom

Nothing here reads the table: `narrowcast.data.answer.serve` runs the merged queries over it, in one scan.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.model.cost import Cost
from narrowcast.plans.queries.problem import Set, set_sizes
from narrowcast.plans.queries.ranges import box_profile, range_boxes
from narrowcast.plans.queries.result import QueriesPlan, QueryDemand, merged_plan
from narrowcast.plans.queries.service.answers import Header, Query
from narrowcast.plans.queries.service.live import LiveQueries
from narrowcast.profiles import Profile

Name = tuple[str, str]  # query and client


@dataclass(frozen=True, slots=True)
class QueryChange:
    """What a change of the queries did: how many came, went, and which clients listen to other channels now."""

    new: int
    gone: int
    retuned: tuple[str, ...]


class QueryService:
    """Merged queries under change, on the physical channels of a plan.

    A set stays on its physical channel as long as it lives; a new one goes where it makes clients overhear least.
    In a period the queries that are due are answered, each set by the merged query of its due members alone.
    """

    def __init__(self, plan: QueriesPlan) -> None:
        problem, demand = plan.problem(), plan.demand
        self.attributes, self._seed, self._method = demand.attributes, plan.seed, plan.method
        self.channels: int | None = None if plan.physical is None else int(plan.parameters["channels"])
        self._live = LiveQueries(
            problem.boxes, d=len(self.attributes), constants=plan.constants, procedure=plan.procedure,
            size=problem.size, sets=_once(plan.sets),
        )  # fmt: skip
        clients = demand.clients or demand.labels
        self._id: dict[Name, int] = {}
        self._query: dict[int, Query] = {}
        for at, (name, client) in enumerate(zip(demand.query_names, clients, strict=True)):
            self._id[name, client] = at
            self._query[at] = Query(name, client, box_profile(problem.boxes[at], self.attributes))
        self._load: dict[int, float] = defaultdict(float)
        self._listeners: Counter[int] = Counter()
        self._listens: dict[str, Counter[int]] = {}
        self._placed: dict[int, tuple[int, float, tuple[str, ...]]] = {}
        first = dict(zip(plan.sets, plan.physical or plan.numbers, strict=True))
        for number, members in self._live.named_sets.items():
            self._settle_on(number, members, first.get(members))
        self._contents: dict[Set, Profile] = {}

    # Queries come and go.

    def follow(self, queries: Iterable[Query]) -> QueryChange:
        """Answer these queries from now on: what is new is added, what is not there any more is gone.

        A query that asks something else under the same name is another one.
        """
        asked = {(query.query, query.client): query for query in queries}
        boxes = dict(zip(asked, range_boxes([q.profile for q in asked.values()], self.attributes), strict=True))
        known = self._live.problem.boxes
        kept = {n for n, at in self._id.items() if n in asked and np.array_equal(known[at], boxes[n])}
        gone, new = [n for n in self._id if n not in kept], [n for n in asked if n not in kept]
        before = {client: self.listens(client) for client in self._listens}
        ids = self._live.change([self._id[name] for name in gone], [boxes[name] for name in new])
        for name in gone:
            del self._query[self._id.pop(name)]
        self._id.update(zip(new, ids, strict=True))
        for name, at in self._id.items():
            self._query[at] = asked[name]
        self._place()
        clients = {*before, *self._listens}
        retuned = tuple(sorted(c for c in clients if before.get(c, ()) != self.listens(c)))
        return QueryChange(len(new), len(gone), retuned)

    def _place(self) -> None:
        """Sets that are gone leave their channel, new ones find one, and the rest stay where they are."""
        there = self._live.named_sets
        for name in [name for name in self._placed if name not in there]:
            channel, size, clients = self._placed.pop(name)
            self._load[channel] -= size
            for client in clients:
                held = self._listens[client]
                held[channel] -= 1
                if not held[channel]:
                    del held[channel]
                    self._listeners[channel] -= 1
                if not held:
                    del self._listens[client]
        for name, members in there.items():
            if name not in self._placed:
                self._settle_on(name, members, None)

    def _settle_on(self, name: int, members: Set, channel: int | None) -> None:
        size = float(set_sizes(self._live.problem, [members])[0])
        clients = tuple(sorted({self._query[q].client for q in members}))
        at = channel if channel is not None else self._quietest(name, size, clients)
        self._placed[name] = at, size, clients
        self._load[at] += size
        for client in clients:
            held = self._listens.setdefault(client, Counter())
            self._listeners[at] += at not in held
            held[at] += 1

    def _quietest(self, name: int, size: float, clients: Sequence[str]) -> int:
        """Where a set makes clients overhear least: its listeners the rest of the channel, the others the set."""
        if self.channels is None:
            return name
        mine: Counter[int] = Counter()
        for client in clients:
            mine.update(self._listens.get(client, Counter()).keys())

        def added(channel: int) -> tuple[float, int]:
            new = len(clients) - mine[channel]
            return size * (self._listeners[channel] - mine[channel]) + self._load[channel] * new, channel

        return min(range(self.channels), key=added)

    # What is asked for.

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries of now."""
        return tuple(self._query[at] for at in sorted(self._query))

    @property
    def clients(self) -> tuple[str, ...]:
        """Those who have a query now, sorted."""
        return tuple(sorted(self._listens))

    def listens(self, client: str) -> tuple[int, ...]:
        """The physical channels that carry an answer for a client."""
        return tuple(sorted(self._listens.get(client, ())))

    def headers(self, period: int = 0) -> tuple[Header, ...]:
        """What to run in a period: a header for each set with a query that is due, sets by their first query."""
        if self._live.problem.procedure.name == "exact":
            raise UnsupportedError(
                "serve does not support procedure 'exact', whose pieces have a channel each; answer --plan does",
                works=("rectangle", "polygon"),
            )
        found: list[Header] = []
        for name, members in sorted(self._live.named_sets.items(), key=lambda item: item[1]):
            due = tuple(q for q in members if period % self._query[q].every == 0)
            if due:
                queries = tuple(self._query[q] for q in due)
                found.append(Header(len(found), self._content(due), queries, self._placed[name][0]))
        self._contents = {due: self._contents[due] for due in (self._due(header) for header in found)}
        return tuple(found)

    def _due(self, header: Header) -> Set:
        return tuple(self._id[query.query, query.client] for query in header.queries)

    def _content(self, due: Set) -> Profile:
        if due not in self._contents:
            problem = self._live.problem
            pieces = problem.procedure.pieces(problem.boxes[list(due)], problem.size)
            self._contents[due] = Profile.any_of(box_profile(piece, self.attributes) for piece in pieces)
        return self._contents[due]

    # As a plan.

    def plan(self) -> QueriesPlan:
        """The sets and channels of now as a plan that can be judged, saved and gone on from."""
        ids = sorted(self._query)
        place = {at: i for i, at in enumerate(ids)}
        asked = [self._query[at] for at in ids]
        names, clients = tuple(q.query for q in asked), tuple(q.client for q in asked)
        problem = self._live.problem.subset(ids)
        demand = QueryDemand(problem.boxes, self.attributes, names, clients)
        ordered = sorted(self._live.named_sets.items(), key=lambda item: item[1])
        sets = [tuple(place[q] for q in members) for _, members in ordered]
        made = merged_plan(demand, problem, sets, self._method, self._seed)
        if self.channels is None:
            return made
        overheard = made.constants.ku * self.overheard
        terms = {**made.cost.terms, "overheard": overheard}
        return replace(
            made,
            physical=tuple(self._placed[name][0] for name, _ in ordered),
            cost=Cost(made.cost.total + overheard, terms, lambda: made.cost.compared),
            parameters={**made.parameters, "channels": self.channels},
        )

    @property
    def overheard(self) -> float:
        """What clients hear on their channels of merged queries in which they have no part."""
        heard = sum(self._load[channel] for held in self._listens.values() for channel in held)
        return max(0.0, heard - sum(size * len(clients) for _, size, clients in self._placed.values()))


def _once(sets: Sequence[Set]) -> list[Set]:
    """A query that a cover answers twice stays in the first set only."""
    seen: set[int] = set()
    found = []
    for members in sets:
        rest = tuple(q for q in members if q not in seen)
        seen.update(rest)
        found += [rest] if rest else []
    return found
