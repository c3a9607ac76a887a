"""Search of the two-level cost itself: flows to sessions and sessions to groups at once.

Letters as in Tock et al. 2005: λ rate of a flow, V its audience, θ and C rate and users of a session,
Θ and P those of a group. Putting flow k into session l of group g adds
`β[θ_l(|V|−|C_l∩V|) + λ(|C_l|+|V|−|C_l∩V|)] + α[Θ_g(|V|−|P_g∩V|) + λ(|P_g|+|V|−|P_g∩V|)]`.
A flow may also go by unicast (session −1) where `Prices.unicast` is finite.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.channels.kernels.kmeans import insert, overlaps, remove

Array = np.ndarray[Any, Any]


# The Gumbel table is cut off here: one draw in a thousand.
MOST_NOISE = 7.0
TABLE = 1 << 13  # its length: small enough to stay near the processor


class Prices(NamedTuple):
    """What a message costs: per receiver's session filter, flow filter, per sending, per unicast copy."""

    alpha: float
    beta: float
    send: float
    unicast: float


class TwoLevelState(NamedTuple):
    """A plan and everything a move needs to know about it, kept up to date."""

    session_of: Array  # of each flow
    group_of: Array  # of each session
    session_count: Array  # users × sessions: how many flows of the session the user wants
    session_member: Array  # the same as 0/1 bytes
    group_count: Array  # users × groups: how many flows of the group the user wants
    group_member: Array
    theta: Array
    session_size: Array  # as floats: they only meet rates
    session_flows: Array  # how many flows a session holds
    Theta: Array
    group_size: Array
    group_flows: Array
    used: Array  # one number: how many sessions hold a flow


class Scratch(NamedTuple):
    """Room for one pricing of all sessions."""

    narrow: Array
    inter: Array
    group_narrow: Array
    group_inter: Array
    group_price: Array
    price: Array
    slots: Array  # sessions that hold a flow, group after group
    first: Array  # where each group's begin in `slots`
    spare: Array  # one number: a session that holds none, −1 without any


@jit
def scratch(n: int, m: int) -> Scratch:
    return Scratch(
        np.zeros(n, np.uint8),
        np.zeros(n, np.int32),
        np.zeros(m, np.uint8),
        np.zeros(m, np.int32),
        np.zeros(m),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(m + 1, np.int64),
        np.full(1, -1),
    )


@jit
def fill(offsets: Array, users: Array, rates: Array, s: TwoLevelState) -> None:
    """Bring every count of an all-zero state in line with its two maps."""
    for k in range(rates.size):
        if s.session_of[k] >= 0:
            put(s, users[offsets[k] : offsets[k + 1]], rates[k], s.session_of[k])


@jit
def put(s: TwoLevelState, V: Array, rate: float, l: int) -> None:
    """Add a flow to session l."""
    g = s.group_of[l]
    insert(s.session_count, s.session_member, s.session_size, V, l, 1)
    insert(s.group_count, s.group_member, s.group_size, V, g, 1)
    s.theta[l] += rate
    s.Theta[g] += rate
    s.used[0] += s.session_flows[l] == 0
    s.session_flows[l] += 1
    s.group_flows[g] += 1


@jit
def take(s: TwoLevelState, V: Array, rate: float, l: int) -> None:
    """Take a flow out of session l. What is empty has rate 0 exactly."""
    g = s.group_of[l]
    remove(s.session_count, s.session_member, s.session_size, V, l, 1)
    remove(s.group_count, s.group_member, s.group_size, V, g, 1)
    s.session_flows[l] -= 1
    s.used[0] -= s.session_flows[l] == 0
    s.group_flows[g] -= 1
    s.theta[l] = s.theta[l] - rate if s.session_flows[l] > 0 else 0.0
    s.Theta[g] = s.Theta[g] - rate if s.group_flows[g] > 0 else 0.0


@jit
def price_groups(s: TwoLevelState, V: Array, rate: float, p: Prices, w: Scratch) -> int:
    """What each group would ask for a flow in no session (w.group_price); returns the cheapest group."""
    # A float, so that the loops below are all in floats and run several groups at a time.
    v = float(V.size)
    overlaps(s.group_member, V, w.group_narrow, w.group_inter)
    for g in range(s.Theta.size):
        missing = v - w.group_inter[g]
        w.group_price[g] = p.alpha * (s.Theta[g] * missing + rate * (s.group_size[g] + missing))
    return int(np.argmin(w.group_price))


