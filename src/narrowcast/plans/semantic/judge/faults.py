"""Semantic plans judged from their tables alone: who could be missed by any message, and what it all costs.

Nothing here comes from the planner. That nobody can be missed is proven from the rule: under `audience` every
gateway with a client must be in a fallback channel, since a message goes to the fallback of every gateway that
its other channel leaves out; under `content` the channels that reach a client must together carry its profile.
What cannot be proven counts as a fault. Beside the proof, the messages kept with the plan are matched again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.plan import Tables
from narrowcast.plans.semantic.judge.proof import Formulas
from narrowcast.plans.semantic.judge.reader import ReadOverlay

TOLERANCE = 1e-9


def semantic_faults(plan: Tables) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(tables), and a proof per client."""
    read = ReadOverlay(plan)
    if read.broken:
        return read.broken
    return [*_tree_faults(read), *_rule_faults(read), *_window_faults(read), *_sample_faults(read)]


def semantic_cost(plan: Tables) -> dict[str, float]:
    """The window's cost: `tree`, the links below each rendezvous; `full`, the way from the sources added.

    `full` is there if the plan knows its sources; `total` is it, or else `tree`. Under latency bounds, where
    some messages go by the quickest way instead of the cheapest, only `tree` is.
    """
    read = ReadOverlay(plan)
    if read.broken:
        return {}
    below = {c: sum(read.link[edge][0] for edge in read.tree[c]) for c in read.rendezvous}
    tree, way = 0.0, 0.0
    for _, source, weight, channels in read.window:
        tree += weight * sum(below[c] for c in channels)
        if source is not None:
            way += weight * sum(read.distance(source, read.rendezvous[c]) for c in channels)
    if read.bounded:
        return {"tree": tree}
    if any(source is None for _, source, _, _ in read.window) or "full" not in plan.cost:
        return {"total": tree, "tree": tree}
    return {"total": tree + way, "tree": tree, "full": tree + way}


def _tree_faults(read: ReadOverlay) -> Iterator[str]:
    """Every link is in the overlay, and a walk from the rendezvous comes to every member, nowhere twice."""
    for c, root in read.rendezvous.items():
        children: dict[str, list[str]] = defaultdict(list)
        for u, v in read.tree[c]:
            if (u, v) not in read.link:
                yield f"channel {c} uses the link {u} to {v}, which is not in the overlay"
            children[u].append(v)
        seen, front = {root}, [root]
        while front:
            for v in children.get(front.pop(), ()):
                if v in seen:
                    yield f"the tree of channel {c} reaches {v} twice"
                    return
                seen.add(v)
                front.append(v)
        if len(seen) != len(read.tree[c]) + 1:
            yield f"the tree of channel {c} has links that do not start at its rendezvous {root}"
        for gateway in sorted(read.members[c] - seen):
            yield f"channel {c} has the member {gateway}, which its tree does not reach"


def _rule_faults(read: ReadOverlay) -> Iterator[str]:
    if read.rule == "audience":
        served = set().union(*(read.members[c] for c, kind in read.kind.items() if kind == "fallback"))
        for gateway in sorted({g for _, _, g, _ in read.clients} - served):
            yield f"gateway {gateway} is in no fallback channel: a message of an unknown audience would miss it"
        return
    try:
        formulas = Formulas(read.parts, read.content, read.read_profiles)
    except InputError as error:
        yield str(error)
        return
    at: dict[str, list[int]] = defaultdict(list)
    for c, members in read.members.items():
        for gateway in members:
            at[gateway].append(c)
    for profile, gateways in sorted(read.wanted.items()):
        for gateway in sorted(gateways):
            if not formulas.carried(profile, at[gateway]):
                yield f"the channels to gateway {gateway} cannot be proven to carry all of profile {profile}"


def _window_faults(read: ReadOverlay) -> Iterator[str]:
    """Rates are those of the window, every audience is reached, and no later than its clients allow."""
    rate: dict[int, float] = defaultdict(float)
    used: set[tuple[str, int]] = set()
    for profiles, source, weight, channels in read.window:
        reached = set().union(*(read.members[c] for c in channels))
        missed = set().union(*(read.wanted[p] for p in profiles)) - reached
        if missed:
            yield f"messages that match profiles {profiles[:5]} do not reach gateway {min(missed)}"
        for c in channels:
            rate[c] += weight
            if source is not None:
                used.add((source, c))
    for c, said in read.rate.items():
        if abs(rate[c] - said) > TOLERANCE * max(1.0, said):
            yield f"channel {c} carries a rate of {rate[c]}, the plan says {said}"
    yield from _late(read, used)


def _late(read: ReadOverlay, used: set[tuple[str, int]]) -> Iterator[str]:
    """Gateways that a source's channel serves later than a client's bound."""
    bound: dict[str, float] = {}
    for _, _, gateway, limit in read.clients:
        if limit is not None:
            bound[gateway] = min(limit, bound.get(gateway, np.inf))
    if not bound:
        return
    for source, c in sorted(used):
        delay = {read.rendezvous[c]: read.delay(source, read.rendezvous[c])}
        front = [read.rendezvous[c]]
        while front:
            at = front.pop()
            for u, v in read.tree[c]:
                if u == at and v not in delay:
                    delay[v] = delay[u] + read.link[u, v][1]
                    front.append(v)
        for gateway in sorted(read.members[c]):
            if delay.get(gateway, 0.0) > bound.get(gateway, np.inf) * (1 + TOLERANCE):
                yield f"channel {c} takes {delay[gateway]:g} from {source} to {gateway}, bound {bound[gateway]:g}"


def _sample_faults(read: ReadOverlay) -> Iterator[str]:
    """The kept messages, matched again: each reaches whoever wants it, and goes where the formulas say."""
    sample = read.plan.tables["sample"]
    sent = sample["_channels"].to_pylist()
    matched = _matched(read, sample.drop_columns(["_broker", "_channels"]))
    for i, profiles in enumerate(matched):
        reached = set().union(*(read.members.get(c, set()) for c in sent[i]))
        missed = set().union(*(read.wanted[p] for p in profiles)) - reached
        if missed:
            yield f"sample message {i} matches a profile at gateway {min(missed)} and does not reach it"
    if read.rule == "content":
        formulas = Formulas(read.parts, read.content, read.read_profiles)
        for i, profiles in enumerate(matched):
            if sorted(sent[i]) != formulas.channels(profiles):
                yield f"sample message {i} goes to channels {sent[i]}, the formulas say {formulas.channels(profiles)}"


def _matched(read: ReadOverlay, messages: Any) -> list[set[int]]:
    """The profiles that match each message."""
    from narrowcast.profiles import Matcher

    found: list[set[int]] = [set() for _ in range(messages.num_rows)]
    if found and read.read_profiles:
        numbers = list(read.read_profiles)
        matched = Matcher(list(read.read_profiles.values())).match(messages, missing="null")
        for row, col in zip(*matched, strict=True):
            found[row].add(numbers[col])
    return found
