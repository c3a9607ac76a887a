"""The interest matrix as a picture, before and after: what arrives where, and how much of it is wanted.

Rows are receivers, columns are flows, and a flow is as wide as its rate: areas are traffic. Large ones are
averaged down to the pixels there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.channels.report.served import Served
from narrowcast.reports.png import data_uri
from narrowcast.reports.text import seen, short

WIDTH, HEIGHT = 760, 400
WANTED, WASTE, APART = (52, 132, 232), (226, 145, 47), (25, 160, 127)
VEIL, BOOST = 0.45, 1.8
GROUP_SHADES = ((92, 108, 124), (176, 187, 198))
STRIP = 6
LEVELS = 24


def matrix_pictures(served: Served) -> tuple[str, str, bool]:
    """Data URIs: flooding in the order of the input, and the plan with flows by group and session; and if they are
    small enough to have every cell in them."""
    interest = served.interest
    flows = np.flatnonzero(interest.audience_sizes > 0)
    users = np.arange(interest.n_users)
    everything = np.ones((1, interest.n_flows)) * (interest.audience_sizes > 0)
    before = _picture(served, flows, users, np.ones((interest.n_users, 1)), everything, apart=False)
    flows, users = ordered(served)
    sent = np.flatnonzero(served.group >= 0)
    holds = sparse.csr_matrix((np.ones(sent.size), (served.group[sent], sent)), (served.n_groups, interest.n_flows))
    after = _picture(served, flows, users, served.joins, holds, apart=True)
    small = interest.n_users <= HEIGHT // 4 and flows.size <= WIDTH // 4
    return data_uri(before), data_uri(_with_groups(after, served, flows)), small


def matrix_names(served: Served) -> list[dict[str, list[str]]]:
    """Whom a place of each picture stands for: names across and down, as many as there are pixels."""
    interest = served.interest
    flows = np.flatnonzero(interest.audience_sizes > 0)
    names = []
    for across, down in ((flows, np.arange(interest.n_users)), ordered(served)):
        columns = _columns(interest.rates, across).tocsc()
        widest = [
            int(columns.indices[a:b][np.argmax(columns.data[a:b])]) if b > a else -1
            for a, b in zip(columns.indptr, columns.indptr[1:], strict=False)
        ]
        n = min(interest.n_users, HEIGHT)
        first = [int(down[-(-line * down.size // n)]) for line in range(n)]
        names.append(
            {
                "flows": [seen(short((interest.flow_names or ())[k], 32)) if k >= 0 else "" for k in widest],
                "subscribers": [seen(short((interest.user_names or ())[u], 32)) for u in first],
            }
        )
    return names


def ordered(served: Served) -> tuple[Ints, Ints]:
    """Wanted flows by group, session and rate; users by the group that brings them most, then the next, ….

    Groups come in the order of their rate, flows that no group carries last.
    """
    interest = served.interest
    flows = np.flatnonzero(interest.audience_sizes > 0)
    rank = np.empty(served.n_groups + 1, np.int64)
    rank[np.argsort(-served.group_rate, kind="stable")] = np.arange(served.n_groups)
    rank[-1] = served.n_groups
    keys = (-interest.rates[flows], served.session[flows], rank[served.group[flows]])
    flows = flows[np.lexsort(keys)]
    through = (served.group[interest.flow_of_pair] >= 0) & ~served.unicast
    group = np.where(through, served.group[interest.flow_of_pair], served.n_groups)
    gain = sparse.csr_matrix(
        (interest.rates[interest.flow_of_pair], (interest.users, group)), (interest.n_users, served.n_groups + 1)
    ).toarray()[:, : served.n_groups]
    best = np.argsort(-gain, axis=1, kind="stable")[:, :4]
    if not best.shape[1]:
        return flows, np.arange(interest.n_users)
    has = np.take_along_axis(gain, best, axis=1) > 0
    ranks = np.where(has, rank[best], served.n_groups)
    return flows, np.lexsort(tuple(ranks[:, j] for j in reversed(range(ranks.shape[1]))))


def _picture(served: Served, flows: Ints, users: Ints, left: Any, right: Any, *, apart: bool) -> NDArray[np.uint8]:
    """What arrives is `left` (users × any) times `right` (any × flows); what is wanted comes from the interest."""
    interest = served.interest
    across = _columns(interest.rates, flows)
    down = _rows(users, interest.n_users)
    pairs = (interest.users, interest.flow_of_pair)
    shape = (interest.n_users, interest.n_flows)
    alone = served.unicast if apart else np.zeros(interest.n_pairs, np.bool_)
    wanted = _dense(down @ sparse.csr_matrix((1.0 * ~alone, pairs), shape) @ across)
    unicast = _dense(down @ sparse.csr_matrix((1.0 * alone, pairs), shape) @ across)
    arrives = _dense(sparse.csr_matrix(down @ left) @ sparse.csr_matrix(right @ across))
    return _mix(wanted, np.clip(arrives - wanted, 0, None), unicast)


def _columns(rates: Floats, flows: Ints) -> Any:
    """Flows × pixels: the share of each pixel's width that a flow takes."""
    if not flows.size:  # nobody wants anything
        return sparse.csr_matrix((rates.size, 1))
    width = np.maximum(rates[flows], 0.0)
    width = np.ones(flows.size) if width.sum() <= 0 else width
    ends = np.cumsum(width) / width.sum()
    n = WIDTH if flows.size > WIDTH // 4 or width.min() < width.max() else flows.size
    start, end = np.concatenate([[0.0], ends[:-1]]) * n, ends * n
    first, last = np.floor(start).astype(np.int64), np.minimum(np.ceil(end).astype(np.int64), n)
    counts = np.maximum(last - first, 1)
    row = np.repeat(np.arange(flows.size), counts)
    column = np.minimum(
        np.repeat(first, counts) + np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts), n - 1
    )
    share = np.clip(np.minimum(end[row], column + 1) - np.maximum(start[row], column), 0.0, 1.0)
    return sparse.csr_matrix((share, (flows[row], column)), (rates.size, n))