@jit
def price_sessions(s: TwoLevelState, V: Array, rate: float, p: Prices, w: Scratch) -> None:
    """What each session (w.price) and its group (w.group_price) would ask for a flow in no session."""
    n = s.theta.size
    v = float(V.size)
    cheapest = price_groups(s, V, rate, p, w)
    overlaps(s.session_member, V, w.narrow, w.inter)
    theta, size, inter, price = s.theta, s.session_size, w.inter, w.price
    for l in range(n):
        missing = v - inter[l]
        price[l] = p.beta * (theta[l] * missing + rate * (size[l] + missing))
    if s.used[0] < n:
        # An empty session may open in any group.
        for l in range(n):
            if s.session_flows[l] == 0:
                s.group_of[l] = cheapest


@jit
def deal(s: TwoLevelState, w: Scratch) -> None:
    """List the sessions of each group anew."""
    n, m = s.theta.size, s.Theta.size
    w.first[:] = 0
    w.spare[0] = -1
    for l in range(n - 1, -1, -1):
        if s.session_flows[l] > 0:
            w.first[s.group_of[l] + 1] += 1
        else:
            w.spare[0] = l
    for g in range(m):
        w.first[g + 1] += w.first[g]
    for l in range(n):
        if s.session_flows[l] > 0:
            g = s.group_of[l]
            w.slots[w.first[g]] = l
            w.first[g] += 1
    for g in range(m, 0, -1):
        w.first[g] = w.first[g - 1]
    w.first[0] = 0


@jit
def overlap(member: Array, V: Array, l: int) -> float:
    """|C_l ∩ V| of one session."""
    inter = 0
    for u in V:
        inter += member[u, l]
    return float(inter)


@jit
def lonely(count: Array, V: Array, c: int) -> float:
    """How many of the users V of a point in cluster c are there for it alone."""
    alone = 0
    for u in V:
        alone += count[u, c] == 1
    return float(alone)


@jit
def price_one(s: TwoLevelState, v: float, inter: float, rate: float, p: Prices, l: int) -> float:
    return float(p.beta * (s.theta[l] * (v - inter) + rate * (s.session_size[l] + v - inter)))


@jit
def near(w: Scratch, m: int, reach: float) -> int:
    """How many sessions lie in groups that ask less than `reach`."""
    count = 0
    for g in range(m):
        if w.group_price[g] < reach:
            count += w.first[g + 1] - w.first[g]
    return count


@jit
def sweep(
    offsets: Array, users: Array, rates: Array, order: Array, s: TwoLevelState, p: Prices,
    heat: float, noise: Array, starts: Array,
) -> int:  # fmt: skip
    """Take each flow out and put it where it costs least (heat 0) or by a heat bath; returns the moves.

    `noise` is a long table of Gumbel numbers, none above MOST_NOISE, and `starts` where each flow reads
    it: least price minus heat × Gumbel noise is a draw with probability ∝ exp(−price / heat). A session
    asks at least βλ|V|, so that a group which asks too much itself spares its sessions the pricing.
    """
    n, m = s.theta.size, s.Theta.size
    w = scratch(n, m)
    deal(s, w)
    moves = 0
    for i in range(order.size):
        k, at = order[i], starts[i]
        V = users[offsets[k] : offsets[k + 1]]
        rate, old, v = rates[k], s.session_of[k], float(V.size)
        old_group = s.group_of[old] if old >= 0 else -1
        emptied = old >= 0 and s.session_flows[old] == 1
        price_groups(s, V, rate, p, w)
        if old >= 0:
            # As if the flow were taken out; most stay, and then nothing needs to be written.
            left = s.Theta[old_group] - rate if s.group_flows[old_group] > 1 else 0.0
            alone = lonely(s.group_count, V, old_group)
            w.group_price[old_group] = p.alpha * (left * alone + rate * s.group_size[old_group])
        cheapest = int(np.argmin(w.group_price))
        best, least = -1, np.inf
        if p.unicast < np.inf:
            least = rate * (p.unicast * V.size - p.send) - heat * noise[(at + n) % TABLE]
        if old >= 0:
            # Staying needs no reason; what rounding alone could win is no reason to move.
            left = 0.0 if emptied else s.theta[old] - rate
            stay = p.beta * (left * lonely(s.session_count, V, old) + rate * s.session_size[old])
            stay = (stay + w.group_price[old_group]) * (1 - 1e-12) - heat * noise[(at + old) % TABLE]
            if stay <= least:
                least, best = stay, old
        opened = old if emptied else w.spare[0]
        opens = False
        if opened >= 0:
            # An empty session may open in any group.
            value = p.beta * rate * v + w.group_price[cheapest] - heat * noise[(at + opened) % TABLE]
            if value < least:
                least, best, opens = value, opened, True
        lowest = p.beta * rate * v - heat * MOST_NOISE
        # The cheapest group first: what it asks spares others the pricing.
        for turn in range(-1, m):
            g = cheapest if turn < 0 else turn
            if turn == g == cheapest or w.group_price[g] + lowest >= least:
                continue
            if turn <= 0:
                together = 4 * near(w, m, least - lowest) > n
                if together:
                    overlaps(s.session_member, V, w.narrow, w.inter)
            for j in range(w.first[g], w.first[g + 1]):
                l = w.slots[j]
                if l == old:
                    continue
                inter = float(w.inter[l]) if together else overlap(s.session_member, V, l)
                value = price_one(s, v, inter, rate, p, l) + w.group_price[g] - heat * noise[(at + l) % TABLE]
                if value < least:
                    least, best, opens = value, l, False
        if best == old and not opens:
            continue
        if old >= 0:
            take(s, V, rate, old)
        if opens:
            s.group_of[best] = cheapest
        if best >= 0:
            put(s, V, rate, best)
        s.session_of[k] = best
        moves += best != old
        if opens or (emptied and best != old):
            deal(s, w)
    return moves


