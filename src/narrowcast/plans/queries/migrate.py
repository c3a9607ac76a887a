"""From one queries plan to another: what each query needs, and sets numbered as the older plan's."""

from __future__ import annotations

from typing import Any

from narrowcast.errors import PlanError
from narrowcast.evaluate.matching import assigned, by, overlaps, with_numbers
from narrowcast.evaluate.ways import Need, Ways
from narrowcast.model.plan import Tables
from narrowcast.plans.queries.judge import QueryTables


def ways(plan: Tables) -> Ways:
    """For each query the channel of its set, and the merged query asked. O(queries)."""
    read = QueryTables(plan)
    if read.broken:
        raise PlanError(f"the plan is unsound: {read.broken[0]}")
    place, wishes, weight = {}, {}, {}
    for at, members in read.members.items():
        pieces = sorted(_box(piece) for piece in read.pieces[at].values())
        for name in members:
            # A query that asks something else now is another one; its name stays in front.
            query = f"{' of '.join(map(str, name))} {_box(read.queries[name])}"
            receiver = str(name[-1])
            place[query] = f"set {at}"
            weight[query] = 0.0
            asked = Need("ask", f"set {at}", " or ".join(pieces))
            wishes[receiver, query] = frozenset({Need("join", receiver, f"set {at}"), asked})
    return Ways(place, wishes, weight=weight)


def _box(box: Any) -> str:
    return " x ".join(f"[{low:.17g}, {high:.17g}]" for low, high in box.tolist())


def renumbered(new: Tables, old: Tables) -> Tables:
    """The new plan with the old one's numbers wherever they fit: the same plan to everybody.

    Sets agree by the queries they keep; the sum kept is the largest there is (an assignment). The verdict in `checks`
    goes, since it was on the other numbers.
    """
    key = "client" if all("client" in plan.tables["merges"].column_names for plan in (new, old)) else "query"
    held = [by(plan, "merges", "set", "query", key) for plan in (new, old)]
    sets = assigned(overlaps(*held), held[0], held[1], None, set())
    return with_numbers(new, {"merges": {"set": sets}, "channels": {"set": sets}})
