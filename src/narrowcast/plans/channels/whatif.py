"""What other budgets and prices would make of a channels plan."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from narrowcast.evaluate.knee import knee_of
from narrowcast.evaluate.whatif import Family, Outcome, Settings, share_of
from narrowcast.model import Interest
from narrowcast.plans.channels.hybrid import hybrid
from narrowcast.plans.channels.limits import Limits
from narrowcast.plans.channels.plan import MOST_BUDGET
from narrowcast.plans.channels.plan import plan as plan_channels
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.reports.whatif import Whatif, parse_whatif

BUDGETS = ("groups", "sessions", "joins_per_subscriber", "rate_per_group")
FACTORS = (1, 0.5, 2, 0.25, 4, 0.75, 1.5, 3)
SECONDS = 12.0


def family(plan: ChannelsPlan) -> Family:
    """What can be changed; without unicast the limits too, with it the weights."""
    if plan.weights is not None:
        two_level = plan.sessions is not None
        return Family(
            budgets=("groups", "sessions") if two_level else ("groups", "cap"),
            prices=("w1", "w2", "w3", "beta") if two_level else ("w1", "w2", "w3"),
            measure="cost",
            yardstick="perfect multicast",
            present=lambda: share_of(plan.cost, plan.cost.perfect),
            setting=partial(_setting, plan),
            replan=partial(_hybrid_again, plan),
            warm_up=lambda: hybrid(_TINY, 2),
        )
    return Family(
        budgets=BUDGETS,
        prices=("alpha", "beta"),
        measure="excess cost",
        yardstick="flooding's waste",
        present=lambda: share_of(plan.cost.excess, plan.cost.flooding),
        setting=partial(_setting, plan),
        replan=partial(_again, plan),
        warm_up=lambda: plan_channels(_TINY, 2, 3),
        keeps_time=plan.method == "search",
    )


_TINY = Interest.from_pairs([0, 0, 1, 2], [0, 1, 1, 2], [3.0, 2.0, 1.0])


def _setting(plan: ChannelsPlan, name: str) -> float | None:
    """What a setting is in the plan; where the plan has no such bound, what it makes use of."""
    if name in ("w1", "w2", "w3"):
        return (plan.weights or (1.0, 1.0, 1.0))[int(name[1]) - 1]
    limited = getattr(plan.limits, name, None)
    known = plan.parameters.get(name) if limited is None else limited
    if known is not None:
        return float(known)
    if name == "cap":
        return plan.unicast_share
    if name == "joins_per_subscriber":
        return float(max(Counter(plan.joins[0].tolist()).values(), default=1))
    if name == "rate_per_group":
        sent = plan.group_of_flow >= 0
        return float(np.bincount(plan.group_of_flow[sent], plan.interest.rates[sent]).max(initial=0.0))
    return None


def _of(plan: ChannelsPlan, settings: Settings, name: str) -> float:
    return float(settings[name] if name in settings else _setting(plan, name) or 0.0)


def _everyone(plan: ChannelsPlan) -> Interest:
    """The demand with those who want nothing, whom flooding would reach too."""
    named = plan.interest
    return Interest.from_pairs(named.flow_of_pair, named.users, named.rates, n_users=plan.n_subscribers)


def _again(plan: ChannelsPlan, settings: Settings, time_limit: float | None) -> Outcome:
    limits = _limits(plan, settings)
    method = "search" if limits is not None else plan.method
    found = plan_channels(
        _everyone(plan),
        int(_of(plan, settings, "groups")),
        int(_of(plan, settings, "sessions")),
        method,
        alpha=_of(plan, settings, "alpha"),
        beta=_of(plan, settings, "beta"),
        seed=plan.seed,
        time_limit=time_limit if method == "search" and limits is None else None,
        limits=limits,
    )
    return Outcome(found.cost.excess, found.cost.relative)


def _limits(plan: ChannelsPlan, settings: Settings) -> Limits | None:
    """The plan's own limits with those that are changed; moves from an older plan bind no more."""
    changed: dict[str, Any] = {}
    if "joins_per_subscriber" in settings:
        changed["joins_per_subscriber"] = int(settings["joins_per_subscriber"])
    if "rate_per_group" in settings:
        changed["rate_per_group"] = float(settings["rate_per_group"])
    if plan.limits is None and not changed:
        return None
    found = replace(plan.limits or Limits(), moves=None, new_joins=None, **changed)
    bound = (found.joins_per_subscriber, found.rate_per_group) != (None, None) or found.pinned or tuple(found.apart)
    return found if bound else None


def _hybrid_again(plan: ChannelsPlan, settings: Settings, time_limit: float | None) -> Outcome:
    weights = [float(settings.get(f"w{i + 1}", w)) for i, w in enumerate(plan.weights or (1, 1, 1))]
    more: dict[str, Any] = {}
    if plan.sessions is not None:
        more = {"sessions": int(_of(plan, settings, "sessions")), "beta": _of(plan, settings, "beta")}
    more |= {name: plan.parameters[name] for name in ("channelizer", "unicast") if name in plan.parameters}
    cap = settings.get("cap", plan.parameters.get("cap"))
    groups = int(_of(plan, settings, "groups"))
    found = hybrid(_everyone(plan), groups, weights=weights, cap=cap, seed=plan.seed, **more)
    return Outcome(float(found.cost), found.percent_of_perfect / 100)


def quick(plan: ChannelsPlan) -> Whatif | None:
    """Other numbers of groups by the fast planners, so the curve lies above what a search finds."""
    if plan.weights is not None and plan.sessions is not None:
        return None  # there is no fast planner
    end = time.monotonic() + SECONDS
    points: list[Mapping[str, float]] = []
    for budget in dict.fromkeys(min(max(1, round(plan.groups * factor)), MOST_BUDGET) for factor in FACTORS):
        if points and time.monotonic() > end:
            break
        points.append({"groups": budget, **_quickly(plan, budget)})
    if len(points) < 2:
        return None
    line = sorted((point["groups"], point["cost"]) for point in points)
    which = "groups first" if plan.weights is None else "reverse start"
    how = f"A quick estimate by the fast planner ({which}); narrowcast whatif searches each setting."
    return parse_whatif({"x": "groups", "points": points, "present": plan.groups, "knee": knee_of(line)}, how)


def _quickly(plan: ChannelsPlan, budget: int) -> dict[str, float]:
    if plan.weights is not None:
        mixed = hybrid(plan.interest, budget, unicast="reverse", weights=plan.weights, seed=plan.seed)
        return {"cost": float(mixed.cost), "relative": mixed.percent_of_perfect / 100}
    sessions = max(budget, plan.sessions or budget)
    made = plan_channels(plan.interest, budget, sessions, "gf", alpha=plan.alpha, beta=plan.beta, seed=plan.seed)
    return {"sessions": sessions, "cost": made.cost.excess, "relative": made.cost.relative}
