"""People who are at home by night and at work by day: interest that swings across sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Floats, Ints, frozen
from narrowcast.model.demand import Demand
from narrowcast.workloads.checks import generator, number, whole
from narrowcast.workloads.checks import share as a_share
from narrowcast.workloads.draw import rank_weights, smallest

HOUR = 3600.0
SLOT = 900.0  # seconds for which the weather of a workload stays the same
QUIET = 0.15  # of a site's topics while nobody is there, as a share of its busiest hour


@dataclass(frozen=True, eq=False)
class Commuter:
    """A day, repeated for ever: who wants what at any time, and how fast each topic is.

    `at(seconds)` is the demand at that time of the day: a function of the seed and the time alone. The pairs
    of a user and a topic come in three lists: those of home, of work, and those wanted all day.
    """

    user: Ints
    flow: Ints
    place: Ints  # of each pair: 0 home, 1 work, 2 anywhere
    site_of_flow: Ints
    base: Floats  # messages a second of each flow while everybody is at its site
    leaves: Floats  # seconds after midnight, by user; who works by night leaves later than they return
    returns: Floats
    home: Ints
    work: Ints
    n_users: int
    noise: float
    churn: float
    seed: int
    flow_names: tuple[str, ...] = field(repr=False)
    user_names: tuple[str, ...] = field(repr=False)

    def away(self, seconds: float) -> Bools:
        """Who is at work at this time."""
        now = seconds % (24 * HOUR)
        left, back = self.leaves <= now, self.returns <= now
        found: Bools = np.where(self.leaves <= self.returns, left & ~back, left | ~back)
        return found

    def at(self, seconds: float) -> Interest:
        """Who wants what at this time, and the rates, noise included."""
        slot = int(seconds // SLOT)
        rng = np.random.default_rng([self.seed, 1, slot])
        away = self.away(seconds)[self.user]
        here = (self.place == 2) | (away == (self.place == 1))
        here &= rng.random(here.size) >= self.churn
        rates = self.rates(seconds) * np.exp(self.noise * rng.standard_normal(self.base.size) - self.noise**2 / 2)
        return Interest.from_pairs(
            self.flow[here], self.user[here], rates, flow_names=self.flow_names, user_names=self.user_names
        )

    def rates(self, seconds: float) -> Floats:
        """Rates without noise: a site speaks as much as there are people to hear it, and never quite falls silent."""
        away = self.away(seconds)
        n_sites = int(self.site_of_flow.max()) + 1
        there = np.bincount(np.where(away, self.work, self.home), minlength=n_sites)
        most = np.bincount(self.home, minlength=n_sites) + np.bincount(self.work, minlength=n_sites)
        level = QUIET + (1 - QUIET) * there / np.maximum(most, 1)
        found: Floats = self.base * np.where(self.site_of_flow < n_sites - 1, level[self.site_of_flow], 1.0)
        return found


def commuter(
    users: int = 300,
    sites: int = 8,
    topics: int = 40,
    seed: int = 0,
    *,
    wishes: int = 10,
    swing: float = 1.0,
    nights: float = 0.1,
    noise: float = 0.1,
    churn: float = 0.02,
    rate: float = 1000.0,
) -> Commuter:
    """Half of the sites are homes, half are workplaces; everybody lives in one and a share `swing` works in another.

    Wherever somebody is, they want `wishes` of the site's `topics`, always the same, popular ones first; and a
    few of the topics that belong to no site all day. People leave around 8:00 and are back around 17:30, but for
    the share `nights`, who do it the other way round. With `swing=0` everybody stays: a stationary workload.
    `noise` is the standard deviation of the logarithm of a rate from quarter to quarter of an hour, `churn` the
    share of wishes that are not there in any of them. `rate` is messages a second if all topics are at their
    busiest.

    >>> day = commuter(users=50, sites=4, topics=10, wishes=3)
    >>> night, noon = day.at(3 * 3600), day.at(12 * 3600)
    >>> night.n_flows, night.n_users, int(day.away(3 * 3600).sum()), int(day.away(12 * 3600).sum())
    (50, 50, 5, 45)
    """
    whole("users", users, low=1)
    whole("sites", sites, low=2)
    whole("topics", topics, low=1)
    whole("wishes", wishes, low=1, high=topics)
    for name, value in (("swing", swing), ("nights", nights), ("churn", churn)):
        a_share(name, value)
    number("noise", noise, low=0.0, high=3.0)
    number("rate", rate, low=0.0)
    if churn == 1.0:
        raise InputError("churn must be below 1, got 1: otherwise nobody has a wish", name="churn", got=churn)
    rng = generator(seed)
    homes = sites - sites // 2
    home = rng.choice(homes, users, p=_shares(homes))
    work = homes + rng.choice(sites - homes, users, p=_shares(sites - homes))
    leaves, returns = _hours(rng, users, swing, nights)
    general = max(1, wishes // 4)
    parts = [
        _wanted(rng, home, topics, wishes),
        _wanted(rng, work, topics, wishes),
        _wanted(rng, np.full(users, sites), topics, general),
    ]
    site = np.repeat(np.arange(sites + 1), topics)
    base = np.concatenate([rng.permutation(rank_weights(topics, 3.0)) for _ in range(sites + 1)])
    return Commuter(
        user=frozen(np.concatenate([np.repeat(np.arange(users), part.shape[1]) for part in parts])),
        flow=frozen(np.concatenate([part.ravel() for part in parts])),
        place=frozen(np.repeat([0, 1, 2], [part.size for part in parts])),
        site_of_flow=frozen(site),
        base=frozen(base * rate / base.sum()),
        leaves=frozen(leaves),
        returns=frozen(returns),
        home=frozen(home),
        work=frozen(work),
        n_users=users,
        noise=noise,
        churn=churn,
        seed=seed,
        flow_names=tuple(f"{'all' if s == sites else f's{s}'}/{t}" for s in range(sites + 1) for t in range(topics)),
        user_names=tuple(f"user{u}" for u in range(users)),
    )


def _hours(rng: np.random.Generator, users: int, swing: float, nights: float) -> tuple[Floats, Floats]:
    """When everybody leaves home and returns, in seconds after midnight; never for those who stay."""
    out, back = rng.normal(8.0, 0.7, users) * HOUR, rng.normal(17.5, 0.9, users) * HOUR
    by_night = rng.permutation(users) < round(nights * users)
    stays = rng.permutation(users) >= round(swing * users)
    out, back = np.where(by_night, back, out), np.where(by_night, out, back)
    return np.where(stays, np.inf, out), np.where(stays, np.inf, back)


def _shares(n: int) -> Floats:
    """Of the people at n sites: the first has most."""
    weight = 1.0 / np.arange(2, n + 2)
    found: Floats = weight / weight.sum()
    return found


def _wanted(rng: np.random.Generator, site: Ints, topics: int, n: int) -> Ints:
    """n distinct topics of each user's site as flows, those of low number more often."""
    keys = rng.standard_exponential((site.size, topics)) / rank_weights(topics, 2.5)
    found: Ints = site[:, None] * topics + np.sort(smallest(keys, n), axis=1)
    return found


def watched(day: Commuter, hours: float = 24.0, *, half_life_s: float = 1800.0, seed: int = 0) -> Iterator[Demand]:
    """A day as statistics would show it: smoothed counts at the end of every quarter of an hour."""
    smooth, weight = np.zeros(day.base.size), 0.0
    for slot in range(round(hours * 3600 / SLOT)):
        true = day.at(slot * SLOT)
        rng = np.random.default_rng([seed, 2, slot])
        counted = rng.poisson(true.rates * SLOT) / SLOT
        fade = 0.5 ** (SLOT / half_life_s)
        smooth, weight = fade * smooth + (1 - fade) * counted, fade * weight + 1 - fade
        yield Demand(_with(true, smooth / weight), ("topic",), (slot + 1) * SLOT, _with(true, counted))


def _with(interest: Interest, rates: Floats) -> Interest:
    return Interest(interest.offsets, interest.users, rates, interest.n_users, interest.flow_names, interest.user_names)
