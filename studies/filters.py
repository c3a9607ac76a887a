"""Filter placement on a multicast tree: the study of content-based multicast (§7, figures 3, 4, 6, 7 and §7.1.3).

A complete binary tree of 7 levels, one user at each of 64 leaves, 64 items.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from narrowcast import workloads
from narrowcast.model import Tree
from narrowcast.model.arrays import Ints
from narrowcast.plans.filters import api as filters
from narrowcast.workloads.tree_demand import TreeWorkload
from studies.experiment import Claim, Experiment, Point, Rows, in_readings, near, within
from studies.figures import Figure, Lines, curves, mean

PAPER = "content-based multicast"
SEEDS = 60
QUICK_SEEDS = 4


def _seeds(quick: bool, full: int = SEEDS) -> range:
    return range(QUICK_SEEDS if quick else full)


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


# Figure 3: traffic against the number of filters, every user wanting each item with the same chance.

EVERYBODY = 1.0  # wants everything


def _points_3(quick: bool) -> Sequence[Point]:
    return [{"P": P, "seed": seed} for P in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, EVERYBODY) for seed in _seeds(quick)]


def _run_3(point: Point) -> Rows:
    demand = workloads.tree_demand(p=point["P"], seed=point["seed"])
    curve = filters.place(demand.tree, demand.flow, 63).curve
    return [{**point, "k": k, "traffic": curve[k], "share": curve[k] / curve[0]} for k in range(64)]


def _claims_3(rows: Rows) -> Sequence[Claim]:
    useless = min(r["share"] for r in rows if r["P"] == EVERYBODY)
    rates = sorted({r["P"] for r in rows} - {EVERYBODY})
    cut = {P: 1 - mean(rows, "share", P=P, k=3) for P in rates}
    few = {P: v for P, v in cut.items() if P <= 0.2}
    at = {(P, k): mean(rows, "traffic", P=P, k=k) for P in rates for k in range(64)}
    part = {P: (at[P, 0] - at[P, 15]) / (at[P, 0] - at[P, 63]) for P in rates}
    steps = (0, 3, 15, 63)
    gains = {P: [(at[P, a] - at[P, b]) / (b - a) for a, b in pairwise(steps)] for P in rates}
    smaller = [P for P in rates if gains[P] == sorted(gains[P], reverse=True)]
    dip = at[rates[0], 0] / at[rates[-1], 0]
    return [
        Claim("three filters cut traffic by about 12–50 % at P below 20 %", "50 … 12 %",
              ", ".join(f"{_percent(v)} at P={P}" for P, v in few.items()),
              all(within(v, 0.12, 0.5) for v in few.values())),
        in_readings("15 filters give about 75 % of the saving of 63 over a large range of P", "75 %",
                    {f"P={P}": (_percent(v), near(v, 0.75)) for P, v in part.items()},
                    "tested: the share falls as P grows, and passes 75 % at P=.2"),
        Claim("filters have most effect where subscriptions are sparse", "falls with P",
              ", ".join(f"{_percent(v)} at P={P}" for P, v in cut.items()), list(cut.values()) == sorted(
                  cut.values(), reverse=True)),
        Claim("further filters give less and less each (1 to 3, 4 to 15, 16 to 63)", "diminishing",
              f"at {len(smaller)} of {len(rates)} values of P", len(smaller) == len(rates)),
        Claim("very sparse subscriptions lower the traffic even without filters", "a small dip",
              f"{dip:.3f} of the traffic at P={rates[-1]} at P={rates[0]}", 0.9 < dip < 1),
        Claim("where everybody wants everything (P=1) filters change nothing", "the same as basic multicast",
              f"{useless:.3f} of the traffic without filters at least", useless == 1),
    ]  # fmt: skip


def _figures_3(rows: Rows) -> Sequence[Figure]:
    shown = curves(rows, "k", "share", "P", lambda P: f"P = {P}")
    return [Lines("Traffic with k filters placed at best", "filters k", "traffic / traffic without filters", shown)]


# Figure 4: the same when neighbours want the same items.

LOCALITIES = (0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


def _points_4(quick: bool) -> Sequence[Point]:
    return [{"q": q, "seed": seed} for q in (1.0, *LOCALITIES) for seed in _seeds(quick)]


def _run_4(point: Point) -> Rows:
    demand = workloads.tree_demand(kind="locality", q=point["q"], mean=0.2, seed=point["seed"])
    curve = filters.place(demand.tree, demand.flow, 63).curve
    return [{**point, "k": k, "traffic": curve[k]} for k in range(64)]


def _claims_4(rows: Rows) -> Sequence[Claim]:
    down = {(q, k): 1 - mean(rows, "traffic", q=q, k=k) / mean(rows, "traffic", q=1.0, k=k)
            for q in LOCALITIES for k in (3, 63)}  # fmt: skip

    def told(k: int) -> str:
        return ", ".join(f"{_percent(down[q, k])} at q={q}" for q in LOCALITIES)

    def fits(k: int, value: float) -> list[float]:
        return [q for q in LOCALITIES if near(down[q, k], value)]

    points = {q: [100 * (mean(rows, "traffic", q=1.0, k=k) - mean(rows, "traffic", q=q, k=k))
                  / mean(rows, "traffic", q=1.0, k=0) for k in (3, 63)] for q in LOCALITIES}  # fmt: skip
    both = {"of the traffic at that k": {q: [100 * down[q, k] for k in (3, 63)] for q in LOCALITIES},
            "in points of the traffic without filters": points}  # fmt: skip
    together = {}
    for reading, found in both.items():
        q, best = min(found.items(), key=lambda item: abs(item[1][0] / 15 - 1) + abs(item[1][1] / 29 - 1))
        together[reading] = (f"nearest {best[0]:.0f} and {best[1]:.0f} % at q={q}",
                             near(best[0], 15) and near(best[1], 29))  # fmt: skip
    falls = all(down[q, k] > 0 for q in LOCALITIES for k in (3, 63))
    every = (1.0, *LOCALITIES)
    cost = {q: [mean(rows, "traffic", q=q, k=k) for k in range(64)] for q in every}
    gains = {q: [(cost[q][a] - cost[q][b]) / (b - a) for a, b in pairwise((0, 3, 15, 63))] for q in every}
    less = [q for q in every if cost[q] == sorted(cost[q], reverse=True)
            and gains[q] == sorted(gains[q], reverse=True)]  # fmt: skip
    return [
        Claim("at every locality more filters lower the traffic, and give less and less each", "always",
              f"at {len(less)} of {len(every)} values of q, q=1 among them", len(less) == len(every)),
        Claim("with more locality filters help more, whatever their number", "always",
              f"k=3: {told(3)}; k=63: {told(63)}", falls),
        Claim("k=3 goes about 15 % further down than without locality", "15 %", told(3), bool(fits(3, 0.15)),
              reading="q=" + ", ".join(map(str, fits(3, 0.15)))),
        Claim("k=63 goes almost 30 % further down", "almost 30 %", told(63), bool(fits(63, 0.29)),
              reading="q=" + ", ".join(map(str, fits(63, 0.29)))),
        in_readings("both at the same locality", "15 % and 30 %", together,
                    f"tested at q={', '.join(map(str, LOCALITIES))}, in two readings of the percentages; the paper "
                    "does not give its q"),
    ]  # fmt: skip


def _figures_4(rows: Rows) -> Sequence[Figure]:
    shown = curves(rows, "k", "traffic", "q", lambda q: f"q = {q}")
    return [
        Lines("Traffic with k filters when neighbours agree (mean interest .2)", "filters k", "items on links", shown)
    ]


# Section 7.1.3: demand changes batch by batch; the first placement, the heuristic and the optimum.

BATCHES = 50


def _points_713(quick: bool) -> Sequence[Point]:
    return [{"rates": rates, "seed": seed} for rates in ("steady", "fast") for seed in _seeds(quick, 20)]


def _run_713(point: Point) -> Rows:
    demand = workloads.tree_demand(p=0.3, seed=point["seed"])
    tree, k = demand.tree, 15
    first = now = filters.place(tree, demand.flow, k).filters
    nowhere = np.zeros(0, np.int64)
    drawn = _drawn(tree, k, point["seed"])
    rows: list[dict[str, Any]] = []
    phase = np.arange(demand.n_users) / demand.n_users * 2 * np.pi
    for t in range(1, BATCHES):
        chance = 0.3 + 0.28 * np.sin(t / 8 + phase) if point["rates"] == "fast" else None
        demand = demand.redraw(0.2, chance=chance, seed=1000 * point["seed"] + t)
        now = filters.improve(tree, demand.flow, now).filters
        best = filters.place(tree, demand.flow, k).traffic
        rows += [
            {**point, "batch": t, "placement": name, "ratio": filters.traffic(tree, demand.flow, chosen) / best}
            for name, chosen in (("first", first), ("heuristic", now), ("none", nowhere), *drawn.items())
        ]
    return rows


def _drawn(tree: Tree, k: int, seed: int) -> dict[str, Ints]:
    """Filters at random: on inner vertices, or anywhere, where those that fall on leaves have nothing to do."""
    rng = np.random.default_rng(seed)
    inner = np.setdiff1d(np.arange(tree.n), tree.leaves)
    places = {"random": rng.choice(inner, k, replace=False), "random, anywhere": rng.choice(tree.n, k, replace=False)}
    return {name: np.intersect1d(found, inner) for name, found in places.items()}


def _claims_713(rows: Rows) -> Sequence[Claim]:
    def at(rates: str, placement: str, batches: range) -> float:
        return float(np.mean([r["ratio"] for r in rows if r["rates"] == rates and r["placement"] == placement
                              and r["batch"] in batches]))  # fmt: skip

    steady = [at("steady", name, range(BATCHES)) for name in ("first", "heuristic")]
    early, late = at("fast", "first", range(1, 9)), at("fast", "first", range(25, BATCHES))
    follows = at("fast", "heuristic", range(BATCHES))
    none, places = at("steady", "none", range(BATCHES)), {"inner vertices": "random", "any vertex": "random, anywhere"}
    drawn = {where: at("steady", name, range(BATCHES)) for where, name in places.items()}
    share = {where: (none - v) / (none - 1) for where, v in drawn.items()}
    return [
        Claim("20 % of users redraw per batch: first ≈ heuristic ≈ optimal", "equal",
              f"first {steady[0]:.3f}, heuristic {steady[1]:.3f} of optimal", max(steady) < 1.03),
        Claim("with fast-changing rates the first placement gets worse and worse", "grows",
              f"{early:.3f} of optimal in batches 1–8, {late:.3f} from 25 on", late > early > 1),
        Claim("the heuristic stays near the optimum", "near", f"{follows:.3f} of optimal", follows < 1.02),
        in_readings("filters placed at random are very inefficient", "very inefficient",
                    {f"on {where}": (f"{drawn[where]:.3f} of optimal: they save {_percent(v)} of what the best "
                                     "placement saves", v < 0.5) for where, v in share.items()},
                    "tested: half of all vertices are leaves, where a filter has nothing to do; where only inner "
                    "vertices are drawn, 15 of 63 at random save more than half of what 15 can save"),
    ]  # fmt: skip


def _figures_713(rows: Rows) -> Sequence[Figure]:
    return [
        Lines(f"Traffic over the optimum, {rates} rates, k = 15", "batch", "traffic / optimal",
              curves([r for r in rows if r["rates"] == rates and r["placement"] != "none"], "batch", "ratio",
                     "placement"))
        for rates in ("steady", "fast")
    ]  # fmt: skip


# Figure 6: commuters change sides.

MIDDLE = 4  # the level of 16 vertices


def _points_6(quick: bool) -> Sequence[Point]:
    return [{"q": q, "seed": seed} for q in (0.0, 0.05, 0.1, 0.15, 0.2) for seed in _seeds(quick, 30)]


def _run_6(point: Point) -> Rows:
    before = workloads.tree_demand(kind="commuters", p=0.3, q=point["q"], seed=point["seed"])
    after = before.commute(32)
    curve = filters.place(after.tree, after.flow, 63).curve
    rows = []
    for k in (1, 2, 3, 4, 6, 8, 12, 15, 16, 17, 20, 24, 31, 40, 48, 63):
        chosen = filters.place(before.tree, before.flow, k).filters
        static = filters.traffic(after.tree, after.flow, chosen)
        middle = float(np.mean(before.tree.depth[chosen] == MIDDLE))
        left = _on_the_left(before.tree, chosen)
        steps = [filters.traffic(after.tree, after.flow, now) / curve[k] for now in _followed(after, chosen)]
        rows.append({**point, "k": k, "saved": 1 - curve[k] / static, "left": left, "middle": middle,
                     "at_once": steps[0], "in_the_end": steps[-1], "batches": len(steps)})  # fmt: skip
    return rows


def _followed(demand: TreeWorkload, chosen: Ints) -> list[Ints]:
    """The heuristic's placements, batch by batch with one move each, until it has nothing more to move."""
    found = [filters.improve(demand.tree, demand.flow, chosen).filters]
    while len(found) < BATCHES:
        now = filters.improve(demand.tree, demand.flow, found[-1]).filters
        if set(now.tolist()) == set(found[-1].tolist()):
            break
        found.append(now)
    return found