@jit
def lift(s: TwoLevelState, C: Array, l: int, g: int, sign: int) -> None:
    """Add (or with −1 take away) all of session l to group g."""
    for u in C:
        before = s.group_count[u, g]
        after = before + sign * s.session_count[u, l]
        s.group_count[u, g] = after
        if before == 0 and after > 0:
            s.group_member[u, g] = 1
            s.group_size[g] += 1
        elif before > 0 and after == 0:
            s.group_member[u, g] = 0
            s.group_size[g] -= 1
    s.group_flows[g] += sign * s.session_flows[l]
    s.Theta[g] = s.Theta[g] + sign * s.theta[l] if s.group_flows[g] > 0 else 0.0


@jit
def users_of_session(s: TwoLevelState, l: int, audience: Array) -> int:
    """Write the users of session l into `audience`; returns how many."""
    n = 0
    for u in range(audience.size):
        if s.session_member[u, l]:
            audience[n] = u
            n += 1
    return n


@jit
def regroup(s: TwoLevelState, p: Prices, heat: float, noise: Array, starts: Array) -> int:
    """Move each session, as a point with rate θ and audience C, to the group where it costs least."""
    n, m = s.theta.size, s.Theta.size
    narrow, inter = np.zeros(m, np.uint8), np.zeros(m, np.int32)
    audience = np.empty(s.session_member.shape[0], np.int64)
    moves = 0
    for l in range(n):
        if s.session_flows[l] == 0:
            continue
        C = audience[: users_of_session(s, l, audience)]
        old, rate = s.group_of[l], s.theta[l]
        lift(s, C, l, old, -1)
        overlaps(s.group_member, C, narrow, inter)
        missing = C.size - float(inter[old])
        least = p.alpha * (s.Theta[old] * missing + rate * (s.group_size[old] + missing)) * (1 - 1e-12)
        least -= heat * noise[(starts[l] + old) % TABLE]
        best = old
        for g in range(m):
            missing = C.size - float(inter[g])
            value = (
                p.alpha * (s.Theta[g] * missing + rate * (s.group_size[g] + missing))
                - heat * noise[(starts[l] + g) % TABLE]
            )
            if value < least:
                least, best = value, g
        s.group_of[l] = best
        lift(s, C, l, best, 1)
        moves += best != old
    return moves


@jit
def anneal(
    offsets: Array, users: Array, rates: Array, orders: Array, s: TwoLevelState, p: Prices,
    heats: Array, noise: Array, starts: Array, group_starts: Array,
) -> int:  # fmt: skip
    """One sweep and one regrouping per heat; returns the moves of the last."""
    moves = 0
    for i in range(heats.size):
        moves = sweep(offsets, users, rates, orders[i], s, p, heats[i], noise, starts[i])
        moves += regroup(s, p, heats[i], noise, group_starts[i])
    return moves


@jit
def total(offsets: Array, rates: Array, s: TwoLevelState, p: Prices) -> float:
    """The cost of a state."""
    cost = 0.0
    for l in range(s.theta.size):
        cost += p.beta * s.theta[l] * s.session_size[l]
    for g in range(s.Theta.size):
        cost += s.Theta[g] * (p.alpha * s.group_size[g] + p.send)
    for k in range(rates.size):
        if s.session_of[k] < 0:
            cost += p.unicast * rates[k] * (offsets[k + 1] - offsets[k])
    return cost
