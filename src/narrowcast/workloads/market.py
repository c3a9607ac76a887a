"""Stock symbols and the people who watch them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import Floats, Ints, frozen
from narrowcast.workloads.checks import generator, number, whole
from narrowcast.workloads.checks import share as a_share
from narrowcast.workloads.draw import CHUNK, distinct_ranks, rank_weights, smallest
from narrowcast.workloads.names import tickers
from narrowcast.workloads.turn import turn


@dataclass(frozen=True, eq=False)
class MarketShape:
    """How the symbols are laid out: market after market, in each the most traded first.

    `p` is the interest in each market, `first[m]:first[m + 1]` are its symbols, `rates` sum to 1.
    """

    p: Floats
    first: Ints
    rates: Floats
    decay: float

    @property
    def sizes(self) -> Ints:
        return np.diff(self.first)

    @property
    def market_of_symbol(self) -> Ints:
        return np.repeat(np.arange(self.p.size), self.sizes)


def market(
    symbols: int = 20000,
    markets: int = 10,
    users: int = 500,
    markets_per_user: int = 2,
    share: float = 0.01,
    seed: int = 0,
    *,
    decay: float = 8.0,
    top: float = 0.1,
    top_share: float | None = None,
    names: bool = False,
) -> Interest:
    """Users of stock markets: few hot symbols wanted by many, a long tail wanted by few (Tock et al., §5.1).

    Interest in market m is p_m ∝ 1/m and its size ∝ p_m. A symbol at rank x ∈ [0, 1) of its market has
    weight e^(−decay·x) and rate λ ∝ p_m·e^(−decay·x), not divided by the market's size; rates sum to 1.
    A user picks `markets_per_user` distinct markets by p_m and round(share·size) distinct symbols in
    each by weight (which is none at all in a market of fewer than 1/(2·share) symbols).

    With decay 8 the top tenth of a market carries 55 % of it. `top_share=0.8` chooses the decay so
    that the top tenth (`top`) carries 80 %, for a heavier head. `names=True` gives symbols and users names.

    The defaults give, averaged over seeds, 67.3 symbols per user (15 to 102), a unicast multiplicity
    of 10.0 and a flooding goodput of 2.0 %; `statistics` says how these are defined. The hybrid paper
    uses `market(10000, 10, 250, 4)`.

    Time and memory are linear in the pairs chosen; the choice is exact successive sampling.

    >>> interest = market(seed=1)
    >>> interest.n_flows, interest.n_users, 30_000 < interest.n_pairs < 37_000
    (20000, 500, True)
    """
    shape = market_shape(symbols, markets, decay=decay, top=top, top_share=top_share)
    whole("users", users, low=1)
    whole("markets_per_user", markets_per_user, low=1)
    if markets_per_user > markets:
        raise InputError(
            f"markets_per_user must be at most {markets}, the number of markets, got {markets_per_user}",
            name="markets_per_user",
            allowed=f"1 to {markets}",
            got=markets_per_user,
        )
    wanted = _symbols_per_market(shape, share)
    rng = generator(seed)
    members = _members(rng, users, shape.p, markets_per_user)
    audience, offsets = _audiences(rng, shape, wanted, members)
    return Interest(
        frozen(offsets),
        frozen(audience),
        frozen(shape.rates),
        users,
        tuple(tickers(shape).tolist()) if names else None,
        tuple(f"user{u}" for u in range(users)) if names else None,
    )


def market_shape(
    symbols: int, markets: int, *, decay: float = 8.0, top: float = 0.1, top_share: float | None = None
) -> MarketShape:
    """The fixed part of the market workload: sizes and rates, without any user.

    >>> market_shape(20000, 10).sizes.tolist()[:3]
    [6828, 3414, 2276]
    """
    whole("markets", markets, low=1)
    whole("symbols", symbols, low=1, high=2**31 - 1)
    if symbols < markets:
        raise InputError(
            f"symbols must be at least {markets}, one for each market, got {symbols}",
            name="symbols",
            allowed=f"at least {markets}",
        )
    decay = number("decay", decay, low=0.0, high=500.0) if top_share is None else decay_for(top, top_share)
    p = 1.0 / np.arange(1, markets + 1)
    p /= p.sum()
    sizes = _apportion(symbols, p)
    rates = np.concatenate([p_m * rank_weights(int(n), decay) for p_m, n in zip(p, sizes, strict=True)])
    first: Ints = np.concatenate(([0], np.cumsum(sizes)))
    return MarketShape(frozen(p), frozen(first), frozen(rates / rates.sum()), decay)


def decay_for(top: float, top_share: float) -> float:
    """The decay at which the share `top` of the symbols carries the share `top_share` of the volume.

    >>> round(decay_for(0.1, 0.8), 2), round(decay_for(0.1, 0.55), 1)
    (16.09, 8.0)
    """
    a_share("top", top)
    a_share("top_share", top_share)
    if not 0 < top <= top_share < 1:
        raise InputError(
            f"top_share must be from {top} (the share of symbols) to below 1, got {top_share}",
            name="top_share",
            got=top_share,
            hint="0 < top ≤ top_share < 1",
        )
    if top == top_share:
        return 0.0
    high = -np.log1p(-top_share) / top  # without the cut at x = 1; the true decay is at or below this
    return float(brentq(lambda d: np.expm1(-d * top) / np.expm1(-d) - top_share, 1e-9, high + 1e-6))


def _apportion(total: int, p: Floats) -> Ints:
    """Whole sizes ∝ p that add up to total, none empty: largest remainders."""
    exact = p * total
    sizes: Ints = np.maximum(np.floor(exact), 1).astype(np.int64)
    while (short := total - int(sizes.sum())) > 0:
        sizes[np.argsort(sizes - exact, kind="stable")[:short]] += 1
    while (over := int(sizes.sum()) - total) > 0:
        sizes[np.argsort(-sizes, kind="stable")[:over]] -= 1
    return sizes


def _symbols_per_market(shape: MarketShape, portion: float) -> Ints:
    wanted: Ints = np.floor(a_share("share", portion) * shape.sizes + 0.5).astype(np.int64)
    return wanted


def _members(rng: np.random.Generator, users: int, p: Floats, k: int) -> list[Ints]:
    """The users of each market, ascending."""
    picked = np.concatenate(
        [smallest(rng.standard_exponential((min(1 << 16, users - u), p.size)) / p, k) for u in range(0, users, 1 << 16)]
    )
    user = np.repeat(np.arange(users), k)
    order = np.argsort(picked.ravel(), kind="stable")
    bounds = np.searchsorted(picked.ravel()[order], np.arange(1, p.size))
    return np.split(user[order], bounds)


def _audiences(rng: np.random.Generator, shape: MarketShape, wanted: Ints, members: list[Ints]) -> tuple[Ints, Ints]:
    """(users, offsets) by flow. Each market is drawn by user and turned round in one counting sort."""
    sizes = shape.sizes
    audience = np.empty(sum(int(m) * u.size for m, u in zip(wanted, members, strict=True)), np.int64)
    counts = np.zeros(shape.rates.size + 1, np.int64)
    done = 0
    for i, (m, user) in enumerate(zip(wanted, members, strict=True)):
        size = int(sizes[i])
        drawn = np.empty((user.size, int(m)), np.int32)
        for row, part in distinct_ranks(rng, user.size, int(m), size, shape.decay):
            drawn[row : row + len(part)] = part
        offsets, rows = turn(drawn, size)
        counts[shape.first[i] + 1 : shape.first[i + 1] + 1] = np.diff(offsets)
        for at in range(0, rows.size, CHUNK):  # indexing would widen all the rows at once
            part = user[rows[at : at + CHUNK]]
            audience[done : done + part.size] = part
            done += part.size
    return audience, np.cumsum(counts)
