"""What the papers say beside their figures: SemCast's channels, Crespo's worked figures, the hybrid paper's asides.

Small systems and few seeds: each is a sentence of a text, not a curve.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from narrowcast import workloads
from narrowcast.model import Interest
from narrowcast.plans.channels import api as channels
from narrowcast.plans.channels.kernels import kmeans as kernel
from narrowcast.plans.channels.methods.kmeans import MAX_PASSES, counts
from narrowcast.plans.channels.points import Points, plain
from narrowcast.plans.queries import api as queries
from narrowcast.plans.queries.problem import BoxProblem, Set, total_terms
from narrowcast.plans.queries.procedures import PROCEDURES
from narrowcast.plans.queries.sizes import Area
from narrowcast.plans.semantic.window import system
from studies import hybrid
from studies.answer_prices import AnswerPrices, worked_constants
from studies.experiment import Claim, Experiment, Point, Rows, in_readings, near
from studies.figures import Bars, Figure, Lines, curves, mean
from studies.filter_tables import covering, filter_tables
from studies.overlap import READINGS
from studies.semantic import DEGREE, PLANS, System

FEW = 3

# SemCast, figures 4 and 7 and §5: channels of the variants, and what is said of SPT and SemCast at large.

STEPS = (1.0, 2.0, 4.0, 8.0, 16.0)
ALL_ALIKE = 1.0  # every message is wanted by everybody
CONTAINED = ("common core", "circle")  # no profile contains another; some do


def _points_semantic(quick: bool) -> Sequence[Point]:
    size = {"brokers": 80, "clients": 200, "messages": 400} if quick else {"brokers": 600, "clients": 1000,
                                                                          "messages": 1000}  # fmt: skip
    levels = {name: levels[1::2] if quick else levels for name, (_, levels) in READINGS.items()}
    levels["common core"] = (*levels["common core"], ALL_ALIKE)
    given = [(reading, level, 2.0) for reading, found in levels.items() for level in found]
    given += [("circle", 0.0, x) for x in STEPS]
    return [{**size, "reading": reading, "level": level, "selectivity": x, "seed": seed}
            for reading, level, x in given for seed in range(1 if quick else FEW)]  # fmt: skip


def _run_semantic(point: Point) -> Rows:
    topology = workloads.overlay(point["brokers"], degree=DEGREE, cost="unit", seed=point["seed"])
    profiles = max(1, round(point["clients"] / point["selectivity"]))
    made = System(point, topology, profiles, point["level"], point["reading"])
    told = {"aggregated": 100 * made.aggregated_overlap(), "source": _source_table(made)}
    plans = PLANS if point["level"] > 0 else {"SemCast": "semcast"}
    return [{**row, **told} for row in [*(made.published(n, m) for n, m in plans.items()), *made.others()]]


def _source_table(made: System) -> float:
    """Profiles at a source of SemCast, which has them all, over those at the root of SPT, without covered ones."""
    found = system(*made.wants)
    if made.point["reading"] not in CONTAINED or made.point["selectivity"] != 2:
        return float("nan")
    source = int(np.bincount(made.now).argmax())
    root = filter_tables(found, source, covering(found, found.match(made.window)))[source]
    return float(found.wants.any(axis=1).sum() / max(1, root))


def _claims_semantic(rows: Rows) -> Sequence[Claim]:
    steps = [r for r in rows if r["level"] == 0]
    alike = [r for r in rows if r["level"] == ALL_ALIKE and r["reading"] == "common core"]
    rows = [r for r in rows if r["level"] > 0 and r not in alike]
    each = {name: _Levels([r for r in rows if r["reading"] == name]) for name in READINGS}
    saved = {name: [100 * (1 - v) for v in found.tree.values()] for name, found in each.items()}
    one = mean(alike, "tree", plan="SemCast")
    unicast = {x: mean(steps, "tree", plan="unicast", selectivity=x) for x in STEPS}
    source = {name: mean([r for r in rows if np.isfinite(r["source"])], "source", reading=name) for name in CONTAINED}
    return [
        in_readings("the overlap of gateways grows with the matching probability (figure 4)", "grows",
                    {name: (" → ".join(f"{v:.0f}" for v in found.shared.values()) + " %",
                            list(found.shared.values()) == sorted(found.shared.values()))
                     for name, found in each.items()}),
        in_readings("at low overlap the variants have as many channels as one another (figure 7)", "the same",
                    {name: found.alike() for name, found in each.items()},
                    "tested at the least overlap of each reading: where profiles overlap at all, merging begins"),
        in_readings("at 25–95 % the channels of SemCast-Merge stay almost constant", "almost constant",
                    {name: found.constant() for name, found in each.items()},
                    "tested: in the other readings what can be merged grows with the overlap, so that channels "
                    "become fewer"),
        in_readings("beyond 10 % SemCast and SemCast-NoiseMerge have more channels than SemCast-Merge", "more",
                    {name: found.more() for name, found in each.items()},
                    "tested: a merge without noise channels makes one channel of two, with them up to three"),
        in_readings("the difference between SPT and SemCast is always above 10 % (§5.2)", "> 10 %",
                    {name: (f"{min(v):+.0f} to {max(v):+.0f} %", min(v) > 10) for name, v in saved.items()},
                    "tested: it is largest where everybody wants the same, "
                    f"{100 * (1 - one):.0f} %, and small where few share a message"),
        Claim("where all profiles match the same messages, on one channel, SemCast is below SPT", "below",
              f"{one:.3f} of SPT on {mean(alike, 'channels', plan='SemCast'):.0f} channels", one < 1),
        Claim("a selectivity of two lies at the knees of the curves (figure 3)", "2",
              f"knee at {_knee(unicast):g} (unicast over SPT: "
              + ", ".join(f"{v:.2f} at {x:g}" for x, v in unicast.items()) + ")", _knee(unicast) == 2,
              "" if _knee(unicast) == 2 else "tested: the point furthest from the chord of the curve, which is nearly "
              f"straight up to a selectivity of {STEPS[-1]:g}, so that no knee stands out"),
        in_readings("a source of SemCast keeps about as many profiles as the root of SPT (§5.3)", "similar",
                    {name: (f"{v:.2f} times as many", near(v, 1)) for name, v in source.items()},
                    "tested: the root leaves out what another profile covers, and in the circle some do"),
    ]  # fmt: skip


class _Levels:
    """One reading: by level the overlap of gateways (%), SemCast's cost over SPT's and the channels of each variant."""

    def __init__(self, rows: Rows) -> None:
        levels = sorted({r["level"] for r in rows})
        self.shared = {level: mean(rows, "aggregated", level=level) for level in levels}
        self.tree = {level: mean(rows, "tree", plan="SemCast", level=level) for level in levels}
        self.channels = {level: {name: mean(rows, "channels", plan=name, level=level) for name in PLANS}
                         for level in levels}  # fmt: skip

    def _between(self, low: float, high: float) -> dict[float, dict[str, float]]:
        return {level: v for level, v in self.channels.items() if low <= self.shared[level] <= high}

    def alike(self) -> tuple[str, bool]:
        level = min(self.shared)
        found = self.channels[level]
        told = " / ".join(f"{v:.0f}" for v in found.values())
        return f"{told} at {self.shared[level]:.0f} %", max(found.values()) <= 1.05 * min(found.values())

    def constant(self) -> tuple[str, bool]:
        found = {level: v["SemCast-Merge"] for level, v in self._between(20, 96).items()}
        told = ", ".join(f"{v:.0f} at {self.shared[level]:.0f} %" for level, v in found.items())
        return told or "no such overlap", len(found) > 1 and max(found.values()) <= 1.2 * min(found.values())

    def more(self) -> tuple[str, bool]:
        found = {level: v for level, v in self.channels.items() if self.shared[level] > 10}
        told = ", ".join(" / ".join(f"{v[name]:.0f}" for name in PLANS) + f" at {self.shared[level]:.0f} %"
                         for level, v in found.items())  # fmt: skip
        return told or "no such overlap", bool(found) and all(
            min(v["SemCast"], v["SemCast-NoiseMerge"]) > v["SemCast-Merge"] for v in found.values())  # fmt: skip


def _knee(curve: dict[float, float]) -> float:
    """Where a curve is furthest from the straight line between its ends.

    >>> _knee({1.0: 0.0, 2.0: 8.0, 4.0: 9.0, 8.0: 10.0})
    2.0
    """
    x, y = np.array(list(curve)), np.array(list(curve.values()))
    line = y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
    return float(x[int(np.argmax(np.abs(y - line)))])


def _figures_semantic(rows: Rows) -> Sequence[Figure]:
    plans = [r for r in rows if r["plan"] in PLANS and r["level"] > 0 and r["selectivity"] == 2]
    shown = [{**r, "shared": mean(plans, "aggregated", reading=r["reading"], level=r["level"])} for r in plans]
    return [
        Lines(f"Channels, {name} (figure 7)", "aggregated overlap (%)", "channels",
              curves([r for r in shown if r["reading"] == name], "shared", "channels", "plan"), log_y=True)
        for name in READINGS
    ]  # fmt: skip


# Query merging, §5 to §7.2: the worked figures.

#: Figure 5: two queries of two units and one of one, whose bounding boxes are all the same four units.
FIGURE_5 = (((0, 2), (1, 2)), ((1, 2), (0, 2)), ((0, 1), (0, 1)))
HARD = {"K_M": 10.0, "K_T": 9.0, "K_U": 4.0}
OTHER_SETTINGS: dict[str, dict[str, Any]] = {
    "base": {}, "cf .2": {"cf": 0.2}, "sf .1": {"sf": 0.1}, "df 10": {"df": 10.0}, "df 30": {"df": 30.0},
    "K_M / 4": {"km": 0.25}, "K_M × 4": {"km": 4.0}, "K_T / 4": {"kt": 0.25}, "K_T × 4": {"kt": 4.0},
    "K_U / 4": {"ku": 0.25}, "K_U × 4": {"ku": 4.0},
}  # fmt: skip
QUERIES = 10


def _points_queries(quick: bool) -> Sequence[Point]:
    samples, blocks = (20, 1) if quick else (100, 5)
    return [{"setting": name, "seed": samples * block, "samples": samples} for name in OTHER_SETTINGS
            for block in range(blocks)]  # fmt: skip


def _run_queries(point: Point) -> Rows:
    changed = OTHER_SETTINGS[point["setting"]]
    base = queries.Constants()
    constants = queries.Constants(*(changed.get(name, 1.0) * getattr(base, name) for name in ("km", "kt", "ku")))
    thousand = queries.Constants(*(1000 * v for v in constants.folded))
    drawn = {name: v for name, v in changed.items() if name in ("cf", "sf", "df")}
    far, same, waste = [], 0, []
    for seed in range(point["seed"], point["seed"] + point["samples"]):
        boxes = workloads.rectangles(n=QUERIES, seed=seed, **drawn)
        best, pair = (queries.merge(boxes, method, constants=constants) for method in ("partition", "pair"))
        room = best.baseline - best.cost
        far.append(100 * (pair.cost - best.cost) / room if pair.cost > best.cost * (1 + 1e-9) else 0.0)
        same += queries.merge(boxes, "pair", constants=thousand).sets == pair.sets
        waste.append([_waste(boxes, constants, procedure) for procedure in ("rectangle", "polygon", "exact")])
    order = sum(a >= b - 1e-6 and b >= c - 1e-6 and abs(c) < 1e-6 for a, b, c in waste)
    wide, polygon, _ = np.mean(waste, axis=0).tolist()
    return [{**point, "distance": float(np.mean(far)), "same": same, "order": order, "wide": wide, "polygon": polygon}]


def _waste(boxes: Any, constants: queries.Constants, procedure: str) -> float:
    """What clients get and throw away when all queries are merged into one set."""
    problem = BoxProblem(boxes, constants, PROCEDURES[procedure], Area())
    return total_terms(problem, [tuple(range(len(boxes)))]).irrelevant


def _claims_queries(rows: Rows) -> Sequence[Claim]:
    prices = AnswerPrices()
    ours = [prices.server_second, prices.network_megabyte, prices.client_second, *worked_constants().folded]
    published = (0.003171, 0.0007956, 0.0000463, 0.003251, 0.000032, 0.00000463)
    exact = all(abs(a / b - 1) < 0.03 for a, b in zip(ours, published, strict=True))
    samples, same, order = (sum(r[name] for r in rows) for name in ("samples", "same", "order"))
    far = {name: mean(rows, "distance", setting=name) for name in OTHER_SETTINGS}
    worse = [name for name, v in far.items() if v > far["base"]]
    return [
        Claim("the worked constants of §7.2 (C_S, C_N, C_C, K_M, K_T, K_U)",
              ", ".join(f"{v:.4g}" for v in published), ", ".join(f"{v:.4g}" for v in ours), exact),
        _three(),
        Claim("there are 4,213,597 ways to partition 12 queries", "4,213,597", f"{_bell(12):,}", _bell(12) == 4213597),
        Claim("only the ratio of the constants decides which queries are merged", "the same plans",
              f"{same:,} of {samples:,} plans with all constants times 1,000 are the same", same == samples),
        Claim("a bounding polygon wastes less than a bounding rectangle, exact pieces nothing (figure 4)", "less, none",
              f"in {order:,} of {samples:,} sets of {QUERIES} queries; the polygon "
              f"{mean(rows, 'polygon') / mean(rows, 'wide'):.2f} of the rectangle's", order == samples),
        Claim("the base parameters are hard, and pair merging is nearer to the optimum under others",
              "nearer in almost any other", ", ".join(f"{v:.2f} % ({name})" for name, v in far.items()),
              len(worse) <= 1, "" if len(worse) <= 1 else
              f"tested by changing one parameter at a time: it is further off with {', '.join(worse)}"),
    ]  # fmt: skip


def _three() -> Claim:
    """Figure 5: the five partitions of three queries, priced."""
    boxes = np.array(FIGURE_5, np.float64)
    constants = queries.Constants(*HARD.values())
    partitions: dict[str, list[Set]] = {"apart": [(0,), (1,), (2,)], "q1 q2": [(0, 1), (2,)], "q1 q3": [(0, 2), (1,)],
                  "q2 q3": [(1, 2), (0,)], "all": [(0, 1, 2)]}  # fmt: skip
    problem = BoxProblem(boxes, constants, PROCEDURES["rectangle"], Area())
    cost = {name: total_terms(problem, sets).priced(constants) for name, sets in partitions.items()}
    told = ", ".join(f"{name} {v:g}" for name, v in cost.items())
    pairs = [cost[name] for name in ("q1 q2", "q1 q3", "q2 q3")]
    only = cost["all"] < cost["apart"] < min(pairs)
    return Claim("figure 5: merging all three queries pays, merging any two does not (K_M 10, K_T 9, K_U 4)",
                 "all cheapest, every pair above none", told, only)  # fmt: skip


def _bell(n: int) -> int:
    """The number of partitions of n things, by Bell's triangle.

    >>> [_bell(n) for n in range(1, 6)]
    [1, 2, 5, 15, 52]
    """
    row = [1]
    for _ in range(n - 1):
        below = [row[-1]]
        for value in row:
            below.append(below[-1] + value)
        row = below
    return row[-1]


def _figures_queries(rows: Rows) -> Sequence[Figure]:
    bars = {name: curves([{**r, "one": 0} for r in rows if r["setting"] == name], "one", "distance")[""]
            for name in OTHER_SETTINGS}  # fmt: skip
    return [Bars(f"Pair merging of {QUERIES} queries, other parameters", "% of what merging can save", bars)]


# The hybrid paper, §4 and §5: what it tried and does not draw, at the size of its figures.

SETTINGS = ("market", "random", "mechanical")
TRIED = ("kmeans", "two-phase", "bmd", "random")
MOVERS = ("lightest-flow", "heaviest-flow", "lightest-user", "heaviest-user")


def _points_hybrid(quick: bool) -> Sequence[Point]:
    size = {"scale": 0.1, "groups": 8} if quick else {"scale": 1.0, "groups": hybrid.GROUPS}
    return [{**size, "workload": name, "seed": seed} for name in SETTINGS for seed in range(2 if quick else 5)]


def _run_hybrid(point: Point) -> Rows:
    interest = hybrid.workload(point["workload"], point["seed"], point["scale"])
    rows = [{"what": "channelizer", "name": c, "share": 0.0,
             "value": hybrid.percent(interest, point, channelizer=c, unicast="none")[0]}
            for c in TRIED]  # fmt: skip
    rows += [{"what": "moved", "name": u, "share": s, "value": hybrid.percent(interest, point, unicast=u, cap=s)[0]}
             for u in MOVERS for s in hybrid.SHARES]  # fmt: skip
    rows += [{"what": "moved", "name": "heaviest-user, forced", "share": s,
              "value": hybrid.forced(interest, point, s)[0]} for s in hybrid.SHARES]  # fmt: skip
    rows += [{"what": "free", "name": u, "share": 1.0, "value": hybrid.percent(interest, point, unicast=u)[0]}
             for u in ("none", "reverse", "greedy-flow", "greedy-user")]  # fmt: skip
    rows += [{"what": "users", "name": u, "share": s, "value": _users_moved(interest, point, u, s)}
             for u in MOVERS[2:] for s in hybrid.SHARES[-1:]]  # fmt: skip
    rows += [{"what": "said", "name": name, "share": 0.0, "value": value}
             for name, value in _described(interest, point).items()]  # fmt: skip
    return [{**point, **row} for row in rows]


def _users_moved(interest: Interest, point: Point, unicast: str, cap: float) -> float:
    plan = channels.hybrid(interest, point["groups"], unicast=unicast, cap=cap, seed=point["seed"])
    return float(np.unique(plan.unicast[1]).size)


def _described(interest: Interest, point: Point) -> dict[str, float]:
    """Passes of K-means, what five of them reach, and who wants what."""
    points, _ = plain(interest)
    passes, cost = zip(*(_kmeans(points, point, most) for most in (MAX_PASSES, 5)), strict=True)
    audiences = {tuple(points.users[a:b]) for a, b in itertools.pairwise(points.offsets.tolist())}
    top = np.argsort(-interest.rates)[: max(1, interest.n_flows // 100)]
    wanted = interest.audience_sizes
    return {"passes": passes[0], "after five": cost[1] / cost[0], "audiences": len(audiences) / points.n,
            "top": float(wanted[top].mean() / wanted.mean())}  # fmt: skip


def _kmeans(points: Points, point: Point, most: int) -> tuple[int, float]:
    """How many passes K-means makes, and what it costs then: Σ θ|C|."""
    rng, k = np.random.default_rng(point["seed"]), point["groups"]
    cluster_of, count = rng.integers(0, k, points.n), counts(points, k)
    order = rng.permutation(points.n)
    made = kernel.kmeans(points.offsets, points.users, points.rates, order, cluster_of, count, most, 0)
    rate = np.bincount(cluster_of, points.rates, minlength=k)
    return int(made), float(rate @ np.count_nonzero(count, axis=0))


def _claims_hybrid(rows: Rows) -> Sequence[Claim]:
    def at(what: str, name: str, workload: str, **where: Any) -> float:
        return mean(rows, "value", what=what, name=name, workload=workload, **where)

    tried = {w: {c: at("channelizer", c, w) for c in TRIED} for w in SETTINGS}
    users = {s: [at("moved", name, "market", share=s) for name in ("heaviest-user", "lightest-user")]
             for s in hybrid.SHARES}  # fmt: skip
    flows = {s: [at("moved", name, "market", share=s) for name in ("lightest-flow", "heaviest-flow")]
             for s in hybrid.SHARES}  # fmt: skip
    cell = {s: [at("moved", name, "mechanical", share=s) for name in ("lightest-flow", "heaviest-user, forced")]
            for s in hybrid.SHARES}  # fmt: skip
    free = {w: {u: at("free", u, w) for u in ("none", "reverse", "greedy-flow", "greedy-user")} for w in SETTINGS}
    moved = [at("users", name, "market") for name in ("heaviest-user", "lightest-user")]
    said = {name: {w: at("said", name, w) for w in SETTINGS} for name in ("passes", "after five", "audiences", "top")}
    return [
        in_readings("K-means is the best channelizer in all settings (§6)", "best", {
                    w: (", ".join(f"{c} {v:.0f} %" for c, v in found.items()), min(found, key=found.__getitem__) ==
                        "kmeans") for w, found in tried.items()}),
        in_readings("heaviest-user is below lightest-user, on the market of the figures", "below",
                    {f"share {100 * s:.0f} %": (f"{a:.0f} against {b:.0f} %", a < b) for s, (a, b) in users.items()},
                    f"tested: within 30 % {moved[0]:.0f} heavy or {moved[1]:.0f} light users leave multicast, and each "
                    "that leaves spares it what it had to filter"),
        in_readings("lightest-flow is below heaviest-flow, on the market of the figures", "below",
                    {f"share {100 * s:.0f} %": (f"{a:.0f} against {b:.0f} %", a < b) for s, (a, b) in flows.items()}),
        in_readings("on the mechanical workload flow based heuristics are below user based ones", "below",
                    {f"share {100 * s:.0f} %": (f"{a:.0f} against {b:.0f} %", a < b) for s, (a, b) in cell.items()}),
        in_readings("both ways, from multicast and from unicast (reverse), are below multicast alone", "below", {
                    w: (f"reverse {v['reverse']:.0f} %, best greedy {min(v['greedy-flow'], v['greedy-user']):.0f} %, "
                        f"multicast alone {v['none']:.0f} %", max(v["reverse"], min(v["greedy-flow"], v["greedy-user"]))
                        < v["none"]) for w, v in free.items()}, "tested without a cap on unicast"),
        in_readings("from multicast is better than from unicast (reverse)", "better", {
                    w: (f"{min(v['greedy-flow'], v['greedy-user']):.1f} against {v['reverse']:.1f} %",
                        min(v["greedy-flow"], v["greedy-user"]) < v["reverse"]) for w, v in free.items()},
                    "tested without a cap on unicast in three settings: the way from multicast ends with the groups "
                    "that K-means made, the other chooses them anew"),
        in_readings("K-means takes about five passes on problems of thousands", "typically 5", {
                    w: (f"{said['passes'][w]:.0f} until nothing moves, after five it costs "
                        f"{said['after five'][w]:.3f} of that", near(said["passes"][w], 5)) for w in SETTINGS},
                    "tested: how far it goes depends on the matrix; what is left after five is small"),
        Claim("many topics of the mechanical workload have the same audience", "many",
              f"{100 * said['audiences']['mechanical']:.0f} % as many audiences as topics (market "
              f"{100 * said['audiences']['market']:.0f} %); ours is drawn, the trace is not public",
              said["audiences"]["mechanical"] < 0.5),
        Claim("the top flows of the market are wanted by many users", "many",
              f"{said['top']['market']:.1f} times the mean audience for the top 1 % of rates (random "
              f"{said['top']['random']:.1f})", said["top"]["market"] > 2),
    ]  # fmt: skip


def _figures_hybrid(rows: Rows) -> Sequence[Figure]:
    shown = [{**r, "at": 100 * r["share"]} for r in rows if r["what"] == "moved" and np.isfinite(r["value"])]
    return [Lines(f"What is moved, {name}", "unicast share allowed (%)", "% of perfect multicast",
                  curves([r for r in shown if r["workload"] == name], "at", "value", "name"), log_y=True)
            for name in SETTINGS]  # fmt: skip


EXPERIMENTS: dict[str, Experiment] = {
    "hybrid.text": Experiment(
        "At the size of the figures, what they do not show",
        "hybrid unicast and multicast, §4 to §6",
        _points_hybrid,
        _run_hybrid,
        _claims_hybrid,
        _figures_hybrid,
    ),
    "semantic.fig7": Experiment(
        "Channels of the variants, and what the text says",
        "semantic multicast, figures 4 and 7, §5",
        _points_semantic,
        _run_semantic,
        _claims_semantic,
        _figures_semantic,
    ),
    "queries.text": Experiment(
        "Worked figures",
        "query merging, §5 to §7",
        _points_queries,
        _run_queries,
        _claims_queries,
        _figures_queries,
    ),
}
