"""Whether a channels or hybrid plan keeps to its budgets and limits: groups, sessions, joins, rates, pins, apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.columns import constant
from narrowcast.evaluate.compare import TOLERANCE
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.delivery import Delivery, may_unicast


def limits_of(plan: Tables) -> dict[str, Any]:
    """The limits that the plan was made under; one of them had another name in format 1."""
    given = plan.parameters.get("limits", {})
    if not isinstance(given, Mapping):
        raise InputError(f"parameter limits must be a mapping, got {given!r}", name="limits")
    found = dict(given)
    if "joins_per_user" in found:
        found["joins_per_subscriber"] = found.pop("joins_per_user")
    return found


def limit_faults(plan: Tables, read: Delivery) -> Iterator[str]:
    """Every budget that is broken, by name. Limits are in the parameters, flows by their names."""
    for name, numbers in (("groups", read.groups), ("sessions", read.sessions)):
        budget = _budget(plan.parameters, name)
        if budget is not None and numbers.size > budget:
            yield f"it uses {numbers.size} {name}, the budget is {budget}"
        if budget is not None and numbers.max(initial=-1) >= budget:
            yield f"{name[:-1]} must be below the budget {budget}, got {numbers.max()}"
    limits = limits_of(plan)
    yield from _too_many_joins(read, _budget(limits, "joins_per_subscriber"))
    yield from _too_fast(read, _number(limits, "rate_per_group"))
    yield from _misplaced(read, dict(limits.get("pinned", {})))
    yield from _together(read, list(limits.get("apart", [])))
    yield from _too_much_unicast(plan, read)


def _too_many_joins(read: Delivery, most: int | None) -> Iterator[str]:
    if most is None:
        return
    joins = np.bincount(read.member, minlength=len(read.user_names))
    for user in np.flatnonzero(joins > most):
        yield f"subscriber {read.user_names[user]} joins {joins[user]} groups, the limit is {most}"


def _too_fast(read: Delivery, most: float | None) -> Iterator[str]:
    if most is None:
        return
    for group in np.flatnonzero(read.group_rates > most * (1 + TOLERANCE)):
        yield f"group {read.groups[group]} carries {read.group_rates[group]:g}, the limit is {most:g}"


def _misplaced(read: Delivery, pinned: Mapping[str, Any]) -> Iterator[str]:
    place = {name: k for k, name in enumerate(read.flow_names)}
    for flow, group in pinned.items():
        k = place.get(flow)
        at = -1 if k is None else read.group_of_flow[k]
        if k is None:
            yield f"flow {flow!r} is pinned but is not in table flows"
        elif at >= 0 and read.groups[at] != group:
            yield f"flow {flow} is in group {read.groups[at]} but is pinned to group {group}"


def _together(read: Delivery, apart: list[Any]) -> Iterator[str]:
    """A member of a group sees all that is sent in it: who may not see both must not share a group."""
    place = {name: k for k, name in enumerate(read.flow_names)}
    for pair in apart:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(name in place for name in pair):
            yield f"apart must be pairs of flows in table flows, got {pair!r}"
            continue
        group = read.group_of_flow[[place[name] for name in pair]]
        if group[0] == group[1] >= 0:
            yield f"flows {pair[0]} and {pair[1]} share group {read.groups[group[0]]} but must be apart"


def _too_much_unicast(plan: Tables, read: Delivery) -> Iterator[str]:
    cap = _number(plan.parameters, "cap")
    if not may_unicast(plan) or cap is None:
        return
    w1, w2, w3 = (float(w) for w in plan.parameters.get("weights", (1, 1, 1)))
    beta, (session, _) = constant(plan, "beta", 0.0), read.subscribed
    alone = w3 * (w1 + beta + w2) * float(read.rates[read.unicast_flow].sum())
    received = w1 * float(read.group_rates[read.joined].sum()) + beta * float(read.session_rates[session].sum())
    total = alone + received + w2 * float(read.group_rates.sum())
    if alone > cap * total * (1 + TOLERANCE):
        yield f"{alone / total:.1%} of the cost is unicast, the limit is {cap:.1%}"


def _budget(given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise InputError(f"parameter {name} must be a whole number above 0, got {value!r}", name=name)
    return value


def _number(given: Mapping[str, Any], name: str) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise InputError(f"parameter {name} must be a number, zero or more, got {value!r}", name=name)
    return float(value)
