"""What adapting is worth: the same demand under four ways to follow it, each with its cost and its moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from narrowcast.adapt.decide import LoopState, Policy, decide, moved
from narrowcast.model.demand import Demand
from narrowcast.plans.continued import Change, Continued


@dataclass(frozen=True, slots=True)
class Account:
    """What one way to follow demand came to: cost in messages, moved contents, new joins, and when plans changed."""

    cost: float
    moves: int
    joins: int
    times: tuple[float, ...]


#: From the plan in force and the demand of now to the plan to be in force next.
Follow = Callable[[Continued, Demand], Continued]


def account(begin: Continued, demands: Sequence[Demand], follow: Follow) -> Account:
    """Follow a sequence of demands. A plan chosen at one moment is paid for what flows until the next."""
    present, cost, moves, joins, times = begin, 0.0, 0, 0, []
    for now, later in pairwise(demands):
        chosen = follow(present, now)
        if chosen is not present:
            before = present.under(now)
            change = before.change_to(chosen.under(now))
            moves, joins = moves + change.moves, joins + change.joins
            if change != Change(0, 0, 0.0):
                times.append(now.time)
        present = chosen
        cost += present.under(later.unseen).cost * (later.time - now.time)
    return Account(cost, moves, joins, tuple(times))


def never(present: Continued, demand: Demand) -> Continued:
    """The first plan for ever."""
    return present


def hourly(every_s: float = 3600.0) -> Follow:
    """A plan from nothing at every full hour."""

    def follow(present: Continued, demand: Demand) -> Continued:
        return present.under(demand).anew() if demand.time % every_s == 0 else present

    return follow


def oracle(demands: Iterable[Demand], every_s: float = 3600.0) -> Follow:
    """A plan from nothing at every full hour, for what will come instead of what was."""
    order = list(demands)
    later = {now.time: after for now, after in pairwise(order)}

    def follow(present: Continued, demand: Demand) -> Continued:
        return present.under(later[demand.time].unseen).anew() if demand.time % every_s == 0 else present

    return follow


def adapting(policy: Policy) -> Follow:
    """The loop of `narrowcast.adapt`."""
    state: list[LoopState[Continued]] = []

    def follow(present: Continued, demand: Demand) -> Continued:
        before = state.pop() if state else LoopState(present)
        after, decision = decide(before, demand, policy)
        state.append(moved(after) if decision.move else after)
        return state[0].present if decision.move else present

    return follow
