"""A plan that can be trusted: judged by code that did not make it, explained, and moved to without losing anybody."""

from __future__ import annotations

import narrowcast as nc

interest = nc.Interest.from_pairs(
    flow=[0, 0, 0, 1, 1, 2, 2, 3, 3, 4],
    user=[0, 1, 2, 0, 1, 2, 3, 3, 4, 4],
    rates=[9.0, 7.0, 5.0, 3.0, 2.0],
    flow_names=["IBM", "MSFT", "GE", "XOM", "KO"],
    user_names=["desk-1", "desk-2", "desk-3", "desk-4", "desk-5"],
)

monday = nc.plan(interest, groups=2, sessions=3)
found = monday.check()
print("sound:", found.sound, "- excess cost", round(found.cost["excess"], 3))

why = monday.explain(flow="GE")
print(why.headline)
if why.next_best is not None:
    print("next best:", why.next_best.what, f"({why.next_best.change:+.1f})")

tuesday = nc.plan(interest, groups=3, sessions=4)
for step in monday.diff(tuesday, join_rate=2).steps:
    print(f"{step.at_s:4.1f} s  {step.kind:6}  {len(step.do)} done, {len(step.moves)} moved, {len(step.undo)} undone")