def _rows(users: Ints, n_users: int) -> Any:
    """Pixels × users: each line of pixels is the mean of the users it stands for."""
    n = min(n_users, HEIGHT)
    line = np.arange(users.size) * n // max(users.size, 1)
    share = 1.0 / np.bincount(line, minlength=n)[line]
    return sparse.csr_matrix((share, (line, users)), (n, n_users))


def _mix(wanted: Floats, waste: Floats, apart: Floats) -> NDArray[np.uint8]:
    """Waste as a veil, what is wanted over it. Roots, so that the little is seen; few levels, so that it packs well."""
    veil, over = _levels(waste) * VEIL, np.clip(BOOST * (_levels(wanted) + _levels(apart)), 0.0, 1.0)
    tint = apart[..., None] > wanted[..., None]
    alpha = over + veil * (1 - over)
    colour = over[..., None] * np.where(tint, APART, WANTED) + ((1 - over) * veil)[..., None] * np.array(WASTE)
    pixels = np.concatenate([colour / np.maximum(alpha, 1e-9)[..., None], 255 * alpha[..., None]], axis=-1)
    return np.round(pixels).astype(np.uint8)


def _levels(share: Floats) -> Floats:
    return np.round(np.sqrt(np.clip(share, 0.0, 1.0)) * LEVELS) / LEVELS


def _with_groups(pixels: NDArray[np.uint8], served: Served, flows: Ints) -> NDArray[np.uint8]:
    """A strip on top in two shades by turns, one for each group along it."""
    if pixels.shape[0] < 40 or not flows.size:
        return pixels
    across = _columns(served.interest.rates, flows)
    group = served.group[flows]
    turn = np.concatenate([[0], np.cumsum(group[1:] != group[:-1])]) % 2
    share = np.asarray(across[flows].T @ turn).ravel()
    strip = np.zeros((STRIP, pixels.shape[1], 4), np.uint8)
    shades = np.array(GROUP_SHADES)
    strip[: STRIP - 2, :, :3] = np.where(share[None, :, None] > 0.5, shades[1], shades[0])
    strip[: STRIP - 2, :, 3] = 255
    return np.vstack([strip, pixels])


def _dense(product: Any) -> Floats:
    return np.asarray(product.todense() if sparse.issparse(product) else product)
