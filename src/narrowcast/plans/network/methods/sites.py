"""One site by itself: flows to sessions to groups or to unicast, as in channels plans, and the price of groups."""

from __future__ import annotations

from time import monotonic

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.methods.groups_first import groups_first
from narrowcast.plans.channels.methods.search import Clock, Maps, search
from narrowcast.plans.channels.points import Points, collapse
from narrowcast.plans.network.decisions import Site, SitePlan
from narrowcast.plans.network.kernels.site import SiteArrays, site_anneal

SMALL = 24  # flows up to which the exact cost itself is annealed
STEPS, RESTARTS = 1500, 6
WORK = 2e8  # of one site's search without a time limit


def solved_site(site: Site, forced: Bools, seed: int, work: float = WORK, clock: Clock | None = None) -> SitePlan:
    """The site planned alone, without the price of groups; flows `forced` to unicast are left out of multicast."""
    maps = _maps(site, forced, seed, work, clock or Clock(monotonic(), None))
    return settled(site, *maps)


def improved_site(site: Site, plan: SitePlan, forced: Bools, seed: int) -> SitePlan:
    """The same with the price of groups: fewer of them where they do not pay. Never above `plan`."""
    best = without_poor_groups(site, settled(site, np.where(forced, -1, plan.session_of), plan.group_of))
    if 0 < site.flows.size <= SMALL:
        found = annealed(site, forced, seed)
        best = min(best, found, key=lambda each: site_total(site, each))
    return best


def _maps(site: Site, forced: Bools, seed: int, work: float, clock: Clock) -> Maps:
    """The session of each flow and the group of each session, by the search of channels plans."""
    nothing = np.full(site.flows.size, -1), np.zeros(0, np.int64)
    pairs = site.can[site.host[site.user]] & ~forced[site.flow]
    if not pairs.any():
        return nothing
    wants = Interest.from_pairs(site.flow[pairs], site.user[pairs], site.rates, n_users=site.users.size)
    points, point_of = collapse(wants)
    sessions = min(site.sessions, points.n)
    groups = min(site.groups, sessions)
    # A copy by unicast is one sending; in a group it is received, filtered and sent once for all.
    prices = Prices(site.alpha, site.beta, site.send, site.send)
    apart: Maps = np.full(points.n, -1), np.arange(sessions) % groups
    start = groups_first(points, groups, sessions, np.random.default_rng([seed, site.index]))
    best = search(points, groups, sessions, prices, [apart, start, _few(points, apart, prices)], seed, clock, work=work)
    session = np.where(point_of >= 0, best[0][point_of], -1)
    return session, best[1]


def _few(points: Points, apart: Maps, prices: Prices) -> Maps:
    """One session each for the points that gain most by a group of their own, the rest by unicast."""
    n_groups = int(apart[1].max()) + 1
    gain = points.rates * (points.sizes * (prices.unicast - prices.alpha - prices.beta) - prices.send)
    best = np.argsort(-gain, kind="stable")[:n_groups]
    best = best[gain[best] > 0]
    session = np.full(points.n, -1)
    session[best] = np.arange(best.size)
    return session, apart[1]


def settled(site: Site, session_of: Ints, group_of: Ints) -> SitePlan:
    """The best choice of unicast wishes for these maps, hosts joining what pays, until no flow is sent in vain."""
    session = session_of.copy()
    while True:
        alone = _alone(site, session, group_of)
        taken = np.zeros(site.flows.size, np.bool_)
        taken[site.flow[~alone]] = True
        idle = (session >= 0) & ~taken
        if not idle.any():
            break
        session[idle] = -1
    used, session_new = np.unique(session, return_inverse=True)
    if used.size and used[0] < 0:
        used, session_new = used[1:], session_new - 1
    _groups, group_new = np.unique(group_of[used], return_inverse=True)
    return SitePlan(session_new.astype(np.int64), group_new.astype(np.int64), alone)


def _alone(site: Site, session_of: Ints, group_of: Ints) -> Bools:
    n_sessions, n_hosts = group_of.size, site.limit.size
    if n_sessions == 0:
        return np.ones(site.flow.size, np.bool_)
    n_groups = int(group_of.max()) + 1
    theta, Theta = _loads(site, session_of, group_of, n_groups)
    session = session_of[site.flow]
    inside = session >= 0
    code = site.user[inside] * n_sessions + session[inside]
    taken, at = np.unique(code, return_inverse=True)
    wanted = np.bincount(at, site.rates[site.flow[inside]], minlength=taken.size)
    user, l = np.divmod(taken, n_sessions)
    net = np.minimum(0.0, site.beta * theta[l] - site.send * wanted)
    joined, where = np.unique(user * n_groups + group_of[l], return_inverse=True)
    who, g = np.divmod(joined, n_groups)
    worth = np.minimum(0.0, site.alpha * Theta[g] + np.bincount(where, net, minlength=joined.size))
    at_host, place = np.unique(site.host[who] * n_groups + g, return_inverse=True)
    value = np.bincount(place, worth, minlength=at_host.size)
    host = at_host // n_groups
    # Of each host the groups that are worth most, as many as it may join.
    order = np.lexsort((at_host, value, host))
    first = np.searchsorted(host[order], np.arange(n_hosts))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size) - first[host[order]]
    good = (value < 0) & (rank < site.limit[host])
    takes = good[place][where] & (worth < 0)[where] & (net < 0)
    alone = np.ones(site.flow.size, np.bool_)
    alone[inside] = ~takes[at]
    return alone


