"""Answers on channels: what goes out with a merged query, and how a client gets exactly its own answer.

    queries + plan --headers--> Header per channel --answer (one scan)--> Answer --Client.receive--> rows of each query

A header says what its channel carries and who takes what from it (Crespo et al., §3.1). The extractor
of a query is the query itself: the channel may be wider, the client is exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa

from narrowcast.errors import InputError
from narrowcast.plans.queries.arrangement import combinations
from narrowcast.plans.queries.boxes import Floats, Ints
from narrowcast.plans.queries.ranges import box_profile
from narrowcast.plans.queries.result import QueriesPlan
from narrowcast.profiles import Matcher, Profile


@dataclass(frozen=True, slots=True)
class Query:
    """A client's query, as the `queries` table has it; it is answered in every period, or every so many."""

    query: str
    client: str
    profile: Profile
    every: int = 1


@dataclass(frozen=True, slots=True)
class Header:
    """What a channel carries, and for which queries: each takes its own answer out by its profile."""

    channel: int
    content: Profile
    queries: tuple[Query, ...]
    physical: int | None = None
    """The physical channel that it shares with others, where there is a fixed number of them."""

    @property
    def clients(self) -> tuple[str, ...]:
        """Who should receive it, sorted."""
        return tuple(sorted({query.client for query in self.queries}))

    def to_json(self) -> str:
        """As text, to travel beside the answer."""
        extractors = [{"client": q.client, "query": q.query, "extractor": q.profile.text} for q in self.queries]
        told = {"channel": self.channel, "content": self.content.text, "extractors": extractors}
        return json.dumps(told if self.physical is None else {**told, "physical": self.physical})

    @classmethod
    def from_json(cls, text: str) -> Header:
        """Back from `to_json`."""
        read = json.loads(text)
        queries = tuple(
            Query(e["query"], e["client"], Profile.parse(e["extractor"], limits=None)) for e in read["extractors"]
        )
        return cls(read["channel"], Profile.parse(read["content"], limits=None), queries, read.get("physical"))


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """The rows of one channel. `rows` are their places in the source table, where it has an order."""

    header: Header
    table: pa.Table
    rows: Ints | None = None


def headers(
    queries: Sequence[Query], boxes: Floats, plan: QueriesPlan, attributes: Sequence[str]
) -> tuple[Header, ...]:
    """A header for each channel of a plan over `boxes`, which are the ranges of `queries` in `attributes`.

    `rectangle` and `polygon` give one channel per set, `exact` one per combination of queries that share
    data. A query that a plan answers twice takes its answer from the first.
    """
    if sum(len(members) for members in plan.sets) < len(queries) or len(boxes) != len(queries):
        raise InputError(f"plan must be made for these {len(queries)} queries", name="plan")
    ranges = [box_profile(box, attributes) for box in boxes]
    served: set[int] = set()
    found: list[tuple[Profile, list[int]]] = []
    for members, pieces in zip(plan.sets, plan.pieces, strict=True):
        todo = [q for q in members if q not in served]
        served.update(todo)
        if plan.procedure == "exact":
            found.extend(_exact_contents(members, todo, boxes, ranges))
        elif todo:
            found.append((Profile.any_of(box_profile(piece, attributes) for piece in pieces), todo))
    return tuple(Header(at, content, tuple(queries[q] for q in takers)) for at, (content, takers) in enumerate(found))


def _exact_contents(
    members: Sequence[int], todo: Sequence[int], boxes: Floats, ranges: Sequence[Profile]
) -> Iterable[tuple[Profile, list[int]]]:
    """What exactly one combination of the members' ranges shares, for every combination there can be."""
    for mask in combinations(boxes[list(members)]):
        inside = [q for q, held in zip(members, mask, strict=True) if held]
        outside = [q for q, held in zip(members, mask, strict=True) if not held]
        takers = [q for q in inside if q in todo]
        if takers:
            shared = reduce(lambda a, b: a & b, (ranges[q] for q in inside))
            yield reduce(lambda a, b: a - b, (ranges[q] for q in outside), shared), takers


def answer(table: pa.Table, channels: Sequence[Header]) -> tuple[Answer, ...]:
    """The answer of every channel, in one pass over a table in memory."""
    if not channels:
        return ()
    rows, at = Matcher([header.content for header in channels]).match(table)
    order = np.argsort(at, kind="stable")
    parts = np.split(rows[order], np.cumsum(np.bincount(at, minlength=len(channels)))[:-1])
    return tuple(Answer(header, table.take(part), part) for header, part in zip(channels, parts, strict=True))


def extract(table: pa.Table, query: Profile) -> pa.Table:
    """The rows of an answer that a query wants: its extractor, which is the query itself.

    >>> answer = pa.table({"x": [1, 2, 2, None, 5]})
    >>> extract(answer, Profile.parse("x BETWEEN 2 AND 5")).to_pydict()
    {'x': [2, 2, 5]}
    """
    rows, _ = Matcher([query]).match(table)
    return table.take(rows)


class Client:
    """Receives channels' answers and keeps what its own queries want; pieces of one query are put together.

    Rows come out in the source's order where answers carry it, else channel by channel.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._parts: dict[str, list[tuple[pa.Table, Ints | None]]] = {}

    def receive(self, got: Answer) -> None:
        """Take what is mine; a channel that is not for me leaves nothing."""
        mine = [query for query in got.header.queries if query.client == self.name]
        if not mine:
            return
        rows, at = Matcher([query.profile for query in mine]).match(got.table)
        for k, query in enumerate(mine):
            part = rows[at == k]
            places = None if got.rows is None else got.rows[part]
            self._parts.setdefault(query.query, []).append((got.table.take(part), places))

    @property
    def answers(self) -> dict[str, pa.Table]:
        """The answer of each of my queries that a channel has served so far."""
        return {query: _put_together(parts) for query, parts in self._parts.items()}


def _put_together(parts: Sequence[tuple[pa.Table, Ints | None]]) -> pa.Table:
    whole = pa.concat_tables([table for table, _ in parts])
    places = [place for _, place in parts if place is not None]
    if len(places) < len(parts):
        return whole
    return whole.take(np.argsort(np.concatenate(places), kind="stable"))
