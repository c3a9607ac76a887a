"""From one channels plan to another: what each wish needs, and numbers that agree with the older plan's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from narrowcast.errors import PlanError
from narrowcast.evaluate.matching import assigned, by, overlaps, with_numbers
from narrowcast.evaluate.ways import Need, Ways
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.delivery import delivery


def ways(plan: Tables) -> Ways:
    """Joins and sessions taken, or a unicast copy, for each wish. O(wishes)."""
    read = delivery(plan)
    if read.unknown:
        raise PlanError(f"the plan is unsound: {read.unknown[0]}")
    place: dict[str, str] = {}
    wishes = {}
    groups, sessions = read.groups.tolist(), read.sessions.tolist()
    for k, name in enumerate(read.flow_names):
        l, g = int(read.session_of_flow[k]), int(read.group_of_flow[k])
        if read.audience_sizes[k]:
            place[name] = f"session {sessions[l]} of group {groups[g]}" if l >= 0 else "unicast"
    pairs = zip(read.want_flow.tolist(), read.want_user.tolist(), read.by_unicast.tolist(), strict=True)
    for k, u, alone in pairs:
        user, flow = read.user_names[u], read.flow_names[k]
        if alone or read.group_of_flow[k] < 0:
            needs = [Need("copy", user, f"flow {flow}")]
        else:
            g, l = groups[read.group_of_flow[k]], sessions[read.session_of_flow[k]]
            needs = [Need("join", user, f"group {g}"), Need("take", user, f"session {l}")]
        wishes[user, flow] = frozenset(needs)
    return Ways(place, wishes, weight=dict(zip(read.flow_names, read.rates.tolist(), strict=True)))


def renumbered(new: Tables, old: Tables) -> Tables:
    """The new plan with the old one's numbers wherever they fit: the same plan to everybody.

    Groups agree by the members they keep, sessions by the flows that stay in their group; the sum kept is the
    largest there is (an assignment). Groups that flows are pinned to keep their own. The verdict in
    `checks` goes, since it was on the other numbers.
    """
    pinned = dict(new.parameters.get("limits", {})).get("pinned", {})
    group_of = [_group_of_flow(plan) for plan in (new, old)]
    fixed = {group_of[0][flow] for flow in pinned if flow in group_of[0]}
    members = [by(plan, "subscriber_group", "group", "subscriber") for plan in (new, old)]
    sent = [_turned(homes) for homes in group_of]
    kept, same = overlaps(*members), overlaps(*sent)
    # A kept join is worth more than any flow; of groups with the same members the flows decide.
    worth = Counter({pair: kept[pair] * (len(group_of[0]) + 1) + same[pair] for pair in kept.keys() | same.keys()})
    groups = assigned(worth, sent[0], sent[1], new.parameters.get("groups"), fixed)
    flows = [by(plan, "flow_session", "session", "flow") for plan in (new, old)]
    shared: Counter[tuple[int, int]] = Counter()
    home = {flow: session for session, held in flows[1].items() for flow in held}
    for session, held in flows[0].items():
        for flow in held & home.keys():
            # A flow that changes its group moves anyway; of those, better together than not.
            stays = groups[group_of[0][flow]] == group_of[1][flow]
            shared[session, home[flow]] += 1000 if stays else 1
    sessions = assigned(shared, flows[0], flows[1], new.parameters.get("sessions"), set())
    return with_numbers(
        new,
        {"flow_session": {"session": sessions}, "session_group": {"session": sessions, "group": groups},
         "subscriber_group": {"group": groups}},
    )  # fmt: skip


def _group_of_flow(plan: Tables) -> dict[str, int]:
    group = dict(zip(*(plan.tables["session_group"][c].to_pylist() for c in ("session", "group")), strict=True))
    rows = zip(*(plan.tables["flow_session"][c].to_pylist() for c in ("flow", "session")), strict=True)
    return {flow: group[session] for flow, session in rows}


def _turned(homes: Mapping[str, int]) -> dict[int, set[Any]]:
    found: dict[int, set[Any]] = {}
    for flow, number in homes.items():
        found.setdefault(number, set()).add(flow)
    return found