def _on_the_left(tree: Tree, chosen: Ints) -> float:
    """The share of filters in the half where the commuters' home is, of those below the root."""
    above = np.arange(tree.n)
    while (deep := tree.depth[above] > 1).any():
        above = np.where(deep, tree.parents[above], above)
    below = above[chosen][chosen != tree.root]
    return float(np.mean(below == above[tree.leaves[0]])) if below.size else float("nan")


def _claims_6(rows: Rows) -> Sequence[Claim]:
    at = {k: mean(rows, "saved", q=0.2, k=k) for k in (2, 3, 4, 6, 8, 12, 16, 24, 31)}
    few, later = max(at[k] for k in (2, 3, 4, 6, 8)), max(at[24], at[31])
    skew = {q: float(np.mean([mean(rows, "saved", q=q, k=k) for k in (1, 2, 3, 4, 6, 8)]))
            for q in sorted({r["q"] for r in rows})}  # fmt: skip
    left = {k: float(np.nanmean([r["left"] for r in rows if r["q"] == 0.2 and r["k"] == k])) for k in (2, 3, 4, 6, 8)}
    middle = {q: mean(rows, "middle", q=q, k=16) for q in skew}
    poor = {k: [mean(rows, name, q=0.2, k=k) for name in ("at_once", "in_the_end", "batches")] for k in (3, 8, 15)}
    return [
        Claim("without skew moving them changes little, and the more skew the more it saves", "grows from about 0",
              ", ".join(f"{_percent(v)} at q={q}" for q, v in skew.items()),
              skew[0.0] < 0.02 and list(skew.values()) == sorted(skew.values())),
        Claim("moving the filters with the commuters saves much for small k", "large", f"up to {_percent(few)} (q=.2)",
              few > 0.1),
        Claim("with a dip near k=16", "dip",
              f"{_percent(at[16])} at 16; {_percent(few)} before, {_percent(later)} after",
              at[16] < few and at[16] < later),
        Claim("as few filters are mostly placed in the left subtree, where users want much, at first", "mostly",
              ", ".join(f"{_percent(v)} with {k}" for k, v in left.items()) + " (q=.2)", min(left.values()) > 0.5,
              "" if min(left.values()) > 0.5 else "tested: the best placement has them in the right subtree, where "
              "users want little and filters save most (figure 3); what moving them saves is the same either way"),
        in_readings("and 16 at the middle level of the tree", "at the middle level",
                    {f"q={q}": (f"{_percent(v)} of them", v >= 0.9) for q, v in middle.items()},
                    "tested: the more skew, the more of the 16 leave that level for the half that wants little"),
        Claim("in extreme cases the heuristic performs poorly (§8)", "poorly", "; ".join(
              f"k={k}: {a:.2f} of optimal after one move, {b:.2f} when it stops, {n:.0f} batches later"
              for k, (a, b, n) in poor.items()) + " (all 32 commuters at once, q=.2)",
              max(a for a, _, _ in poor.values()) > 1.1),
    ]  # fmt: skip


