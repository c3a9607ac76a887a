"""What an experiment of a paper is: points to run, rows that come of them, claims to hold them against, figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from studies.figures import Figure

Point = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Claim:
    """One published statement beside what came out here. Where they differ, `why` says what was tested about it.

    `reading` names the readings of the workload in which it appears, where the paper leaves it open and it does not
    appear in all.
    """

    says: str
    published: str
    ours: str
    agrees: bool
    why: str = ""
    reading: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment of a paper.

    `points(quick)` are the independent pieces of work, plain values only, each with its seed; `run(point)`
    gives a piece's rows, the same for the same point anywhere; `claims` and `figures` see all rows.
    One that is to run `alone` measures the machine: its points never run beside others. `needs` names packages
    beyond the studies' own and what to install for them.
    """

    title: str
    paper: str
    points: Callable[[bool], Sequence[Point]]
    run: Callable[[Point], Rows]
    claims: Callable[[Rows], Sequence[Claim]]
    figures: Callable[[Rows], Sequence[Figure]]
    alone: bool = False
    needs: Mapping[str, str] = field(default_factory=dict)

    def missing(self) -> str:
        """What has to be installed first, as a line; empty if nothing."""
        lacking = {package: extra for package, extra in self.needs.items() if find_spec(package) is None}
        return "; ".join(f"needs {package}: pip install '{extra}'" for package, extra in lacking.items())


#: A published number is met within this share of itself.
NEAR = 0.2


def near(ours: float, published: float) -> bool:
    """Whether a number is within a fifth of the published one.

    >>> near(5.2, 6.4), near(5.0, 6.4)
    (True, False)
    """
    return abs(ours - published) <= NEAR * abs(published) + 1e-12


def within(ours: float, low: float, high: float) -> bool:
    """Whether a number is in the published range, its ends taken as `near` takes a number."""
    return (1 - NEAR) * low <= ours <= (1 + NEAR) * high


def in_readings(says: str, published: str, found: Mapping[str, tuple[str, bool]], why: str = "") -> Claim:
    """A claim tried in several readings of the workload: what came out in each, and whether it holds there.

    >>> made = in_readings("it grows", "grows", {"small": ("1 to 2", True), "large": ("2 to 2", False)}, "tested: no")
    >>> made.agrees, made.reading, made.ours
    (True, 'small', '1 to 2 (small); 2 to 2 (large)')
    """
    holds = [reading for reading, (_, ok) in found.items() if ok]
    everywhere = len(holds) == len(found)
    ours = "; ".join(f"{told} ({reading})" for reading, (told, _) in found.items())
    return Claim(says, published, ours, bool(holds), "" if everywhere else why, "" if everywhere else "; ".join(holds))
