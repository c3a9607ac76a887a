"""When to re-plan: what keeping the plan costs against the best within reach, less the price of moving.

Pure and deterministic. Two questions, both of which must be answered with yes (docs/decisions/0124):

Is it worth it? What a candidate saves over the horizon must be more than its price: joins, moves, and
what is sent twice meanwhile. Is it true? A plan made for the statistics of now always looks good on
them, noise included. So a candidate is first kept in the shadow, and tried on demand that came after it
was made. What it would have saved there, less a slack, adds up; what it would have lost takes away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, TypeVar

from narrowcast.errors import InputError
from narrowcast.model.demand import Demand
from narrowcast.plans.continued import Budget, Change, Continued

C = TypeVar("C", bound=Continued)


@dataclass(frozen=True, slots=True)
class Policy:
    """`horizon_s`: how long demand is expected to stay as it is. `threshold`: a saving below this share of the cost
    is noise. `proof`: the share of its price that a candidate must have earned in the shadow. `effort`: a moved
    content must save this share of what an average one costs. `join`: the price of a join, in messages.
    `warm_s`: how long what moves is sent both ways. `moves` and `joins`: the most that one move may change.
    `reorganise_s`: how often a plan from nothing is looked at too; None: never.
    """

    horizon_s: float = 3600.0
    threshold: float = 0.02
    proof: float = 0.1
    effort: float = 0.2
    join: float = 10.0
    warm_s: float = 2.0
    moves: int | None = None
    joins: int | None = None
    reorganise_s: float | None = 3600.0

    def __post_init__(self) -> None:
        for name in ("horizon_s", "threshold", "proof", "effort", "join", "warm_s"):
            value = getattr(self, name)
            if not value >= 0 or (name == "horizon_s" and value == 0):
                raise InputError(f"{name} must be a number above 0, got {value}", name=name, got=value)

    def price(self, change: Change, cost: float, size: int) -> float:
        """The price of a change in messages, for a plan of so many contents that costs so much a second."""
        each = self.least(cost, size) * self.horizon_s
        return change.moves * each + change.joins * self.join + change.warm * self.warm_s

    def allows(self, change: Change) -> bool:
        """Whether a change is within what one move may change."""
        return (self.moves is None or change.moves <= self.moves) and (self.joins is None or change.joins <= self.joins)

    def least(self, cost: float, size: int) -> float:
        """What a single move must save in a second."""
        return self.effort * cost / max(size, 1)


@dataclass(frozen=True, eq=False)
class LoopState(Generic[C]):
    """The plan in force, the candidate in its shadow, and what the candidates have earned there since the last move."""

    present: C
    candidate: C | None = None
    earned: float = 0.0
    time: float | None = None
    looked: float | None = None  # when a plan was last made from nothing, or the first look was taken
    price: float = 0.0  # of the candidate
    paid: float = 0.0  # for the last move
    moved_at: float | None = None

    def owed(self, now: float, policy: Policy) -> float:
        """What the last move cost and has not had the time to earn: a move too soon throws it away."""
        if self.moved_at is None:
            return 0.0
        return self.paid * max(0.0, 1.0 - (now - self.moved_at) / policy.horizon_s)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was found at one moment. Costs are per second; `price` and `earned` in messages."""

    time: float
    kept: float
    best: float
    change: Change
    price: float
    earned: float
    move: bool
    why: str


def decide(state: LoopState[C], demand: Demand, policy: Policy) -> tuple[LoopState[C], Decision]:
    """The next state and what was decided; on a move the candidate is the plan to install, and stays so until
    `moved` or `refused` says what came of it.

    Costs one to three continuations of the plan, and now and then a plan from nothing. Never moves on first sight
    of a demand.
    """
    earned = _earned(state, demand, policy)
    present = state.present.under(demand)
    looked = demand.time if state.looked is None else state.looked
    far = policy.reorganise_s is not None and demand.time >= looked + policy.reorganise_s
    least = policy.least(present.cost, present.size)
    # The candidate of before, with a place for what it does not know yet.
    others = [] if state.candidate is None else [state.candidate.under(demand).improved(Budget(moves=0))]
    others += [present.reorganised(least)] if far else []
    best, change = reach(present, policy, others)
    kept, cost = present.cost, best.cost
    price = policy.price(change, kept, present.size) + state.owed(demand.time, policy)
    gain = kept - cost
    why = _why(gain, kept, price, earned, state.candidate is not None, policy)
    held = best if gain > policy.threshold * kept else None
    known = replace(
        state, present=present, candidate=held, earned=earned, time=demand.time, price=price,
        looked=demand.time if far else looked,
    )  # fmt: skip
    return known, Decision(demand.time, kept, cost, change, price, earned, why == "", why or "worth moving")


def moved(state: LoopState[C]) -> LoopState[C]:
    """The candidate is in force; nothing is earned yet towards the next move."""
    assert state.candidate is not None
    return replace(state, present=state.candidate, candidate=None, earned=0.0, paid=state.price, moved_at=state.time)


def refused(state: LoopState[C]) -> LoopState[C]:
    """The candidate could not be installed: the old plan stays, and the proof begins anew."""
    return replace(state, candidate=None, earned=0.0)


def reach(present: C, policy: Policy, others: Iterable[C] = ()) -> tuple[C, Change]:
    """The best plan within reach of the present one, by what it saves over the horizon less its price.

    Of those that go on from it, with the whole budget and with parts of it as long as less is better (the first
    moves save most), and of `others`.
    """
    best, change, worth = present, Change(0, 0, 0.0), 0.0
    for found in chain(_near(present, policy), others):
        step = present.change_to(found)
        if not policy.allows(step):
            continue
        net = (present.cost - found.cost) * policy.horizon_s - policy.price(step, present.cost, present.size)
        if net > worth:
            best, change, worth = found, step, net
    return best, change


def _near(present: C, policy: Policy) -> Iterator[C]:
    """Plans that go on from the present one, with fewer and fewer moves."""
    moves = max(1, present.size // 3) if policy.moves is None else policy.moves
    least = policy.least(present.cost, present.size)
    for part in (1, 3, 9):
        found = present.improved(Budget(max(1, moves // part), policy.joins, least))
        yield found
        if found.cost > (1 - policy.threshold) * present.cost:
            return


def _earned(state: LoopState[C], demand: Demand, policy: Policy) -> float:
    """What the candidates have saved so far on demand they were not made for; never below nothing."""
    if state.candidate is None or state.time is None:
        return 0.0  # without a candidate there is nothing to believe in: what was earned before is forgotten
    unseen = demand.unseen
    kept, other = state.present.under(unseen).cost, state.candidate.under(unseen).cost
    seconds = demand.time - state.time
    return max(0.0, state.earned + (kept - other - policy.threshold * kept) * seconds)


def _why(gain: float, kept: float, price: float, earned: float, shadowed: bool, policy: Policy) -> str:
    """Why not to move; empty to move."""
    if gain <= policy.threshold * kept:
        return "nothing much better is in reach"
    if gain * policy.horizon_s <= price:
        return "moving costs more than it saves"
    if not shadowed:
        return "a better plan was found; it has yet to prove itself"
    if earned <= 0 or earned < policy.proof * price:
        return "the better plan has not earned enough yet"
    return ""
