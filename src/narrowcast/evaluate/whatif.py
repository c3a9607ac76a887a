"""What-if: plan again over a grid of budgets or prices, and say where more stops paying."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite
from multiprocessing import get_context
from time import monotonic
from typing import Any, NamedTuple

from narrowcast.errors import InputError, PlanError
from narrowcast.evaluate.knee import DEFINITION, knee
from narrowcast.model.plan import Plan

Settings = Mapping[str, float]


class Outcome(NamedTuple):
    """What a plan costs, and that as a share of a yardstick: flooding's waste, perfect multicast, no filter, apart."""

    cost: float
    relative: float


def share_of(cost: float, yardstick: float) -> Outcome:
    return Outcome(float(cost), float(cost) / yardstick if yardstick > 0 else 0.0)


@dataclass(frozen=True)
class Family:
    """What can be changed in a plan. A larger budget allows all that a smaller one does; a price does not.

    `present` is what the plan itself came to, `setting` what a setting is in it (where the plan has no such bound,
    what it makes use of), `replan` plans again with some settings changed. `warm_up` plans next to nothing, since
    seconds are counted from when the planner is loaded; `keeps_time` says that the planner keeps to a time limit.
    """

    budgets: tuple[str, ...]
    prices: tuple[str, ...]
    measure: str
    yardstick: str
    present: Callable[[], Outcome]
    setting: Callable[[str], float | None]
    replan: Callable[[Settings, float | None], Outcome]
    warm_up: Callable[[], object]
    keeps_time: bool = False


#: From a plan to what can be changed in it; a function of a module, since other processes call it too.
FamilyOf = Callable[[Plan], Family]


