"""The page: one bar, this plan's."""

from __future__ import annotations

from narrowcast.reports.build import Yardstick, assemble, ways_section
from narrowcast.reports.parts import Report, Tile
from narrowcast.reports.whatif import Whatif
from plans.sixth.broadcast.result import BroadcastPlan


def report(plan: BroadcastPlan, whatif: Whatif | None) -> Report:
    ways = ways_section({}, plan.cost.total, label="Cost", lead="There is no other way.")
    return assemble(
        plan,
        whatif,
        headline=["everybody gets everything"],
        summary=f"{len(plan.members)} subscribers in one group.",
        tiles=[Tile("Members", str(len(plan.members)))],
        ways=ways,
        yardstick=Yardstick(plan.cost.total, None, "cost", "cost"),
        sections=[],
    )
