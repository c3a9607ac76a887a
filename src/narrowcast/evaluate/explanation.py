"""Why a plan does what it does: where something goes, what that wastes, and what else it could have done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from narrowcast.errors import InputError


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to do it, with the cost of the whole plan then; `barred` names the budget that forbids it."""

    what: str
    cost: float
    change: float
    barred: str = ""


@dataclass(frozen=True, slots=True)
class Unwanted:
    """What somebody is sent and did not ask for, per second (or in objects, for queries)."""

    who: str
    rate: float
    of: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All there is to say of one part of a plan. `choices` are the others, cheapest first; `cost` is the present."""

    kind: str
    subject: str
    headline: str
    facts: Mapping[str, Any]
    measure: str
    cost: float | None
    unwanted: tuple[Unwanted, ...] = ()
    choices: tuple[Choice, ...] = ()

    @property
    def next_best(self) -> Choice | None:
        """The cheapest other choice that every budget allows."""
        return next((choice for choice in self.choices if not choice.barred), None)

    def as_dict(self, most: int = 10) -> dict[str, Any]:
        """For programs; of long lists the first `most`."""
        best = self.next_best
        return {
            "kind": self.kind,
            "subject": self.subject,
            "headline": self.headline,
            "facts": dict(self.facts),
            "measure": self.measure,
            "cost": self.cost,
            "unwanted": [{"who": u.who, "of": u.of, "rate": u.rate} for u in self.unwanted[:most]],
            "n_unwanted": len(self.unwanted),
            "next_best": None if best is None else _as_dict(best),
            "choices": [_as_dict(choice) for choice in self.choices[:most]],
            "n_choices": len(self.choices),
        }


def _as_dict(choice: Choice) -> dict[str, Any]:
    return {"what": choice.what, "cost": choice.cost, "change": choice.change, "barred": choice.barred or None}


def ranked(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Cheapest first."""
    return tuple(sorted(choices, key=lambda choice: (choice.cost, choice.what)))


def worst(unwanted: Iterable[Unwanted]) -> tuple[Unwanted, ...]:
    """Those who are sent most without asking first; who is sent nothing of the kind is left out."""
    return tuple(sorted((u for u in unwanted if u.rate > 0), key=lambda u: (-u.rate, u.who, u.of)))


def place_of(what: str, name: str, names: Sequence[str]) -> int:
    """Where a name stands; one that is not there is an InputError with the nearest that is."""
    try:
        return names.index(name)
    except ValueError:
        close = get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]}?" if close else None
        raise InputError(f"the plan has no {what} {name!r}", name=what, got=name, hint=hint) from None


def several(n: int, what: str) -> str:
    """A number with its noun.

    >>> several(1, "flow"), several(2, "query"), several(2, "gateway")
    ('1 flow', '2 queries', '2 gateways')
    """
    plural = f"{what[:-1]}ies" if what.endswith("y") and what[-2] not in "aeiou" else f"{what}s"
    return f"{n:,} {what if n == 1 else plural}"
