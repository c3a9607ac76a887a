"""Flows, sessions, groups: the study of Tock et al. (§5: figures 4, 6, 7 and the figures of §5.3).

20,000 symbols in 10 markets, 500 users, each interested in two markets and 1 % of the symbols of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from narrowcast import workloads
from narrowcast.model import Interest
from narrowcast.plans.channels import api as channels
from narrowcast.workloads.market import market_shape
from narrowcast.workloads.statistics import statistics
from studies.experiment import Claim, Experiment, Point, Rows, in_readings, near
from studies.figures import Figure, Lines, Matrix, curves, mean

PAPER = "flows, sessions, groups"
SEEDS = 10


def market(point: Point) -> Interest:
    """The study's market; `tail` "heavy" is today's: a tenth of the symbols carries 80 % of the volume."""
    symbols, users, share = (2000, 60, 0.05) if point.get("small") else (20000, 500, 0.01)
    top = 0.8 if point.get("tail") == "heavy" else None
    return workloads.market(symbols, users=users, share=share, seed=point["seed"], top_share=top)


def _seeds(quick: bool) -> list[Point]:
    return [{"seed": seed, "small": quick} for seed in range(3 if quick else SEEDS)]


# Figure 4 and §5.3: what the workload looks like.

BINS = 120


def _points_4(quick: bool) -> Sequence[Point]:
    return [{"seed": seed} for seed in range(SEEDS)]


def _run_4(point: Point) -> Rows:
    interest = market(point)
    found = statistics(interest)
    row = {
        **point,
        "symbols_per_user": found.flows_per_user_mean,
        "fewest": found.flows_per_user_min,
        "most": found.flows_per_user_max,
        "multiplicity": found.multiplicity,
        "goodput": found.goodput,
        "top": float(_top_share(interest)),
    }
    if point["seed"] == 0:
        flow = interest.flow_of_pair * BINS // interest.n_flows
        user = interest.users * (BINS // 2) // interest.n_users
        picture = np.zeros((BINS // 2, BINS))
        np.add.at(picture, (user, flow), 1.0)
        rates = np.bincount(np.arange(interest.n_flows) * BINS // interest.n_flows, interest.rates, minlength=BINS)
        row |= {"picture": picture.ravel().tolist(), "rates": rates.tolist()}
    else:
        row |= {"picture": [], "rates": []}
    return [row]


def _top_share(interest: Interest) -> float:
    """The part of a market's volume that a tenth of its symbols carries, on average over the ten markets."""
    first = market_shape(interest.n_flows, 10).first.tolist()
    each = [np.sort(interest.rates[low:high])[::-1] for low, high in pairwise(first)]
    return float(np.mean([rates[: round(rates.size / 10)].sum() / rates.sum() for rates in each]))


def _claims_4(rows: Rows) -> Sequence[Claim]:
    per_user, times, good, top = (mean(rows, name) for name in ("symbols_per_user", "multiplicity", "goodput", "top"))
    fewest, most = min(r["fewest"] for r in rows), max(r["most"] for r in rows)
    return [
        Claim("symbols per user", "68.85 (15 to 102)", f"{per_user:.1f} ({fewest} to {most})",
              abs(per_user - 68.85) < 4),
        Claim("unicast would send each message so many times", "10.1", f"{times:.2f}", abs(times - 10.1) < 0.5),
        Claim("a tenth of a market's symbols carries about 55 % of its volume", "55 %", f"{100 * top:.0f} %",
              abs(top - 0.55) < 0.03),
        Claim("goodput of flooding", "2 %", f"{100 * good:.2f} %", abs(good - 0.02) < 0.002),
    ]  # fmt: skip


