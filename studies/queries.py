"""Query merging: the study of Crespo et al. (§7.3, figures 9 to 16), 2,000 samples for its 10,000.

Base values: cf .8, sf .3, df 100, 100 queries with sides of 20 to 40, a database of 100×100 up to 12
queries and 400×400 beyond, 50 starts. A point is a block of samples, so that the grid stays small.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from narrowcast import workloads
from narrowcast.plans.queries import api as queries
from narrowcast.plans.queries.boxes import Floats
from narrowcast.plans.queries.constants import KM, KT, KU
from narrowcast.plans.queries.methods.cluster import Cluster, clusters
from narrowcast.plans.queries.methods.directed import Directed, ends
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.problem import BoxProblem, MergeAmounts, MergeProblem, Set, total_terms
from narrowcast.plans.queries.procedures import Rectangle
from narrowcast.plans.queries.sizes import Area
from studies.experiment import Claim, Experiment, Point, Rows, in_readings, near, within
from studies.figures import Figure, Lines, curves, mean

PAPER = "query merging"
SAMPLES = 2_000
QUICK = 40
BLOCK = 100
SAME = 1e-9  # relative: two costs that differ less are one


def _blocks(quick: bool, **values: Any) -> list[Point]:
    n, block = (QUICK, 20) if quick else (SAMPLES, BLOCK)
    return [{**values, "seed": start, "samples": min(block, n - start)} for start in range(0, n, block)]


def _seeds(point: Point) -> range:
    return range(point["seed"], point["seed"] + point["samples"])


# Figure 9: how the constants shape the plan.

BASE = {"km": KM, "kt": KT, "ku": KU}
FACTORS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
DENSITIES = (1.0, 0.3, 0.1)  # objects per unit of area, which the paper does not give


def _points_9(quick: bool) -> Sequence[Point]:
    return [p for density in DENSITIES for name in ("km", "kt", "ku") for f in FACTORS
            for p in _blocks(quick, constant=name, factor=f, density=density)]  # fmt: skip


def _run_9(point: Point) -> Rows:
    # Fewer objects in an area are as many as before at a lower price each.
    base = BASE | {name: point["density"] * BASE[name] for name in ("kt", "ku")}
    constants = queries.Constants(**base | {point["constant"]: point["factor"] * base[point["constant"]]})
    sets = [len(queries.merge(workloads.rectangles(seed=seed), constants=constants).sets) for seed in _seeds(point)]
    return [{**point, "merged": float(np.mean(sets))}]


def _claims_9(rows: Rows) -> Sequence[Claim]:
    by = {density: [r for r in rows if r["density"] == density] for density in DENSITIES}
    rows = by[DENSITIES[0]]
    ends = {name: (mean(rows, "merged", constant=name, factor=FACTORS[0]),
                   mean(rows, "merged", constant=name, factor=FACTORS[-1])) for name in ("km", "kt", "ku")}  # fmt: skip

    def told(name: str) -> str:
        return f"{ends[name][0]:.0f} → {ends[name][1]:.0f} sets as {name} goes from ×{FACTORS[0]} to ×{FACTORS[-1]}"

    kt = [mean(rows, "merged", constant="kt", factor=f) for f in FACTORS]
    early, late = abs(kt[1] - kt[0]), abs(kt[-1] - kt[-2])
    return [
        Claim("dearer channels (K_M) merge more queries", "falls", told("km"), ends["km"][0] > ends["km"][1]),
        Claim("dearer irrelevant data (K_U) merges fewer", "rises", told("ku"), ends["ku"][0] < ends["ku"][1]),
        in_readings("K_M matters most", "most", {f"{density:g} objects per unit of area": _moved(part)
                                                 for density, part in by.items()},
                    f"tested from ×{FACTORS[0]} to ×{FACTORS[-1]} of each constant: the more objects an area has, the "
                    "less the price of a channel weighs beside them; the paper does not say how many"),
        Claim("for high K_T a change of it has no great influence", "little",
              f"{late:.1f} sets from ×{FACTORS[-2]} to ×{FACTORS[-1]}, {early:.1f} from ×{FACTORS[0]} to ×{FACTORS[1]}",
              late < early),
    ]  # fmt: skip


def _moved(rows: Rows) -> tuple[str, bool]:
    """By how many sets each constant moves the plan, and whether K_M does most."""
    moved = {name: abs(mean(rows, "merged", constant=name, factor=FACTORS[0])
                       - mean(rows, "merged", constant=name, factor=FACTORS[-1])) for name in BASE}  # fmt: skip
    told = ", ".join(f"{name} by {v:.0f} sets" for name, v in moved.items())
    return told, max(moved, key=moved.__getitem__) == "km"


def _figures_9(rows: Rows) -> Sequence[Figure]:
    rows = [r for r in rows if r["density"] == DENSITIES[0]]
    names = {"km": "K_M", "kt": "K_T", "ku": "K_U"}
    shown = curves(rows, "factor", "merged", "constant", names.__getitem__)
    return [Lines("Merged queries as one constant changes", "constant / base value", "merged queries of 100", shown)]


# Figure 10: directed search against pair merging.


STARTS = (3, 10, 25, 50)


def _points_10(quick: bool) -> Sequence[Point]:
    return [p for n in (12, 25, 50) for p in _blocks(quick, n=n)]


def _run_10(point: Point) -> Rows:
    better, worse = np.zeros(len(STARTS)), np.zeros(len(STARTS), np.int64)
    for seed in _seeds(point):
        pair, directed = _pair_and_directed(workloads.rectangles(n=point["n"], seed=seed), seed)
        better += directed < pair * (1 - SAME)
        worse += directed > pair * (1 + SAME)
    return [{**point, "starts": starts, "better": 100 * b / point["samples"], "worse": w}
            for starts, b, w in zip(STARTS, better.tolist(), worse.tolist(), strict=True)]  # fmt: skip


def _pair_and_directed(boxes: Floats, seed: int) -> tuple[float, Floats]:
    """What pair merging costs, and directed search with each number of starts: the fewer are the first of the most."""
    problem = BoxProblem(boxes, queries.Constants(), Rectangle(), Area())
    plan = Pair()(problem, seed=seed)
    pair = total_terms(problem, plan).priced(problem.constants)
    costs = [cost for _, cost in ends(problem, plan, STARTS[-1], seed)]
    return pair, np.array([min(costs[:starts]) for starts in STARTS])


def _claims_10(rows: Rows) -> Sequence[Claim]:
    better = {n: mean(rows, "better", n=n, starts=50) for n in (12, 25, 50)}
    worse = sum(row["worse"] for row in rows)
    steps = {n: [mean(rows, "better", n=n, starts=starts) for starts in STARTS] for n in better}
    return [
        in_readings("directed search beats pair merging in about 20 % of runs at 50 starts", "about 20 %",
                    {f"{n} queries": (f"{v:.0f} %", near(v, 20)) for n, v in better.items()},
                    "tested with 12, 25 and 50 queries, as the paper does not say with how many: 12 lie in its small "
                    "database, the others in its large one, where there is less to merge until they are many"),
        Claim("and the more starts the more often", "grows", "; ".join(
              f"{n} queries: " + ", ".join(f"{v:.0f} %" for v in found) for n, found in steps.items())
              + f" at {', '.join(map(str, STARTS))} starts", all(found == sorted(found) for found in steps.values())),
        Claim("and never loses", "never", f"{worse} of {sum(row['samples'] for row in rows)} runs", worse == 0),
    ]  # fmt: skip


def _figures_10(rows: Rows) -> Sequence[Figure]:
    shown = curves(rows, "starts", "better", "n", lambda n: f"{n} queries")
    return [Lines("Runs in which directed search beats pair merging", "starts", "% of runs", shown)]


# Figures 11 to 13: how far from the best partition.


def _points_11(quick: bool) -> Sequence[Point]:
    return [p for n in (range(3, 13, 3) if quick else range(2, 13)) for p in _blocks(quick, n=n)]


def _run_11(point: Point) -> Rows:
    far: dict[str, list[float]] = {"pair": [], "directed": []}
    for seed in _seeds(point):
        boxes = workloads.rectangles(n=point["n"], seed=seed)
        best = queries.merge(boxes, "partition")
        for method, found in far.items():
            plan = queries.merge(boxes, method, seed=seed)
            room = best.baseline - best.cost
            found.append(100 * (plan.cost - best.cost) / room if plan.cost > best.cost * (1 + SAME) else 0.0)
    return [
        {**point, "method": name, "optimal": 100 * float(np.mean(np.array(found) == 0)),
         "distance": float(np.mean(found)), "missed": sum(d > 0 for d in found), "missed_by": float(sum(found))}
        for name, found in far.items()
    ]  # fmt: skip


def _claims_11(rows: Rows) -> Sequence[Claim]:
    sizes = sorted({row["n"] for row in rows})
    far = {m: max(mean(rows, "distance", method=m, n=n) for n in sizes) for m in ("pair", "directed")}
    small = max(mean(rows, "distance", method="directed", n=n) for n in sizes if n <= 7)
    found = {m: [mean(rows, "optimal", method=m, n=n) for n in sizes] for m in ("pair", "directed")}
    missed = {n: by / times for n in sizes
              if (times := sum(r["missed"] for r in rows if r["n"] == n and r["method"] == "pair"))
              and (by := sum(r["missed_by"] for r in rows if r["n"] == n and r["method"] == "pair"))}  # fmt: skip
    return [
        Claim("pair merging stays within a few percent of the optimum", "a few %", f"at most {far['pair']:.2f} %",
              far["pair"] < 5),
        Claim("so does directed search", "a few %", f"at most {far['directed']:.3f} %", far["directed"] < 2),
        Claim("directed search is optimal up to 7 queries", "0", f"{small:.4f} %", small < 0.01),
        Claim("the optimum is found less often with more queries, by directed search more often", "falls; more often",
              f"pair {_ends(found['pair'])} %, directed {_ends(found['directed'])} % of runs from {sizes[0]} to "
              f"{sizes[-1]} queries", all(a >= b - 0.5 for m in found for a, b in itertools.pairwise(found[m]))
              and all(d >= p for p, d in zip(found["pair"], found["directed"], strict=True))),
        Claim("the distance of pair merging grows with the queries", "grows",
              f"{_ends([mean(rows, 'distance', method='pair', n=n) for n in sizes], 2)} %",
              mean(rows, "distance", method="pair", n=sizes[-1]) > mean(rows, "distance", method="pair", n=sizes[0])),
        Claim("where pair merging misses the optimum, it misses it by less the more queries there are", "falls",
              ", ".join(f"{v:.1f} % with {n}" for n, v in missed.items()),
              len(missed) > 1 and list(missed.values())[-1] < 0.5 * max(missed.values())),
    ]  # fmt: skip


def _ends(values: Sequence[float], digits: int = 0) -> str:
    return f"{values[0]:.{digits}f} → {values[-1]:.{digits}f}"


def _figures_11(rows: Rows) -> Sequence[Figure]:
    missed = [{**row, "by": row["missed_by"] / row["missed"]} for row in rows if row["missed"]]
    return [
        Lines("Optimum found (figure 11)", "queries", "% of runs", curves(rows, "n", "optimal", "method")),
        Lines("Distance to the optimum (figure 12)", "queries", "% of what merging can save",
              curves(rows, "n", "distance", "method")),
        Lines("Distance where it was missed (figure 13)", "queries", "% of what merging can save",
              curves(missed, "n", "by", "method")),
    ]  # fmt: skip


# Figures 14 and 15: cost and work of the algorithms as queries grow.

SIZES = (12, 25, 50, 100)


def _points_14(quick: bool) -> Sequence[Point]:
    return [p for n in (SIZES[:3] if quick else SIZES) for p in _blocks(quick, n=n)]


def _run_14(point: Point) -> Rows:
    rows: list[dict[str, Any]] = []
    for seed in _seeds(point):
        boxes = workloads.rectangles(n=point["n"], space=400, seed=seed)
        plans = {name: queries.merge(boxes, name, seed=seed) for name in ("pair", "directed", "cluster")}
        costs = {name: plan.cost for name, plan in plans.items()} | {"no merging": plans["pair"].baseline}
        costs["cluster by gain"] = queries.merge(boxes, "cluster", metric="gain", seed=seed).cost
        rows.append(costs)
    return [{**point, "method": name, "cost": float(np.mean([row[name] for row in rows]))} for name in rows[0]]


def _claims_14(rows: Rows) -> Sequence[Claim]:
    n = max(row["n"] for row in rows)
    cost = {name: mean(rows, "cost", method=name, n=n) for name in ("pair", "directed", "cluster", "cluster by gain")}
    loss = {name: 100 * (cost[name] / cost["pair"] - 1) for name in cost}
    sizes = sorted({row["n"] for row in rows})
    saved = {n: 1 - mean(rows, "cost", method="pair", n=n) / mean(rows, "cost", method="no merging", n=n)
             for n in sizes}  # fmt: skip
    return [
        Claim("merging saves, and the more the more queries there are", "grows",
              ", ".join(f"{100 * v:.0f} % with {n}" for n, v in saved.items()),
              list(saved.values()) == sorted(saved.values())),
        Claim("clustering loses little against pair merging", "little",
              f"{loss['cluster']:+.2f} % at {n} queries (by gain {loss['cluster by gain']:+.2f} %)",
              loss["cluster"] < 2),
        Claim("directed search and pair merging cost nearly the same", "one line",
              f"directed {loss['directed']:+.2f} %", abs(loss["directed"]) < 2),
    ]  # fmt: skip


def _figures_14(rows: Rows) -> Sequence[Figure]:
    return [Lines("Cost after merging", "queries", "cost (dollars)", curves(rows, "n", "cost", "method"))]


@dataclass
class _Counted:
    """A problem that counts how many unions are priced: the work of an algorithm, the same on every machine."""

    problem: BoxProblem
    count: list[int] = field(default_factory=lambda: [0])
    constants: queries.Constants = field(init=False)

    def __post_init__(self) -> None:
        self.constants = self.problem.constants

    @property
    def n(self) -> int:
        return self.problem.n

    def terms(self, members: Set) -> MergeAmounts:
        return self.problem.terms(members)

    def cost(self, members: Set) -> float:
        return self.problem.cost(members)

    def joined(self, members: Set, others: Sequence[Set]) -> Floats:
        self.count[0] += len(others)
        return self.problem.joined(members, others)

    def subset(self, members: Sequence[int]) -> MergeProblem:
        return _Counted(self.problem.subset(members), self.count)


WIDE = (800, 1600)  # databases with more room between queries


def _points_15(quick: bool) -> Sequence[Point]:
    sizes = SIZES[:2] if quick else SIZES
    given = [(n, 400) for n in sizes] + [(sizes[-1], side) for side in WIDE]
    return [{"n": n, "database": side, "seed": seed} for n, side in given for seed in range(2 if quick else 20)]


def _run_15(point: Point) -> Rows:
    boxes = workloads.rectangles(n=point["n"], space=point["database"], seed=point["seed"])
    rows = []
    for name, method in (("pair", Pair()), ("directed, 10 starts", Directed(10)), ("cluster", Cluster()),
                         ("cluster by gain", Cluster(metric="gain"))):  # fmt: skip
        counted = _Counted(BoxProblem(boxes, queries.Constants(), Rectangle(), Area()))
        method(counted, seed=point["seed"])
        rows.append({**point, "method": name, "operations": counted.count[0]})
    largest = max(map(len, clusters(BoxProblem(boxes, queries.Constants(), Rectangle(), Area()))))
    return [{**row, "largest": largest} for row in rows]


def _claims_15(rows: Rows) -> Sequence[Claim]:
    n = max(row["n"] for row in rows)
    found = {}
    for side in (400, *WIDE):
        part = [row for row in rows if row["n"] == n and row["database"] == side]
        work = {name: mean(part, "operations", method=name) for name in ("pair", "cluster", "cluster by gain")}
        times, gain = work["pair"] / work["cluster"], work["pair"] / work["cluster by gain"]
        told = f"{times:.1f}× fewer unions priced at {n} queries, the largest cluster of {mean(part, 'largest'):.0f}"
        found[f"database {side}×{side}"] = f"{told}; by gain {gain:.1f}×", times >= 2
    rows = [row for row in rows if row["database"] == 400]
    sizes = sorted({row["n"] for row in rows})
    power = {name: _power(sizes, [mean(rows, "operations", method=name, n=each) for each in sizes])
             for name in ("pair", "directed, 10 starts")}  # fmt: skip
    return [
        in_readings("clustering is much faster", "much", found,
                    "tested: at the base constants the published test keeps nearly all queries of the 400×400 database "
                    "in one cluster, of which the paper says itself that it does not help; in a wider one clusters are "
                    "small. Asking whether the two alone gain makes them small everywhere"),
        Claim("the work of pair merging and directed search grows with |Q|²", "2", ", ".join(
              f"{name} with |Q| to the {v:.1f}" for name, v in power.items()), all(near(v, 2) for v in power.values()),
              "" if all(near(v, 2) for v in power.values()) else "tested: unions priced, fitted on a logarithmic scale "
              f"from {sizes[0]} to {sizes[-1]} queries; a descent of directed search also has more steps to go"),
    ]  # fmt: skip


def _power(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of a curve on logarithmic scales.

    >>> round(_power([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _figures_15(rows: Rows) -> Sequence[Figure]:
    shown = curves([row for row in rows if row["database"] == 400], "n", "operations", "method")
    return [Lines("Work of the algorithms", "queries", "unions priced", shown, log_y=True)]


# Figure 16: when merging pays; the published database is 400×400.

DATABASES = (400, 200, 100)


def _points_16(quick: bool) -> Sequence[Point]:
    return [p for side in DATABASES for cf in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
            for p in _blocks(quick, cf=cf, database=side)]  # fmt: skip


def _run_16(point: Point) -> Rows:
    drawn = (workloads.rectangles(cf=point["cf"], space=point["database"], seed=seed) for seed in _seeds(point))
    plans = [queries.merge(boxes) for boxes in drawn]
    before, after = float(np.mean([p.baseline for p in plans])), float(np.mean([p.cost for p in plans]))
    return [{**point, "before": before, "after": after, "saved": 1 - after / before}]


def _claims_16(rows: Rows) -> Sequence[Claim]:
    large = [row for row in rows if row["database"] == DATABASES[0]]
    saved = {cf: mean(large, "saved", cf=cf) for cf in sorted({row["cf"] for row in rows})}
    values = list(saved.values())
    dollars = {}
    for side in DATABASES:
        ends = [mean(rows, "before", cf=cf, database=side) - mean(rows, "after", cf=cf, database=side)
                for cf in (0.0, 1.0)]  # fmt: skip
        told = f"{ends[0]:.2f} → {ends[1]:.2f} from cf=0 to 1"
        dollars[f"database {side}×{side}"] = told, all(within(v, 1, 2) for v in ends)
    return [
        in_readings("merging saves 1 to 2 dollars each time with 100 queries", "1 to 2", dollars,
                    "tested: in the published database of 400×400 it saves less; it is the smaller the database, the "
                    "more queries overlap"),
        Claim("merging saves even without clusters (cf=0)", "saves", f"{100 * saved[0.0]:.1f} %", saved[0.0] > 0),
        Claim("and more as queries crowd together", "grows",
              ", ".join(f"{100 * v:.0f} % at {cf}" for cf, v in saved.items()), values == sorted(values)),
    ]  # fmt: skip


def _figures_16(rows: Rows) -> Sequence[Figure]:
    rows = [row for row in rows if row["database"] == DATABASES[0]]
    before, after = curves(rows, "cf", "before")[""], curves(rows, "cf", "after")[""]
    return [Lines("Cost before and after pair merging", "share of queries in clusters (cf)", "cost (dollars)",
                  {"before": before, "after": after})]  # fmt: skip


EXPERIMENTS: dict[str, Experiment] = {
    "queries.fig9": Experiment("The constants", f"{PAPER}, figure 9", _points_9, _run_9, _claims_9, _figures_9),
    "queries.fig10": Experiment(
        "Directed search and pair merging", f"{PAPER}, figure 10", _points_10, _run_10, _claims_10, _figures_10
    ),
    "queries.fig11": Experiment(
        "Distance to the optimum", f"{PAPER}, figures 11 to 13", _points_11, _run_11, _claims_11, _figures_11
    ),
    "queries.fig14": Experiment(
        "Cost as queries grow", f"{PAPER}, figure 14", _points_14, _run_14, _claims_14, _figures_14
    ),
    "queries.fig15": Experiment(
        "Work of the algorithms", f"{PAPER}, figure 15", _points_15, _run_15, _claims_15, _figures_15
    ),
    "queries.fig16": Experiment(
        "When merging pays", f"{PAPER}, figure 16", _points_16, _run_16, _claims_16, _figures_16
    ),
}