def _figures_6(rows: Rows) -> Sequence[Figure]:
    shown = curves(rows, "k", "saved", "q", lambda q: f"q = {q}")
    return [Lines("Saved by moving filters with 32 commuters", "filters k", "1 − mobile / static traffic", shown)]


# Figure 7: delay.

FILTER_DELAYS = (100, 400, 1000, 2000)
LINK_DELAY = 100  # the paper gives none; with 1 per item no filter would pay from F = 400 on


def _points_7(quick: bool) -> Sequence[Point]:
    rates = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)
    return [{"P": P, "seed": seed} for P in rates for seed in _seeds(quick, 20)]


def _run_7(point: Point) -> Rows:
    demand = workloads.tree_demand(p=point["P"], seed=point["seed"])
    rows = []
    for F in FILTER_DELAYS:
        best = filters.place_for_delay(demand.tree, demand.flow, filter_delay=F, link_delay=LINK_DELAY)
        none = filters.delay(demand.tree, demand.flow, [], filter_delay=F, link_delay=LINK_DELAY)
        rows.append({**point, "F": F, "delay": best.delay / 64, "none": none / 64, "filters": best.filters.size})
    return rows


def _claims_7(rows: Rows) -> Sequence[Claim]:
    rates = sorted({r["P"] for r in rows})
    counts = {F: [mean(rows, "filters", P=P, F=F) for P in rates] for F in FILTER_DELAYS}
    peak = {F: rates[int(np.argmax(found))] for F, found in counts.items()}
    rises = all(0 < int(np.argmax(found)) < len(rates) - 1 for found in counts.values())
    cut = {F: 1 - mean(rows, "delay", P=0.1, F=F) / mean(rows, "none", P=0.1, F=F) for F in FILTER_DELAYS}
    low = {F: mean(rows, "filters", P=0.05, F=F) for F in FILTER_DELAYS}
    less = {F: [1 - mean(rows, "delay", P=P, F=F) / mean(rows, "none", P=P, F=F) for P in rates]
            for F in (FILTER_DELAYS[0], FILTER_DELAYS[-1])}  # fmt: skip
    return [
        Claim("the number of filters rises with P, then falls", "rises, then falls",
              "; ".join(f"F={F}: most at P={P}" for F, P in peak.items()), rises),
        in_readings("with its peak at about P = .3", "about .3",
                    {f"F / link delay = {F / LINK_DELAY:g}": (f"peak at {P}", abs(P - 0.3) <= 0.05)
                     for F, P in peak.items()},
                    "tested: the peak moves up with what a filter costs against a link; the paper does not give its "
                    "link delay"),
        Claim("filters are very effective against delay", "very", ", ".join(
              f"{_percent(v)} less at F={F}" for F, v in cut.items()) + " (P=.1)", min(cut.values()) > 0.1),
        Claim("with sparse subscriptions quick filters are placed in far greater numbers than slow ones", "many more",
              ", ".join(f"{v:.0f} at F={F}" for F, v in low.items()) + " (P=.05)", low[100] >= 2 * low[2000]),
        Claim("as with traffic, filters do most against delay where subscriptions are sparse", "similar",
              "; ".join(f"F={F}: " + ", ".join(f"{_percent(v)} at P={P}" for P, v in zip(rates, found, strict=True))
                        for F, found in less.items()),
              all(found == sorted(found, reverse=True) for found in less.values())),
    ]  # fmt: skip


