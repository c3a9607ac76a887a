"""One story for every kind of plan: who wants what at first and later, what is sent, and what the plan prices of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import narrowcast as nc
from narrowcast.deliver.processes.system import AdaptSection
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.filters.result import FiltersPlan, TreeDemand
from narrowcast.plans.queries.ranges import box_profile
from narrowcast.plans.queries.result import QueriesPlan, QueryDemand
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.verbs import certify

PEOPLE = 24
SHARED = [f"S{k:02d}" for k in range(24)]
SYMBOLS = [*SHARED, *(f"T{k}" for k in range(4))]  # the last ones are for one person each
QUICK = AdaptSection(horizon=120, every=2, half_life=5, proof=0.02, reorganise=4)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """`profile(person, later)` is a wish; a plan folder, `people` by name and rows give what it `priced`, in messages:
    at receivers, or with `gateways` on the links between brokers. `key` is the attribute that statistics go by."""

    plan: Callable[[Path], Path]
    profile: Callable[[int, bool], str]
    wants: Callable[[str, Row], bool]
    row: Callable[[int, bool], dict[str, Any]]
    priced: Callable[[nc.Plan, Mapping[str, str], Sequence[Row]], float]
    key: str
    gateways: tuple[str, ...] = ()  # of people, in turn
    adapt: AdaptSection = QUICK
    schema: str = ""

    def gateway(self, person: int) -> str | None:
        return self.gateways[person % len(self.gateways)] if self.gateways else None


# Channels, with and without unicast: half of the people want other symbols later, four have one for themselves.


def symbols(person: int, later: bool) -> tuple[str, ...]:
    later = later and person >= PEOPLE // 2
    first = 6 * (person % 4) + (3 if later else 0)
    own = [f"T{person // 6}"] if person % 6 == 0 else []
    return (*(SHARED[(first + (4 if later else 1) * k) % 24] for k in range(6)), *own)


def symbol_profile(person: int, later: bool) -> str:
    return f"symbol IN ({', '.join(map(repr, sorted(symbols(person, later))))})"


def has_symbol(profile: str, row: Row) -> bool:
    return f"'{row['symbol']}'" in profile


def symbol_row(n: int, later: bool) -> dict[str, Any]:
    return {"symbol": SYMBOLS[n * 5 % len(SYMBOLS)], "n": n}


def symbol_demand() -> nc.Demand:
    pairs = [(SYMBOLS.index(s), person) for person in range(PEOPLE) for s in symbols(person, False)]
    names = [f"p{person}" for person in range(PEOPLE)]
    interest = nc.Interest.from_pairs(*zip(*pairs, strict=True), [5.4] * 28, flow_names=SYMBOLS, user_names=names)
    return nc.Demand(interest, key=("symbol",))


def channels_plan(folder: Path) -> Path:
    return write_tables(certify(nc.plan(symbol_demand(), groups=4, sessions=8).to_tables()), folder)


def hybrid_plan(folder: Path) -> Path:
    made = nc.plan(symbol_demand(), "hybrid", groups=4)
    assert made.unicast[0].size, "nobody is served by unicast"
    return write_tables(certify(made.to_tables()), folder)


def at_receivers(plan: nc.Plan, people: Mapping[str, str], rows: Sequence[Row]) -> float:
    """A message of a session reaches all who take it, one by unicast those it is for."""
    assert isinstance(plan, ChannelsPlan)
    names, users = plan.interest.flow_names, plan.interest.user_names
    session = dict(zip(names, plan.session_of_flow.tolist(), strict=True))
    apart = {(names[f], users[u]) for f, u in zip(*(each.tolist() for each in plan.unicast), strict=True)}
    total = 0
    for name, profile in people.items():
        wanted = {s for s in SYMBOLS if f"'{s}'" in profile}
        taken = {session[s] for s in wanted if (s, name) not in apart}
        total += sum(session[r["symbol"]] in taken or (r["symbol"], name) in apart for r in rows)
    return total


# Merged queries: boxes around four places, then half of them around others.


def box(person: int, later: bool) -> np.ndarray:
    around = (person + (2 if later and person >= PEOPLE // 2 else 0)) % 4
    spread = np.array([person * 37 % 11, person * 53 % 13], np.float64)
    low = np.array([(5, 5), (5, 65), (65, 5), (65, 65)][around]) + spread * (1.4 if later else 1.0)
    return np.stack((low, low + 14), axis=1).round(1)


def box_text(person: int, later: bool) -> str:
    return box_profile(box(person, later), ("x", "y")).text


def in_box(profile: str, row: Row) -> bool:
    """Read off the text, which is `x BETWEEN a AND b AND y BETWEEN c AND d` in one order or another."""
    words = profile.replace("(", "").replace(")", "").split()
    bounds = {words[k - 1]: (float(words[k + 1]), float(words[k + 3])) for k, w in enumerate(words) if w == "BETWEEN"}
    assert bounds.keys() == {"x", "y"}, profile
    return all(low <= row[name] <= high for name, (low, high) in bounds.items())


def place_row(n: int, later: bool) -> dict[str, Any]:
    return {"x": round(n * 0.754877666 % 1 * 100, 2), "y": round(n * 0.569840296 % 1 * 100, 2), "topic": "t", "n": n}


def queries_plan(folder: Path) -> Path:
    demand = QueryDemand(
        np.array([box(p, False) for p in range(PEOPLE)]), ("x", "y"), tuple(f"p{p}" for p in range(PEOPLE))
    )
    made = nc.plan(demand, "queries", km=60.0, kt=1.0, ku=0.5)
    return write_tables(certify(made.to_tables()), folder)


def of_their_sets(plan: nc.Plan, people: Mapping[str, str], rows: Sequence[Row]) -> float:
    """Everybody of a set gets what the merged query matches."""
    assert isinstance(plan, QueriesPlan)
    total = 0
    for members, pieces in zip(plan.sets, plan.pieces, strict=True):
        taken = sum(plan.demand.labels[q] in people for q in members)
        at = np.array([(r["x"], r["y"]) for r in rows])
        inside = np.any([((p[:, 0] <= at) & (at <= p[:, 1])).all(axis=1) for p in np.asarray(pieces)], axis=0)
        total += taken * int(inside.sum())
    return total


# Semantic channels on a ring of brokers: ranges of x. Later other ranges, and what is sent is not what it was.

BROKERS = 8


def span(person: int, later: bool) -> str:
    low = (person * 5 + (37 if later and person % 2 else 0)) % 80
    return f"x BETWEEN {low} AND {low + 19}"


def in_span(profile: str, row: Row) -> bool:
    _, _, low, _, high = profile.split()
    return int(low) <= row["x"] <= int(high)


def span_row(n: int, later: bool) -> dict[str, Any]:
    x = n * 37 % 40 + 30 if later and n % 5 else n * 37 % 100
    return {"x": x, "source": "b4" if later else "b0", "topic": "t", "n": n}


def semantic_plan(folder: Path) -> Path:
    links = [(i, (i + 1) % BROKERS) for i in range(BROKERS)]
    ring = nc.Topology([*links, (0, 4)], names=[f"b{i}" for i in range(BROKERS)])
    texts = [span(person, False) for person in range(PEOPLE)]
    clients = [(person, person % BROKERS) for person in range(PEOPLE)]
    window = pa.table({"x": list(range(100))})
    nc.semantic.plan(ring, texts, clients, window, 0, "search").save(folder)
    return folder


def on_trees(plan: nc.Plan, people: Mapping[str, str], rows: Sequence[Row]) -> float:
    """A message travels every link of the trees of its channels."""
    assert isinstance(plan, SemanticPlan)
    _, channels = plan.route(pa.table({"x": [r["x"] for r in rows]}), [int(r["source"][1:]) for r in rows])
    return sum(len(plan.channels[c].edges) for c in channels)


# Filters on a tree of ten brokers: who wants much is on one side of it first, on another later.

PARENTS = (-1, 0, 0, 0, 1, 1, 2, 2, 3, 3)
LEAVES = tuple(f"v{v}" for v in range(4, 10))
ITEMS = [f"i{k:02d}" for k in range(32)]


def items(person: int, later: bool) -> tuple[str, ...]:
    side = person % len(LEAVES) // 2
    much = side != (2 if later else 0)
    return tuple(ITEMS[(person * 3 + k) % 32] for k in range(10 if much else 1))


def item_profile(person: int, later: bool) -> str:
    return f"item IN ({', '.join(map(repr, sorted(items(person, later))))})"


def has_item(profile: str, row: Row) -> bool:
    return f"'{row['item']}'" in profile


def item_row(n: int, later: bool) -> dict[str, Any]:
    return {"item": ITEMS[n * 7 % 32], "n": n}


def tree_flow(wanted: Sequence[tuple[str, str]], size: Sequence[float]) -> np.ndarray:
    """From (leaf, item) pairs and what each item sends."""
    leaf, item = zip(*((int(at[1:]), ITEMS.index(each)) for at, each in wanted), strict=True)
    return nc.filters.flow_from_demand(nc.Tree(PARENTS), np.array(leaf), np.array(item), np.array(size))


def filters_plan(folder: Path) -> Path:
    tree = nc.Tree(PARENTS, names=[f"v{v}" for v in range(len(PARENTS))])
    wanted = [(LEAVES[p % len(LEAVES)], item) for p in range(PEOPLE) for item in items(p, False)]
    nc.plan(TreeDemand(tree, tree_flow(wanted, [5.0] * 32)), "filters", k=2).save(folder)
    return folder


def on_links(plan: nc.Plan, people: Mapping[str, str], rows: Sequence[Row]) -> float:
    """What is wanted below a filter, and everything where there is none."""
    assert isinstance(plan, FiltersPlan)
    sent = [float(sum(r["item"] == item for r in rows)) for item in ITEMS]
    person = {name: int(name[1:].rstrip("b")) for name in people}
    wanted = [(LEAVES[person[n] % len(LEAVES)], i) for n, text in people.items() for i in ITEMS if f"'{i}'" in text]
    return float(nc.filters.traffic(plan.tree, tree_flow(wanted, sent), plan.filters))


KINDS = {
    "channels": Kind(channels_plan, symbol_profile, has_symbol, symbol_row, at_receivers, "symbol"),
    "hybrid": Kind(hybrid_plan, symbol_profile, has_symbol, symbol_row, at_receivers, "symbol"),
    "filters": Kind(
        filters_plan, item_profile, has_item, item_row, on_links, "item", LEAVES,
        replace(QUICK, threshold=0.002, proof=0.0, effort=0.02),
    ),
    "semantic": Kind(
        semantic_plan, span, in_span, span_row, on_trees, "topic", tuple(f"b{i}" for i in range(BROKERS)),
        schema="x bigint, source string",
    ),
    "queries": Kind(queries_plan, box_text, in_box, place_row, of_their_sets, "topic", schema="x double, y double"),
}  # fmt: skip
