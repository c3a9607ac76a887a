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
    """One published statement beside what came out here. Where they differ, `why` says what we know about it."""

    says: str
    published: str
    ours: str
    agrees: bool
    why: str = ""


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