def _figures_4(rows: Rows) -> Sequence[Figure]:
    shown = next(row for row in rows if row["picture"])
    picture = np.array(shown["picture"]).reshape(BINS // 2, BINS)
    rate = [{"symbol": (i + 0.5) / BINS, "rate": r * BINS} for i, r in enumerate(shown["rates"])]
    return [
        Matrix(
            "Who wants what (seed 0)",
            f"symbols, by market and rank ({BINS} bins)",
            f"users ({BINS // 2} bins)",
            np.log1p(picture),
            "log(1 + wishes)",
        ),
        Lines(
            "Message rate",
            "symbols, by market and rank (1 = all)",
            "rate / mean",
            curves(rate, "symbol", "rate"),
            log_y=True,
        ),
    ]


# Figure 6: the hierarchy pays, for three prices of the two filters.

PRICES = ((0.2, 1.8), (1.0, 1.0), (1.4, 0.6))


def _points_6(quick: bool) -> Sequence[Point]:
    groups, factors = ((5, 10), (1, 2, 4)) if quick else ((10, 20, 50, 100), (1, 2, 4, 8, 16))
    given = [("gf", prices, seed) for seed in _seeds(quick) for prices in PRICES]
    given += [(method, PRICES[1], seed) for seed in _seeds(quick)[:3] for method in ("sf", "it", "rra")]
    return [{**seed, "method": method, "groups": g, "sessions": f * g, "alpha": a, "beta": b}
            for method, (a, b), seed in given for g in groups for f in factors]  # fmt: skip


def _run_6(point: Point) -> Rows:
    budgets, prices = (point["groups"], point["sessions"]), (point["alpha"], point["beta"])
    plan = channels.plan(market(point), *budgets, point["method"], *prices, seed=point["seed"])
    return [{**point, "relative": plan.cost.relative}]


def _falls(rows: Rows, along: str, *fixed: str) -> tuple[int, int]:
    """In how many of the curves each next step costs no more."""
    found = _means(rows, along, *fixed)
    return sum(all(b <= a * 1.005 for a, b in pairwise(c)) for c in found), len(found)


def _claims_6(rows: Rows) -> Sequence[Claim]:
    others = {m: [r for r in rows if r["method"] == m] for m in ("sf", "it", "rra")}
    alike = {m: [_falls(part, "sessions", "groups"), _falls(part, "groups", "sessions")] for m, part in others.items()}
    rows = [r for r in rows if r["method"] == "gf"]
    by_sessions = _falls(rows, "sessions", "groups", "alpha")
    by_groups = _falls(rows, "groups", "sessions", "alpha")
    gains = {a: _gain(rows, a) for a, _ in PRICES}
    twice = {a: _twice([row for row in rows if row["alpha"] == a]) for a, _ in PRICES}
    return [
        Claim("more sessions help at equal groups", "always", f"in {by_sessions[0]} of {by_sessions[1]} curves",
              by_sessions[0] >= 0.9 * by_sessions[1]),
        Claim("more groups help at equal sessions", "always", f"in {by_groups[0]} of {by_groups[1]} curves",
              by_groups[0] >= 0.9 * by_groups[1]),
        Claim("sessions help more when flow filtering is dear (β > α)", "β≫α most, β<α least",
              ", ".join(f"{100 * v:.0f} % saved at α={a}" for a, v in gains.items()),
              gains[0.2] > gains[1.0] > gains[1.4]),
        Claim("with β ≫ α adding sessions is almost as effective as adding groups", "almost as effective at α=.2",
              ", ".join(f"twice the sessions save {100 * v:.0f} % of what twice the groups save at α={a}"
                        for a, v in twice.items()), near(twice[0.2], 1) or twice[0.2] > 1,
              "" if near(twice[0.2], 1) or twice[0.2] > 1 else "tested by doubling one from the same start"),
        Claim("in the typical case (α = β) the hierarchy lowers the load significantly", "significantly",
              f"the most sessions save {100 * gains[1.0]:.0f} % against one session per group", gains[1.0] >= 0.2),
        in_readings("the other variants show a similar pattern", "similar", {
                    m: (f"more sessions help in {s[0]} of {s[1]} curves, more groups in {g[0]} of {g[1]}",
                        s[0] >= 0.9 * s[1] and g[0] >= 0.9 * g[1]) for m, (s, g) in alike.items()},
                    "tested with 3 seeds at α = β = 1"),
    ]  # fmt: skip


def _means(rows: Rows, along: str, *fixed: str) -> list[list[float]]:
    kept = sorted({tuple(row[name] for name in fixed) for row in rows})
    found = []
    for values in kept:
        part = [row for row in rows if tuple(row[name] for name in fixed) == values]
        steps = sorted({row[along] for row in part})
        if len(steps) > 1:
            found.append([mean(part, "relative", **{along: step}) for step in steps])
    return found


def _gain(rows: Rows, alpha: float) -> float:
    """What the most sessions save against one session per group, on average over groups."""
    part = [row for row in rows if row["alpha"] == alpha]
    saved = []
    for g in sorted({row["groups"] for row in part}):
        most = max(row["sessions"] for row in part if row["groups"] == g)
        flat, deep = (mean(part, "relative", groups=g, sessions=s) for s in (g, most))
        saved.append(1 - deep / flat)
    return float(np.mean(saved))


def _twice(rows: Rows) -> float:
    """What twice the sessions save over what twice the groups save, where all three plans were made."""
    cost = {at: mean(rows, "relative", groups=at[0], sessions=at[1])
            for at in {(row["groups"], row["sessions"]) for row in rows}}  # fmt: skip
    saved = [(cost[g, s] - cost[g, 2 * s], cost[g, s] - cost[2 * g, s]) for g, s in cost
             if (g, 2 * s) in cost and (2 * g, s) in cost]  # fmt: skip
    return float(sum(by for by, _ in saved) / sum(by for _, by in saved))


def _figures_6(rows: Rows) -> Sequence[Figure]:
    shown = {a: [r for r in rows if r["alpha"] == a and r["method"] == "gf"] for a, _ in PRICES}
    return [
        Lines(f"GF, α = {a}, β = {b}", "sessions", "filtering cost / flooding's",
              curves(shown[a], "sessions", "relative", "groups", lambda g: f"{g} groups"), log_x=True)
        for a, b in PRICES
    ]  # fmt: skip


# Figure 7: the variants, and ours; also on a heavier-tailed market.

METHODS = ("sf", "gf", "it", "rra", "search")
OTHERS = ((10, 20, 100), (200, 500, 1000))  # numbers of groups, each with so many sessions and with ten times its own


def _points_7(quick: bool) -> Sequence[Point]:
    groups, steps, others, many = (10, (10, 40), (5,), (100,)) if quick else (50, (50, 200, 500), *OTHERS)
    given = [("published", groups, s) for s in steps] + [("heavy", groups, steps[-1])]
    given += [("published", g, s) for g in others for s in dict.fromkeys((10 * g, *many))]
    return [{**seed, "tail": tail, "groups": g, "sessions": s} for seed in _seeds(quick)[:5] for tail, g, s in given]


def _run_7(point: Point) -> Rows:
    interest, budgets = market(point), (point["groups"], point["sessions"])
    methods = METHODS if point["groups"] in (10 if point["small"] else 50,) else METHODS[:4]
    costs = {method: channels.plan(interest, *budgets, method, seed=point["seed"]).cost for method in methods}
    return [{**point, "method": method, "relative": cost.relative} for method, cost in costs.items()]


def _claims_7(rows: Rows) -> Sequence[Claim]:
    main = next(row["groups"] for row in rows if row["method"] == "search")
    others = [row for row in rows if row["groups"] != main]
    rows = [row for row in rows if row["groups"] == main]
    part = [row for row in rows if row["tail"] == "published"]
    most, least = max(r["sessions"] for r in part), min(r["sessions"] for r in part)
    at = {m: mean(part, "relative", method=m, sessions=most) for m in METHODS}
    few = [mean(part, "relative", method=m, sessions=least) for m in METHODS[:4]]
    told = ", ".join(f"{m} {100 * v:.1f} %" for m, v in at.items())
    ours = {tail: _below_best([r for r in rows if r["tail"] == tail]) for tail in ("published", "heavy")}
    worse = sum(v < -1e-9 for found in ours.values() for v in found.values())
    return [
        Claim("with few sessions the variants hardly differ", "hardly",
              f"{100 * min(few):.1f} to {100 * max(few):.1f} % at {least} sessions", max(few) < 1.15 * min(few)),
        Claim("with many sessions GF is clearly below SF", "clearly", told, at["gf"] < 0.95 * at["sf"]),
        Claim("IT and RRA are best, with minor differences", "best", told, max(at["it"], at["rra"]) <= at["gf"]),
        in_readings("the same relations with 10, 20 and 100 groups", "the same", _same(others),
                    "tested: with 10 groups GF passes SF between 100 and 200 sessions and is clearly below it at 500; "
                    "the paper does not say how many it took"),
        Claim("beyond the paper: search below the best of the four", "–", "; ".join(
              f"{tail} market: " + ", ".join(f"{100 * v:.1f} % at {s}" for s, v in found.items())
              for tail, found in ours.items()), worse == 0),
    ]  # fmt: skip


def _same(rows: Rows) -> dict[str, tuple[str, bool]]:
    """By how many sessions: the variants at each number of groups, and whether they relate as at 50."""
    at = {(r["groups"], r["sessions"]) for r in rows}
    ten = {g: 10 * g for g in sorted({g for g, _ in at})}
    readings = {"ten times as many sessions": ten}
    readings |= {f"{s:,} sessions": dict.fromkeys(ten, s) for s in sorted({s for _, s in at})
                 if all((g, s) in at for g in ten)}  # fmt: skip
    found = {}
    for name, sessions in readings.items():
        cost = {g: {m: mean(rows, "relative", method=m, groups=g, sessions=s) for m in METHODS[:4]}
                for g, s in sessions.items()}  # fmt: skip
        told = "; ".join(f"{g} groups: " + ", ".join(f"{m} {100 * v:.1f} %" for m, v in each.items())
                         for g, each in cost.items())  # fmt: skip
        found[name] = (
            told,
            all(max(each["it"], each["rra"]) <= each["gf"] < 0.95 * each["sf"] for each in cost.values()),
        )
    return found


def _below_best(rows: Rows, of: Sequence[str] = METHODS[:4]) -> dict[int, float]:
    """By sessions: how far search is below the best of these variants, seed by seed, on average."""
    found: dict[int, list[float]] = {}
    for s in sorted({row["sessions"] for row in rows}):
        for seed in sorted({row["seed"] for row in rows}):
            cost = {r["method"]: r["relative"] for r in rows if r["sessions"] == s and r["seed"] == seed}
            best = min(cost[m] for m in of)
            found.setdefault(s, []).append(1 - cost["search"] / best if best else 0.0)
    return {s: float(np.mean(values)) for s, values in found.items()}


def _figures_7(rows: Rows) -> Sequence[Figure]:
    groups = next(row["groups"] for row in rows if row["method"] == "search")
    rows = [row for row in rows if row["groups"] == groups]
    return [
        Lines(f"{groups} groups, α = β = 1, {tail} market", "sessions", "filtering cost / flooding's",
              curves([r for r in rows if r["tail"] == tail], "sessions", "relative", "method"))
        for tail in ("published", "heavy")
    ]  # fmt: skip


EXPERIMENTS: dict[str, Experiment] = {
    "channels.fig4": Experiment("The market", f"{PAPER}, figure 4 and §5.3", _points_4, _run_4, _claims_4, _figures_4),
    "channels.fig6": Experiment("Groups and sessions", f"{PAPER}, figure 6", _points_6, _run_6, _claims_6, _figures_6),
    "channels.fig7": Experiment(
        "The variants, and ours", f"{PAPER}, figure 7", _points_7, _run_7, _claims_7, _figures_7
    ),
}
