"""Hybrid unicast and multicast: the hybrid paper's study (§5, figures 4 to 9), costs as % of perfect multicast.

10,000 symbols in 10 markets, 250 users in 4 markets each, 50 groups; a random matrix; a middleware cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from narrowcast import workloads
from narrowcast.errors import InfeasibleError
from narrowcast.model import Interest
from narrowcast.plans.channels import api as channels
from studies.experiment import Claim, Experiment, Point, Rows
from studies.figures import Bars, Figure, Lines, curves, mean

PAPER = "hybrid unicast and multicast"
SEEDS = 10
GROUPS = 50
HEURISTICS = ("lightest-flow", "heaviest-user", "greedy-flow", "greedy-user")
UNCAPPED = ("unicast only", "multicast only", "one flow per group", "greedy-user, no cap")
LIGHT_IS_CHEAP = (
    "a cap on the share of unicast favours light flows: within it lightest-flow moves several times as many pairs as "
    "greedy, which takes what saves most, however much of the share that uses up"
)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)


def workload(name: str, seed: int, scale: float = 1.0) -> Interest:
    """A workload by name, smaller by `scale`; "equal rates" has the market's matrix, "heavy tail" today's volumes."""
    flows, users = int(10000 * scale), max(20, int(250 * scale))
    share = 0.01 / scale if scale < 1 else 0.01
    if name == "random":
        return workloads.random(flows, users, 0.03, seed)
    if name == "mechanical":
        return workloads.mechanical(max(16, int(79 * scale)), int(6100 * scale), seed)
    heavy = 0.8 if name == "market, heavy tail" else None
    interest = workloads.market(flows, 10, users, 4, share, seed, top_share=heavy)
    if name == "market, equal rates":
        return Interest.from_pairs(
            interest.flow_of_pair, interest.users, np.ones(interest.n_flows), n_users=interest.n_users
        )
    return interest


def _base(quick: bool, **values: Any) -> list[Point]:
    seeds, scale, groups = (2, 0.1, 8) if quick else (SEEDS, 1.0, GROUPS)
    return [{**values, "seed": seed, "scale": scale, "groups": groups} for seed in range(seeds)]


def _percent(interest: Interest, point: Point, **options: Any) -> tuple[float, float]:
    """(% of perfect multicast, unicast share); not a number where no such plan is found."""
    try:
        plan = channels.hybrid(interest, point["groups"], seed=point["seed"], **options)
    except InfeasibleError:
        return float("nan"), float("nan")
    return plan.percent_of_perfect, plan.unicast_share


# Figure 4: channelizers, without unicast.

CHANNELIZERS = ("kmeans", "two-phase", "flow-merge", "bmd", "random")


def _points_4(quick: bool) -> Sequence[Point]:
    return [p for name in ("market", "market, equal rates") for p in _base(quick, workload=name)]


def _run_4(point: Point) -> Rows:
    interest = workload(point["workload"], point["seed"], point["scale"])
    return [
        {**point, "channelizer": c, "percent": _percent(interest, point, channelizer=c, unicast="none")[0]}
        for c in CHANNELIZERS
    ]


def _claims_4(rows: Rows) -> Sequence[Claim]:
    found = []
    for name in ("market", "market, equal rates"):
        cost = {c: mean(rows, "percent", workload=name, channelizer=c) for c in CHANNELIZERS}
        told = ", ".join(f"{c} {v:.0f} %" for c, v in sorted(cost.items(), key=lambda item: item[1]))
        best = min(cost, key=cost.__getitem__)
        agrees = cost["kmeans"] <= 1.02 * cost[best]
        why = (
            ""
            if agrees
            else f"{best} goes {100 - 100 * cost[best] / cost['kmeans']:.0f} % further down in the same cost"
        )
        found.append(Claim(f"K-means is the best channelizer ({name})", "best", told, agrees, why))
    return found


def _bars(rows: Rows, by: str, title: str) -> Bars:
    return Bars(title, "% of perfect multicast", {
        name: curves([{**r, "one": 0} for r in rows if r[by] == name], "one", "percent")[""]
        for name in dict.fromkeys(r[by] for r in rows)})  # fmt: skip


def _figures_4(rows: Rows) -> Sequence[Figure]:
    return [
        _bars([r for r in rows if r["workload"] == name], "channelizer", f"Multicast only, {name}")
        for name in ("market", "market, equal rates")
    ]


# Figures 5, 8 and 9: heuristics at a given share of unicast.


def points_share(quick: bool, name: str) -> Sequence[Point]:
    return _base(quick, workload=name, shares=list(SHARES[1::2] if quick else SHARES))


def run_share(point: Point) -> Rows:
    interest = workload(point["workload"], point["seed"], point["scale"])
    free = _without_cap(interest, point)
    rows = []
    for share in point["shares"]:
        capped = {name: _percent(interest, point, unicast=name, cap=share) for name in (*HEURISTICS, "search")}
        given = {"workload": point["workload"], "seed": point["seed"], "share": share}
        rows += [{**given, "heuristic": name, "percent": percent, "unicast_share": found}
                 for name, (percent, found) in (capped | free).items()]  # fmt: skip
    return rows


def _without_cap(interest: Interest, point: Point) -> dict[str, tuple[float, float]]:
    """What does not depend on the share allowed: (% of perfect multicast, unicast share)."""
    ours = channels.hybrid(interest, point["groups"], unicast="search", seed=point["seed"])
    unicast = 2 * float(interest.rates[interest.flow_of_pair].sum())
    saved = _one_flow_per_group(interest, point["groups"])
    return {
        "multicast only": (_percent(interest, point, unicast="none")[0], 0.0),
        "search, no cap": (ours.percent_of_perfect, ours.unicast_share),
        "greedy-user, no cap": _percent(interest, point, unicast="greedy-user"),
        "unicast only": (100 * unicast / ours.cost.perfect, 1.0),
        "one flow per group": (100 * (unicast - saved) / ours.cost.perfect, float("nan")),
    }


def _one_flow_per_group(interest: Interest, groups: int) -> float:
    """What it saves against unicast to give each group to one flow, those with the largest λ(users − 1)."""
    gain = interest.rates * (interest.audience_sizes - 1)
    return float(np.sort(gain)[-groups:].clip(min=0).sum())


def _at(rows: Rows, name: str) -> dict[float, float]:
    return {s: mean(rows, "percent", heuristic=name, share=s) for s in sorted({r["share"] for r in rows})}


def _told(rows: Rows, *names: str) -> str:
    return "; ".join(
        f"{name} " + ", ".join(f"{v:.0f} % at {100 * s:.0f} %" for s, v in _at(rows, name).items()) for name in names
    )


def _ours(rows: Rows) -> Claim:
    """Search against every other way on the same seed and share."""
    worst = 0.0
    for share in sorted({r["share"] for r in rows}):
        for seed in sorted({r["seed"] for r in rows}):
            cost = {r["heuristic"]: r["percent"] for r in rows if r["share"] == share and r["seed"] == seed}
            others = [cost[h] for h in HEURISTICS if np.isfinite(cost[h])]
            worst = max(worst, cost["search"] / min([*others, cost["multicast only"]]),
                        cost["search, no cap"] / min(cost[h] for h in UNCAPPED))  # fmt: skip
    return Claim("beyond the paper: search is at or below every heuristic, pure scheme and one flow per group", "–",
                 f"at most {worst:.3f} of the best of them", worst <= 1 + 1e-9)  # fmt: skip


def _worked(rows: Rows) -> Claim:
    """The figures worked through in the specification, at 10,000 symbols and 50 groups."""
    at = {h: mean(rows, "percent", heuristic=h) for h in ("multicast only", *UNCAPPED, "search, no cap")}
    ten = {h: _at(rows, h).get(0.1, float("nan")) for h in ("greedy-user", "greedy-flow")}
    drifts = at["greedy-user, no cap"] <= 1.02 * at["unicast only"]
    told = (
        f"K-means {at['multicast only']:.0f} %, all unicast {at['unicast only']:.0f} %, at a share of 10 % greedy user "
    )
    told += f"{ten['greedy-user']:.0f} % and greedy flow {ten['greedy-flow']:.0f} %, greedy without a cap "
    told += f"{at['greedy-user, no cap']:.1f} %, one flow per group {at['one flow per group']:.1f} %, "
    told += f"search {at['search, no cap']:.1f} %"
    published = "1039, 178, 671, 774, 178.0, 163.5 %"
    order = at["one flow per group"] < at["unicast only"] < at["multicast only"]
    return Claim("without a cap greedy drifts to unicast; one flow per group is below it", published, told,
                 drifts and order)  # fmt: skip


def claims_market(rows: Rows) -> Sequence[Claim]:
    user, flow = _at(rows, "greedy-user"), _at(rows, "greedy-flow")
    light, none = _at(rows, "lightest-flow"), mean(rows, "percent", heuristic="multicast only")
    below = all(min(user[s], flow[s]) <= light[s] for s in user)
    return [
        Claim("some unicast lowers the cost", "lowers", _told(rows, "greedy-user") + f"; multicast only {none:.0f} %",
              all(v < none for v in user.values())),
        Claim("greedy user is below greedy flow on the market at equal share", "below",
              _told(rows, "greedy-user", "greedy-flow"), all(user[s] <= flow[s] for s in user)),
        Claim("greedy choices are below the simple ones", "below", _told(rows, "lightest-flow", "heaviest-user"),
              below, "" if below else LIGHT_IS_CHEAP),
        _ours(rows),
    ]  # fmt: skip


def _claims_5(rows: Rows) -> Sequence[Claim]:
    return [*claims_market(rows), _worked(rows)]


def _claims_8(rows: Rows) -> Sequence[Claim]:
    user, flow = _at(rows, "greedy-user"), _at(rows, "greedy-flow")
    none, alone = (mean(rows, "percent", heuristic=h) for h in ("multicast only", "unicast only"))
    return [
        Claim("greedy flow is below greedy user on the mechanical workload", "below",
              _told(rows, "greedy-flow", "greedy-user"), all(flow[s] <= user[s] * (1 + 1e-9) for s in flow)),
        Claim("the hybrid is below both pure schemes", "below",
              f"greedy flow {min(flow.values()):.1f} %; multicast only {none:.1f} %, unicast only {alone:.1f} %",
              min(flow.values()) < min(none, alone)),
        _ours(rows),
    ]  # fmt: skip


def figures_share(rows: Rows) -> Sequence[Figure]:
    shown = [{**r, "at": 100 * r["share"]} for r in rows if np.isfinite(r["percent"])]
    return [Lines(f"Heuristics at a given unicast share, {rows[0]['workload']}", "unicast share allowed (%)",
                  "% of perfect multicast", curves(shown, "at", "percent", "heuristic"), log_y=True)]  # fmt: skip


# Figure 6: the interest matrix matters.


def _points_6(quick: bool) -> Sequence[Point]:
    return [p for name in ("random", "market, equal rates", "market") for p in _base(quick, workload=name)]


def _run_6(point: Point) -> Rows:
    interest = workload(point["workload"], point["seed"], point["scale"])
    return [{**point, "share": s, "percent": _percent(interest, point, unicast="lightest-flow", cap=s)[0]}
            for s in (0.0, *SHARES)]  # fmt: skip


def _claims_6(rows: Rows) -> Sequence[Claim]:
    cost = {name: float(np.nanmean([r["percent"] for r in rows if r["workload"] == name]))
            for name in ("random", "market, equal rates", "market")}  # fmt: skip
    told = ", ".join(f"{name} {v:.0f} %" for name, v in cost.items())
    agrees = cost["market"] == min(cost.values())
    why = (
        ""
        if agrees
        else (
            "a percentage of perfect multicast: the market's skewed rates make that cheap, so the same waste "
            "is a larger part of it"
        )
    )
    return [Claim("lightest-flow does best on the market's matrix and rates", "best", told, agrees, why)]


def _figures_6(rows: Rows) -> Sequence[Figure]:
    shown = [{**r, "at": 100 * r["share"]} for r in rows if np.isfinite(r["percent"])]
    return [Lines("Lightest-flow on different matrices", "unicast share allowed (%)", "% of perfect multicast",
                  curves(shown, "at", "percent", "workload"), log_y=True)]  # fmt: skip


# Figure 7: scaling points.


def _points_7(quick: bool) -> Sequence[Point]:
    sizes = (1, 2) if quick else range(1, 7)
    small = 0.2 if quick else 1.0
    return [{"i": i, "flows": int(small * (4000 + 1000 * i)), "users": int(small * 50 * i) or 1, "groups": GROUPS,
             "share": 0.1, "seed": seed} for i in sizes for seed in range(2 if quick else SEEDS)]  # fmt: skip


def _run_7(point: Point) -> Rows:
    interest = workloads.market(point["flows"], 10, point["users"], 4, 0.01, point["seed"])
    return [{**point, "heuristic": h, "percent": _percent(interest, point, unicast=h, cap=point["share"])[0]}
            for h in (*HEURISTICS, "search")]  # fmt: skip


def _claims_7(rows: Rows) -> Sequence[Claim]:
    sizes = sorted({r["i"] for r in rows})
    user, flow = ({i: mean(rows, "percent", heuristic=f"greedy-{by}", i=i) for i in sizes} for by in ("user", "flow"))
    below = [i for i in sizes if user[i] <= flow[i]]
    told = (
        f"greedy user below greedy flow at i = {', '.join(map(str, below)) or 'none'} of {', '.join(map(str, sizes))}"
    )
    return [Claim("the order of the heuristics mostly stays as the system grows", "all but i=2", told,
                  len(below) >= len(sizes) - 1)]  # fmt: skip


def _figures_7(rows: Rows) -> Sequence[Figure]:
    shown = [r for r in rows if np.isfinite(r["percent"])]
    return [Lines("4000 + 1000·i flows, 50·i users, at most 10 % unicast", "i", "% of perfect multicast",
                  curves(shown, "i", "percent", "heuristic"), log_y=True)]  # fmt: skip


def _share(name: str) -> Callable[[bool], Sequence[Point]]:
    return partial(points_share, name=name)


EXPERIMENTS: dict[str, Experiment] = {
    "hybrid.fig4": Experiment("Channelizers", f"{PAPER}, figure 4", _points_4, _run_4, _claims_4, _figures_4),
    "hybrid.fig5": Experiment(
        "Heuristics on the market", f"{PAPER}, figure 5", _share("market"), run_share, _claims_5, figures_share
    ),
    "hybrid.fig6": Experiment("Interest matrices", f"{PAPER}, figure 6", _points_6, _run_6, _claims_6, _figures_6),
    "hybrid.fig7": Experiment("Growing systems", f"{PAPER}, figure 7", _points_7, _run_7, _claims_7, _figures_7),
    "hybrid.fig8": Experiment(
        "The mechanical workload",
        f"{PAPER}, figures 8 and 9",
        _share("mechanical"),
        run_share,
        _claims_8,
        figures_share,
    ),
}
