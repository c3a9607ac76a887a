"""Merged queries of a network plan judged from its tables alone: whose answer is cut short or not sent, and what the
flows of answers should be.

The sets themselves are read and judged as those of a queries plan are, by its judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import ceil, isclose
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.columns import amounts, texts, whole
from narrowcast.model.plan import Tables
from narrowcast.plans.queries.judge import QueryTables
from narrowcast.plans.queries.judge import faults as set_faults

TABLES: dict[str, Sequence[str]] = {
    "queries": ("query", "client", "dimension", "low", "high"),
    "merges": ("query", "client", "set"),
    "channels": ("set", "piece", "dimension", "low", "high"),
    "frequency": ("query", "client", "every"),
    "grid": ("cell", "count"),
    "grid_edges": ("dimension", "edge"),
    "points": ("point", "dimension", "value"),
}
NEEDED = ("queries", "merges", "channels", "frequency")
MESSAGE_BYTES = 48_000  # of rows in one message of an answer


class JudgedAnswers:
    """The queries of a plan, and of each set its frequency, its rows and its clients."""

    def __init__(self, plan: Tables) -> None:
        about = plan.parameters.get("queries")
        if not isinstance(about, dict):
            raise InputError("a plan with queries must have a parameter queries that says how they are answered")
        missing = [name for name in NEEDED if name not in plan.tables]
        if missing:
            raise InputError(f"a plan with queries must have a table {missing[0]}", name=missing[0])
        self.plan, self.site = plan, str(about.get("site"))
        self.period_s, self.row_bytes = (_above_zero(about, name) for name in ("period_s", "row_bytes"))
        held = {name: table for name, table in plan.tables.items() if name in TABLES and name != "frequency"}
        self.alone = Tables("queries", held, {}, about)
        self.read = QueryTables(self.alone)

    @cached_property
    def every(self) -> dict[Any, int]:
        names = (texts(self.plan, "frequency", name).to_pylist() for name in ("query", "client"))
        often = whole(self.plan, "frequency", "every")
        if (often < 1).any():
            raise InputError("table frequency: every must be 1 or more", name="every")
        return dict(zip(zip(*names, strict=True), often.tolist(), strict=True))

    def flow(self, number: Any) -> tuple[float, float]:
        """Messages and bytes a second of a set's answer."""
        often = 1 / (self.period_s * self.every[self.read.members[number][0]])
        size = self._rows(list(self.read.pieces[number].values())) * self.row_bytes
        return often * max(1, ceil(size / MESSAGE_BYTES - 1e-9)), often * size

    def _rows(self, boxes: Sequence[Any]) -> float:
        return self.read.union(np.array(boxes))

    @cached_property
    def thrown(self) -> list[tuple[str, float]]:
        """Of each query its client, and rows a second that it gets and did not ask for."""
        found: list[tuple[str, float]] = []
        if self.unreadable:
            return found
        for number, members in self.read.members.items():
            rows = self._rows(list(self.read.pieces[number].values()))
            for name in members:
                more = rows - self._rows([self.read.queries[name]])
                found.append((str(name[-1]), more / (self.period_s * self.every[name])))
        return found

    @cached_property
    def unreadable(self) -> list[str]:
        """Why sets and sizes cannot be told."""
        lost = [
            f"query {name[0]} of {name[1]} has no frequency" for name in self.read.queries if name not in self.every
        ]
        unsized = [] if self.read.sized else ["it does not hold what the sizes of its answers were counted in"]
        return [*self.read.broken, *lost, *unsized]

    def faults(self) -> Iterator[str]:
        """What is wrong with the sets, and with the flows that should be their answers."""
        yield from set_faults(self.alone)
        yield from self.unreadable[len(self.read.broken) :]
        if self.unreadable:
            return
        names = texts(self.plan, "flows", "flow").to_pylist()
        pairs = (texts(self.plan, "interest", column).to_pylist() for column in ("flow", "subscriber"))
        wanted: dict[str, set[str]] = {}
        for flow, who in zip(*pairs, strict=True):
            wanted.setdefault(flow, set()).add(who)
        answers = {self._name(number): number for number in self.read.members}
        for name, number in answers.items():
            if name not in names:
                yield f"set {number} has no flow {name} that carries its answer"
            else:
                yield from self._flow_faults(name, number, names.index(name), wanted.get(name, set()))

    def _flow_faults(self, name: str, number: Any, at: int, wanted: set[str]) -> Iterator[str]:
        members = self.read.members[number]
        if len({self.every[query] for query in members}) > 1:
            yield f"set {number} holds queries of different frequency"
        clients = {str(query[-1]) for query in members}
        yield from (f"{who} has a query in set {number} and does not get {name}" for who in sorted(clients - wanted))
        yield from (f"{who} gets {name} and has no query in set {number}" for who in sorted(wanted - clients))
        rate, bytes_s = self.flow(number)
        said = float(amounts(self.plan, "flows", "rate")[at]), float(amounts(self.plan, "flows", "size")[at])
        for what, found, expected in (("rate", said[0], rate), ("bytes a second", said[0] * said[1], bytes_s)):
            if not isclose(found, expected, rel_tol=1e-6, abs_tol=1e-9):
                yield f"{name} has a {what} of {found}, its set's answer has {expected}"
        if texts(self.plan, "flows", "source")[at].as_py() != self.site:
            yield f"{name} does not enter at {self.site}, where the table is"

    def _name(self, number: Any) -> str:
        return "|".join([f"answers {number}"] * max(len(self.plan.key), 1))


def judged_answers(plan: Tables) -> JudgedAnswers | None:
    """The queries of a plan, or None where it has none."""
    asked = "queries" in plan.parameters or any(name in plan.tables for name in TABLES)
    return JudgedAnswers(plan) if asked else None


def _above_zero(about: dict[str, Any], name: str) -> float:
    value = about.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value) or value <= 0:
        raise InputError(f"parameter {name} of the queries must be a number above 0, got {value!r}", name=name)
    return float(value)
