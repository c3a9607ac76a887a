"""What filters at every hop of a shortest path tree would have to keep (SemCast §5.3, table 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.model.arrays import Bools, Ints
from narrowcast.plans.semantic.methods.audiences import in_common
from narrowcast.plans.semantic.window import OverlaySystem


def filter_tables(made: OverlaySystem, source: int, covers: Bools | None = None) -> Ints:
    """How many profiles each broker keeps in the shortest path tree from a source (0 off the tree).

    A broker keeps what its subscribers and the brokers below it want; `covers[i, j]` (profile i covers
    j) leaves out what another profile there covers. See `covering`.
    """
    below = _below(made, source)
    if covers is None:
        return np.asarray(below.sum(axis=1))
    n = len(made.profiles)
    # Of profiles that cover each other only the first stays.
    over = covers & ~(covers.T & (np.arange(n)[:, None] >= np.arange(n)[None, :]))
    np.fill_diagonal(over, False)
    return np.array([np.count_nonzero(row & ~over[row].any(axis=0)) for row in below], np.int64)


def covering(made: OverlaySystem, matched: Any | None = None) -> Bools:
    """covers[i, j]: profile i provably covers j. With a window's matches only pairs it does not refute are tried."""
    n = len(made.profiles)
    maybe = np.ones((n, n), np.bool_)
    if matched is not None:
        dense = matched.toarray().astype(np.float32).T
        maybe = in_common(dense, dense) == dense.sum(axis=1)[None, :]
    np.fill_diagonal(maybe, False)
    result = np.zeros((n, n), np.bool_)
    for i, j in zip(*np.nonzero(maybe), strict=True):
        one, other = made.profiles[i], made.profiles[j]
        result[i, j] = type(one) is type(other) and one.covers(other)
    return result


def _below(made: OverlaySystem, source: int) -> Bools:
    """(broker × profile): wanted at the broker or below it in the source's shortest path tree."""
    n = made.topology.n_brokers
    below = np.zeros((n, len(made.profiles)), np.bool_)
    for j, gateway in enumerate(made.gateways.tolist()):
        for broker in made.paths.path(gateway, source):
            below[broker] |= made.wants[:, j]
    return below