def _loads(site: Site, session_of: Ints, group_of: Ints, n_groups: int) -> tuple[Floats, Floats]:
    sent = session_of >= 0
    theta: Floats = np.bincount(session_of[sent], site.rates[sent], minlength=group_of.size).astype(np.float64)
    Theta: Floats = np.bincount(group_of, theta, minlength=n_groups).astype(np.float64)
    return theta, Theta


def site_terms(site: Site, plan: SitePlan) -> dict[str, float]:
    """C1, C2, copies sent and groups used, in messages a second, from their definitions."""
    n_sessions = plan.group_of.size
    n_groups = int(plan.group_of.max(initial=-1)) + 1
    theta, Theta = _loads(site, plan.session_of, plan.group_of, n_groups)
    copies = float(site.rates[site.flow[plan.alone]].sum() + Theta.sum())
    if n_sessions == 0:
        return {"c1": 0.0, "c2": 0.0, "copies": copies, "groups": 0.0}
    by = ~plan.alone
    taken = np.unique(site.user[by] * n_sessions + plan.session_of[site.flow[by]])
    user, l = np.divmod(taken, n_sessions)
    joined = np.unique(user * n_groups + plan.group_of[l])
    return {
        "c1": float(Theta[joined % n_groups].sum()),
        "c2": float(theta[l].sum()),
        "copies": copies,
        "groups": float(np.unique(plan.group_of).size),
    }


def site_total(site: Site, plan: SitePlan) -> float:
    """What the site costs in an hour, links apart."""
    t = site_terms(site, plan)
    return site.alpha * t["c1"] + site.beta * t["c2"] + site.send * t["copies"] + site.group * t["groups"]


def without_poor_groups(site: Site, plan: SitePlan, most: int = 40) -> SitePlan:
    """Groups given up for unicast, or joined with another, as long as that lowers the whole cost of the site."""
    best, cost = plan, site_total(site, plan)
    for _ in range(most):
        n_groups = int(best.group_of.max(initial=-1)) + 1
        if n_groups == 0:
            break
        Theta = _loads(site, best.session_of, best.group_of, n_groups)[1]
        tried = []
        for g in np.argsort(Theta, kind="stable")[:6].tolist():
            gone = np.append(best.group_of == g, False)[best.session_of] & (best.session_of >= 0)
            tried.append(settled(site, np.where(gone, -1, best.session_of), best.group_of))
            if n_groups > 1:
                other = int(np.argsort(Theta, kind="stable")[1 if Theta.argmin() == g else 0])
                tried.append(settled(site, best.session_of, np.where(best.group_of == g, other, best.group_of)))
        found = min(tried, key=lambda each: site_total(site, each))
        if site_total(site, found) >= cost * (1 - 1e-12):
            break
        best, cost = found, site_total(site, found)
    return best


def site_arrays(site: Site) -> SiteArrays:
    """The site for the kernel, users sorted by host."""
    seen = np.argsort(site.host, kind="stable")
    place = np.empty(seen.size, np.int64)
    place[seen] = np.arange(seen.size)
    offsets = np.zeros(seen.size + 1, np.int64)
    np.cumsum(np.bincount(place[site.user], minlength=seen.size), out=offsets[1:])
    order = np.lexsort((site.flow, place[site.user]))
    return SiteArrays(
        offsets, site.flow[order], site.rates, site.host[seen], np.where(site.can, site.limit, 0), site.alpha,
        site.beta, site.send, site.group,
    )  # fmt: skip


def annealed(site: Site, forced: Bools, seed: int) -> SitePlan:
    """The exact cost of a small site annealed, several times over."""
    arrays = site_arrays(site)
    free = np.flatnonzero(~forced)
    sessions = min(site.sessions, free.size)
    groups = min(site.groups, sessions)
    nothing = settled(site, np.full(site.flows.size, -1), np.zeros(0, np.int64))
    if groups == 0 or not site.can.any():
        return nothing
    rng = np.random.default_rng([seed, site.index, 3])
    best, least = nothing, site_total(site, nothing)
    hot = least / max(free.size, 1)
    heats = hot * 0.5 * (1e-3) ** np.linspace(0, 1, STEPS)
    for _ in range(RESTARTS):
        session, group = np.full(site.flows.size, -1), np.arange(sessions) % groups
        site_anneal(arrays, session, group, groups, free, heats, rng.random((STEPS, 4)))
        found = settled(site, session, group)
        cost = site_total(site, found)
        if cost < least * (1 - 1e-12):
            best, least = found, cost
    return best