def _figures_7(rows: Rows) -> Sequence[Figure]:
    delays = curves(rows, "P", "delay", "F", lambda F: f"F = {F}") | {"no filter": curves(rows, "P", "none")[""]}
    counts = curves(rows, "P", "filters", "F", lambda F: f"F = {F}")
    return [
        Lines("Mean delay at best", "P", f"delay (link delay {LINK_DELAY} per item)", delays),
        Lines("Filters in the best placement", "P", "filters", counts),
    ]


EXPERIMENTS: dict[str, Experiment] = {
    "filters.fig3": Experiment(
        "Traffic against filters", f"{PAPER}, figure 3", _points_3, _run_3, _claims_3, _figures_3
    ),
    "filters.fig4": Experiment("Locality of interest", f"{PAPER}, figure 4", _points_4, _run_4, _claims_4, _figures_4),
    "filters.sec713": Experiment(
        "Demand that changes", f"{PAPER}, §7.1.3", _points_713, _run_713, _claims_713, _figures_713
    ),
    "filters.fig6": Experiment("Commuters", f"{PAPER}, figure 6", _points_6, _run_6, _claims_6, _figures_6),
    "filters.fig7": Experiment("Delay", f"{PAPER}, figure 7", _points_7, _run_7, _claims_7, _figures_7),
}