@dataclass(frozen=True, slots=True)
class Point:
    """A setting and what came of it. `found` is the cost of planning there, `cost` the least known to be possible
    there: a plan within a smaller budget is within a larger one too. `failed` says why there is none.
    """

    settings: Mapping[str, float]
    cost: float
    relative: float
    found: float
    seconds: float
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Points over one setting or two, the plan's own setting among them, and the knee."""

    kind: str
    names: tuple[str, ...]
    measure: str
    yardstick: str
    points: tuple[Point, ...]
    present: Mapping[str, float]
    knee: Point | None

    @property
    def done(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if not point.failed)

    def as_dict(self) -> dict[str, Any]:
        """The form that the report reads: points hold settings, cost and relative alone."""
        y = self.names[1] if len(self.names) > 1 else None
        return {
            "x": self.names[0],
            "y": y,
            "kind": self.kind,
            "measure": self.measure,
            "yardstick": self.yardstick,
            "points": [_plain(point) for point in self.done],
            "present": dict(self.present),
            "knee": None if self.knee is None else _plain(self.knee),
            "how": f"The knee is {DEFINITION}." if self.knee is not None else "",
            "failed": [{**point.settings, "why": point.failed} for point in self.points if point.failed],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row per point, for a table."""
        return [{"kind": self.kind, **p.settings, "cost": p.cost, "relative": p.relative, "found": p.found,
                 "seconds": p.seconds, "knee": p is self.knee, "failed": p.failed} for p in self.points]  # fmt: skip


def sweep(
    plan: Plan,
    family_of: FamilyOf,
    settings: Mapping[str, Sequence[float]],
    *,
    time_limit: float | None = 10.0,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Plan again at every combination of one or two settings; see `narrowcast.whatif`."""
    family = family_of(plan)
    allowed = family.budgets + family.prices
    for name in settings:
        if name not in allowed:
            told = ", ".join(allowed)
            raise InputError(f"{plan.kind} plans have the settings {told}, got {name!r}", name=name, allowed=allowed)
    if not 1 <= len(settings) <= 2:
        raise InputError(f"whatif takes one or two settings, got {len(settings)}", name="settings", allowed=allowed)
    names = tuple(settings)
    values = [_values(family, name, settings[name]) for name in names]
    grid = [dict(zip(names, point, strict=True)) for point in product(*values)]
    points = _run(plan, family_of, grid, time_limit, workers, progress)
    outcome = family.present()
    present = {name: value for name in names if (value := family.setting(name)) is not None}
    own = Point(present, outcome.cost, outcome.relative, outcome.cost, 0.0)
    points = [_best(family, point, [*points, own] if len(present) == len(names) else points) for point in points]
    marked = {**present, "cost": outcome.cost, "relative": outcome.relative}
    return Sweep(
        plan.kind, names, family.measure, family.yardstick, tuple(points), marked, _knee(family, names, points)
    )


def _values(family: Family, name: str, given: Sequence[float]) -> list[float]:
    own = family.setting(name)
    for value in given:
        if not isfinite(value) or value < 0:
            raise InputError(f"{name} must be zero or more, got {value}", name=name, got=value)
    return sorted({float(value) for value in given} | ({own} if own is not None else set()))


def _best(family: Family, point: Point, known: Sequence[Point]) -> Point:
    """The point with the cheapest plan that its budgets allow, whoever found it."""
    within = [
        other
        for other in known
        if not other.failed
        and all(
            value <= point.settings[name] if name in family.budgets else value == point.settings[name]
            for name, value in other.settings.items()
        )
    ]
    if not within:
        return point
    best = min(within, key=lambda other: other.found)
    return replace(point, cost=best.found, relative=best.relative, failed="")


def _knee(family: Family, names: tuple[str, ...], points: Sequence[Point]) -> Point | None:
    """Only budgets have a knee: a price is not for us to choose."""
    done = [point for point in points if not point.failed]
    if not all(name in family.budgets for name in names) or not done:
        return None
    at = knee([[point.settings[name] for name in names] for point in done], [point.cost for point in done])
    return None if at is None else done[at]


def _run(
    plan: Plan,
    family_of: FamilyOf,
    grid: list[dict[str, float]],
    time_limit: float | None,
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> list[Point]:
    told = progress or (lambda done, total: None)
    told(0, len(grid))
    if workers <= 1 or len(grid) == 1:
        found = []
        family = family_of(plan)
        family.warm_up()
        for at, settings in enumerate(grid):
            found.append(_point(family, settings, time_limit))
            told(at + 1, len(grid))
        return found
    # A fresh process each: a fork of one that has threads may hang.
    pool = ProcessPoolExecutor(
        min(workers, len(grid)), mp_context=get_context("spawn"), initializer=_keep, initargs=(plan, family_of)
    )
    try:
        with _ctrl_c_is_ours():
            futures: list[Future[Point]] = [pool.submit(_kept_point, settings, time_limit) for settings in grid]
        for done, _ in enumerate(as_completed(futures)):
            told(done + 1, len(grid))
        return [future.result() for future in futures]
    except KeyboardInterrupt:
        for process in list((pool._processes or {}).values()):
            process.terminate()  # nobody waits for what they are planning
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _ctrl_c_is_ours() -> Iterator[None]:
    """Processes started inside do not hear Ctrl-C, not even while they are starting; we do, right after."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which they inherit
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


_FAMILY: list[Family] = []


def _keep(plan: Plan, family_of: FamilyOf) -> None:
    """In a worker: the plan comes once, not with every point. Ctrl-C is for the parent to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _FAMILY[:] = [family_of(plan)]
    _FAMILY[0].warm_up()


def _kept_point(settings: dict[str, float], time_limit: float | None) -> Point:
    return _point(_FAMILY[0], settings, time_limit)


def _point(family: Family, settings: dict[str, float], time_limit: float | None) -> Point:
    start = monotonic()
    # A planner that keeps to the limit by itself is given up only long after.
    most = time_limit * 3 + 60 if family.keeps_time and time_limit is not None else time_limit
    try:
        with _at_most(most):
            found = family.replan(settings, time_limit)
        return Point(settings, found.cost, found.relative, found.cost, monotonic() - start)
    except PlanError as error:
        return Point(settings, float("inf"), float("inf"), float("inf"), monotonic() - start, str(error))


@contextmanager
def _at_most(seconds: float | None) -> Iterator[None]:
    """Give up after so long, at the next chance that running code leaves; only the main thread can."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(*_: object) -> None:
        raise PlanError(f"planning took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _plain(point: Point) -> dict[str, float]:
    return {**point.settings, "cost": point.cost, "relative": point.relative}
