"""Query merging plans explained: whose answer holds what they did not ask for, and the next best set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from narrowcast.errors import PlanError
from narrowcast.evaluate.explanation import Choice, Explanation, Unwanted, place_of, ranked, several, worst
from narrowcast.model.plan import Tables
from narrowcast.model.quantity import quantity
from narrowcast.plans.queries.judge import Floats, Name, QueryTables, combinations, constants, cost, union_area

MEASURE = "cost of answering"
# A polygon is a disjunction of at most so many boxes.
POLYGON = 4


class _QueryCase:
    """A plan's sets, and what any set of its queries would cost."""

    def __init__(self, plan: Tables) -> None:
        self.plan, self.read = plan, QueryTables(plan)
        if self.read.broken:
            raise PlanError(f"the plan cannot be explained: {self.read.broken[0]}")
        self.k, self.procedure = constants(plan), plan.parameters.get("procedure", "rectangle")
        self.sized = self.read.sized
        self.cost = cost(plan).get("total") if self.sized else plan.cost.get("total")

    def boxes(self, names: list[Name]) -> Floats:
        return np.array([self.read.queries[name] for name in names])

    def price(self, names: list[Name]) -> float:
        """What one set of these queries adds to the cost; nothing for no query."""
        if not names:
            return 0.0
        boxes, k = self.boxes(names), self.k
        channels = combinations(boxes) if self.procedure == "exact" else 1
        size = self.read.union(merged(boxes, self.procedure, self.read.union))
        irrelevant = 0.0 if self.procedure == "exact" else len(names) * size - self.own(names)
        work = k["per_query"] * channels + k["per_object"] * size
        return k["ka"] * work + k["km"] * channels + k["kt"] * size + k["ku"] * irrelevant

    def sent(self, at: Any) -> float:
        return self.read.union(np.array(list(self.read.pieces[at].values())))

    def own(self, names: list[Name]) -> float:
        """What these queries ask for, each counted on its own."""
        return sum(self.read.union(box[None]) for box in self.boxes(names))

    def irrelevant(self, at: Any, name: Name) -> float:
        """What the answer of its set holds that a query did not ask for."""
        return 0.0 if self.procedure == "exact" else self.sent(at) - self.own([name])

    def choice(self, what: str, before: list[list[Name]], after: list[list[Name]]) -> Choice:
        """The sets `before` replaced by the sets `after`."""
        change = sum(map(self.price, after)) - sum(map(self.price, before))
        return Choice(what, (self.cost or 0.0) + change, change)

    def explained(self, subject: str, headline: str, facts: dict[str, Any], unwanted: Any, choices: Any) -> Explanation:
        if not self.sized:
            facts = facts | {"note": "sizes were counted in data that the plan does not hold: nothing else is priced"}
        elif self.read.home:
            facts = facts | {"note": "what others overhear on a shared physical channel is not priced anew"}
        found = ranked(choices) if self.sized else ()
        return Explanation("queries", subject, headline, facts, MEASURE, self.cost, worst(unwanted), found)


def explain_query(plan: Tables, name: str) -> Explanation:
    """Which set answers a query, what it hears beside its answer, and every other set it could be in."""
    case = _QueryCase(plan)
    mine = _named(case, name)
    at = next(s for s, members in case.read.members.items() if mine in members)
    members = case.read.members[at]
    own = case.own([mine]) if case.sized else None
    extra = case.irrelevant(at, mine) if case.sized else 0.0
    facts = {"set": at, "answered with": [_text(m) for m in members if m != mine][:20],
             "queries in the set": len(members), "own size": own,
             "irrelevant": extra if case.sized else None}  # fmt: skip
    shared = f"with {several(len(members) - 1, 'other query')}" if len(members) > 1 else "alone"
    headline = f"{_text(mine)} is answered {shared} in set {at}" + (
        f"; of {quantity(own + extra)} sent {quantity(own)} is its own" if own is not None else ""
    )
    choices = _other_sets(case, mine, at) if case.sized else ()
    return case.explained(f"query {_text(mine)}", headline, facts, [Unwanted(_text(mine), extra)], choices)


def explain_set(plan: Tables, number: int) -> Explanation:
    """What a merged query answers, what each of its queries hears in vain, and what other sets would cost."""
    case = _QueryCase(plan)
    at = [*case.read.members][place_of("channel", str(number), [str(s) for s in case.read.members])]
    members = case.read.members[at]
    facts: dict[str, Any] = {"queries": [_text(m) for m in members][:20], "n_queries": len(members),
                             "pieces": len(case.read.pieces[at])}  # fmt: skip
    headline = f"set {at} answers {several(len(members), 'query')} by one merged query"
    if not case.sized:
        return case.explained(f"set {at}", headline, facts, (), ())
    facts |= {"size": case.sent(at), "wanted": case.read.union(case.boxes(members))}
    unwanted = [Unwanted(_text(m), case.irrelevant(at, m)) for m in members]
    return case.explained(f"set {at}", headline, facts, unwanted, _set_choices(case, at))


