"""The named baselines of a channels or hybrid plan, recomputed from what they stand for where that is cheap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.columns import constant
from narrowcast.evaluate.compare import RATIOS, same
from narrowcast.model.arrays import Ints, distinct
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.delivery import Delivery, may_unicast

ROUND_ROBIN = 5


def baseline_faults(plan: Tables, read: Delivery) -> Iterator[str]:
    """Every baseline that is not what the demand makes it. A name that is not known here is left alone."""
    found = _hybrid(plan, read) if may_unicast(plan) else _two_level(plan, read)
    scale = read.n_users * float(read.rates[read.audience_sizes > 0].sum())
    for name, values in plan.baselines.items():
        known = found.get(name)
        if known is None:
            continue
        given = values if isinstance(values, Mapping) else {"cost": values}
        for term, value in known.items():
            if not same(given.get(term), value, 1.0 if term in RATIOS else scale):
                yield f"the {term} of {name} is {value}, the plan says {given.get(term)}"


def _two_level(plan: Tables, read: Delivery) -> dict[str, dict[str, float]]:
    price = constant(plan, "alpha", 1.0) + constant(plan, "beta", 1.0)
    wanted = read.audience_sizes > 0
    sent, useful = float(read.rates[wanted].sum()), float(read.rates[read.want_flow].sum())
    flooding = price * float(((read.n_users - read.audience_sizes) * read.rates)[wanted].sum())
    real = flooding > 1e-12 * useful
    found = {
        "flooding": {"excess": flooding, "relative": 1.0 if real else 0.0, "sent": sent},
        "unicast": {"excess": 0.0, "relative": 0.0, "sent": useful},
        "perfect multicast": {"excess": 0.0, "relative": 0.0, "sent": sent},
    }
    for name, group in _fixed(plan, read).items():
        received, _ = _received(read, group)
        excess = price * (received - useful)
        found[name] = {"excess": excess, "relative": excess / flooding if real else 0.0, "sent": sent}
    return found


def _hybrid(plan: Tables, read: Delivery) -> dict[str, dict[str, float]]:
    w1, w2, w3 = (float(w) for w in plan.parameters.get("weights", (1, 1, 1)))
    w1 += constant(plan, "beta", 0.0)  # where nothing tells flows apart, all that is received is filtered
    sent, useful = float(read.rates[read.audience_sizes > 0].sum()), float(read.rates[read.want_flow].sum())
    found = {
        "flooding": {"cost": sent * (w1 * read.n_users + w2)},
        "unicast": {"cost": w3 * (w1 + w2) * useful},
        "perfect multicast": {"cost": w1 * useful + w2 * sent},
    }
    for name, group in _fixed(plan, read).items():
        received, rate = _received(read, group)
        found[name] = {"cost": w1 * received + w2 * rate}
    return found


def _fixed(plan: Tables, read: Delivery) -> dict[str, Ints]:
    """A group per flow by rules that look at no cost."""
    groups = plan.parameters.get("groups")
    if groups is None:
        return {}
    if not isinstance(groups, int) or groups < 1:
        raise InputError(f"parameter groups must be a whole number above 0, got {groups!r}", name="groups")
    flow = np.arange(len(read.flow_names))
    return {"hash": _splitmix(flow, groups), f"round-robin over {ROUND_ROBIN} groups": flow % min(ROUND_ROBIN, groups)}


def _received(read: Delivery, group: Ints) -> tuple[float, float]:
    """What all receivers get together if the flows are in these groups, and what is sent."""
    wanted = read.audience_sizes > 0
    rate = np.bincount(group[wanted], read.rates[wanted])
    joins = distinct(read.pair(group[read.want_flow], read.want_user))
    return float(rate[joins // max(read.n_users, 1)].sum()), float(rate.sum())


def _splitmix(flow: Ints, groups: int) -> Ints:
    """The finaliser of splitmix64 on each flow's number, whole numbers mod 2^64."""
    mask = (1 << 64) - 1
    found = []
    for number in flow.tolist():
        x = (number + 0x9E3779B97F4A7C15) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        found.append((x ^ (x >> 31)) % groups)
    return np.array(found, np.int64)
