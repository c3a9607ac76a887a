"""The input tables: which columns each has, of what type, and what makes a row of it bad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from narrowcast.errors import InputError
from narrowcast.model.topology import ROLES

Type = Literal["name", "amount", "time", "profile"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column with a meaning of its own.

    `name` is any text, `amount` a finite number, `time` a timestamp or seconds since 1970, `profile`
    text that parses. A column that is not `required` may be absent; in one that is, null is bad
    unless it `may_be_null`.
    """

    name: str
    type: Type
    required: bool = True
    may_be_null: bool = False
    least: float | None = None
    above: float | None = None
    one_of: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table: its columns, the key that no two rows share, and where its names must be known from.

    `known` maps a column to the (table, column) that lists the names it may hold; it is checked if
    that table is given too. `free` says that every other column is an attribute to be typed and kept.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    known: tuple[tuple[str, str, str], ...] = ()
    free: bool = False
    unordered_key: bool = False

    def column(self, name: str) -> Column:
        return next(c for c in self.columns if c.name == name)


def _optional(name: str, type: Type, least: float | None = None) -> Column:
    return Column(name, type, required=False, may_be_null=True, least=least)


SPECS = {
    spec.name: spec
    for spec in (
        TableSpec("nodes", (Column("node", "name"), Column("role", "name", one_of=ROLES)), key=("node",)),
        TableSpec(
            "topology",
            (
                Column("u", "name"),
                Column("v", "name"),
                Column("cost", "amount", required=False, may_be_null=True, above=0),
                _optional("delay", "amount", least=0),
            ),
            key=("u", "v"),
            known=(("u", "nodes", "node"), ("v", "nodes", "node")),
            unordered_key=True,
        ),
        TableSpec("tree", (Column("node", "name"), Column("parent", "name", may_be_null=True)), key=("node",)),
        TableSpec(
            "demand",
            (Column("node", "name"), Column("item", "name"), _optional("size", "amount", least=0)),
            key=("node", "item"),
            known=(("node", "tree", "node"),),
        ),
        TableSpec(
            "subscriptions",
            (
                Column("subscriber", "name"),
                Column("profile", "profile"),
                _optional("node", "name"),
                _optional("latency_bound", "amount", least=0),
            ),
            key=("subscriber", "profile"),
            known=(("node", "nodes", "node"), ("node", "tree", "node")),
        ),
        TableSpec(
            "queries",
            (Column("query", "name"), Column("client", "name"), Column("profile", "profile")),
            key=("query", "client"),
        ),
        TableSpec(
            "flows",
            (Column("flow", "name"), Column("rate", "amount", least=0), _optional("size", "amount", least=0)),
            key=("flow",),
        ),
        TableSpec(
            "interest",
            (Column("flow", "name"), Column("subscriber", "name")),
            key=("flow", "subscriber"),
            known=(("flow", "flows", "flow"),),
        ),
        TableSpec(
            "messages",
            (_optional("ts", "time"), _optional("source", "name"), _optional("size", "amount", least=0)),
            known=(("source", "nodes", "node"),),
            free=True,
        ),
    )
}


def spec(name: str) -> TableSpec:
    """The table of that name, or an InputError that lists the names there are."""
    if name not in SPECS:
        raise InputError(
            f"table must be one of {', '.join(SPECS)}, got {name!r}", name="table", allowed=tuple(SPECS), got=name
        )
    return SPECS[name]