def explain_client(plan: Tables, name: str) -> Explanation:
    """What a client asks, which sets answer, what it hears in vain, and the best change for each of its queries."""
    case = _QueryCase(plan)
    mine = _of_client(case, name)
    home = {m: s for s, members in case.read.members.items() for m in members if m in mine}
    headline = f"{name} asks {several(len(mine), 'query')}, answered by {several(len(set(home.values())), 'set')}"
    facts: dict[str, Any] = {"queries": [_text(m) for m in mine][:20], "sets": sorted(set(home.values()))[:20]}
    if not case.sized:
        return case.explained(f"subscriber {name}", headline, facts, (), ())
    facts["own size"] = case.own(mine)
    unwanted = [Unwanted(name, case.irrelevant(home[m], m), f"beside {_text(m)}, in set {home[m]}") for m in mine]
    choices = []
    for m in mine:
        best = ranked(_other_sets(case, m, home[m]))[:1]
        choices += [Choice(f"{_text(m)} {choice.what}", choice.cost, choice.change) for choice in best]
    return case.explained(f"subscriber {name}", headline, facts, unwanted, choices)


def _other_sets(case: _QueryCase, mine: Name, at: Any) -> Iterator[Choice]:
    rest = [m for m in case.read.members[at] if m != mine]
    if rest:
        yield case.choice("alone", [[*rest, mine]], [rest, [mine]])
    for other, members in case.read.members.items():
        if other != at and mine not in members:
            yield case.choice(f"in set {other}", [[*rest, mine], members], [rest, [*members, mine]])


def _set_choices(case: _QueryCase, at: Any) -> Iterator[Choice]:
    members = case.read.members[at]
    if len(members) > 1:
        yield case.choice("every query apart", [members], [[m] for m in members])
    for m in members if len(members) > 2 else ():
        yield case.choice(f"without {_text(m)}", [members], [[x for x in members if x != m], [m]])
    for other, others in case.read.members.items():
        if other != at and not set(others) & set(members):
            yield case.choice(f"together with set {other}", [members, others], [[*members, *others]])


def merged(boxes: Floats, procedure: str, union: Callable[[Floats], float] = union_area) -> Floats:
    """The boxes whose union is the merged query of some queries."""
    if procedure == "rectangle":
        return np.stack([boxes[:, :, 0].min(axis=0), boxes[:, :, 1].max(axis=0)], axis=1)[None]
    if procedure == "exact":
        return boxes
    kept = [box for i, box in enumerate(boxes) if not any(_inside(box, other, i, j) for j, other in enumerate(boxes))]
    while len(kept) > POLYGON:
        pairs = [(i, j) for i in range(len(kept)) for j in range(i)]
        hulls = [merged(np.array([kept[i], kept[j]]), "rectangle")[0] for i, j in pairs]
        wastes = [union(h[None]) - union(np.array([kept[i], kept[j]]))
                  for h, (i, j) in zip(hulls, pairs, strict=True)]  # fmt: skip
        hull = hulls[int(np.argmin(wastes))]
        kept = [box for box in kept if not _inside(box, hull, 0, -1)] + [hull]
    return np.array(kept)


def _inside(box: Floats, other: Floats, i: int, j: int) -> bool:
    """Whether a box lies in another; of two that are the same, the later in the earlier."""
    if i == j or (j > i and np.array_equal(box, other)):
        return False
    return bool((other[:, 0] <= box[:, 0]).all() and (box[:, 1] <= other[:, 1]).all())


def _named(case: _QueryCase, name: str) -> Name:
    """A query by its name, or by `name of client` where clients use the same names."""
    known = [*case.read.queries]
    plain = [k for k in known if k[0] == name]
    found: Name = plain[0] if len(plain) == 1 else known[place_of("query", name, [_text(k) for k in known])]
    return found


def _of_client(case: _QueryCase, name: str) -> list[Name]:
    clients = [str(k[1]) for k in case.read.queries if len(k) > 1]
    place_of("subscriber", name, clients)
    return [k for k in case.read.queries if str(k[1]) == name]


def _text(name: Name) -> str:
    return " of ".join(map(str, name))


def explained(plan: Tables) -> Mapping[str, Callable[[Tables, Any], Explanation]]:
    """What can be asked about."""
    return {"query": explain_query, "channel": explain_set, "subscriber": explain_client}
