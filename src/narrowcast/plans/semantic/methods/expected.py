"""Audiences that no message of the window had, yet some message is likely to have soon."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.semantic.kernels.price import union_prices
from narrowcast.plans.semantic.methods.audiences import AudienceClasses
from narrowcast.plans.semantic.window import OverlaySystem, Window

#: Channels made ahead, if no cap says otherwise.
MOST_EXPECTED = 6000
MOST_PRICED = 100_000
MOST_SOURCES = 16
#: Below this share of messages that match one profile alone, a profile's own audience says little.
LEAST_SHARE = 0.5


def expected(made: OverlaySystem, window: Window, classes: AudienceClasses, room: int) -> AudienceClasses:
    """At most `room` classes of weight 0: everyone, and the audience of one profile, from each source.

    Everyone is what dense audiences come near to. Where most messages match a single profile, each
    profile's audience will be seen from each source sooner or later: those that a tree serves most below
    unicast come first.
    """
    every = min(room, max(1, window.sources.size), MOST_SOURCES)
    reach = [np.ones((every, made.gateways.size), np.bool_)]
    source = [np.arange(every)]
    alone, group = _single(made, window)
    gain = _gain(made, window, alone, group)
    best = np.argsort(-gain, kind="stable")[: room - every]
    best = best[gain[best] > 0]
    found = AudienceClasses(np.concatenate((*reach, alone[best])), np.concatenate((*source, group[best])), np.zeros(0))
    fresh = _unseen(found, classes)
    return AudienceClasses(found.reach[fresh], found.source[fresh], np.zeros(fresh.size))


def _one_at_a_time(made: OverlaySystem, window: Window) -> bool:
    """Whether most messages that anybody wants match a single profile."""
    count = np.asarray(window.matched[:, made.wants.any(axis=1)].sum(axis=1)).ravel()
    return bool((count > 0).any() and (count[count > 0] == 1).mean() >= LEAST_SHARE)


def with_unseen(made: OverlaySystem, window: Window, rng: np.random.Generator) -> Window:
    """The window with half a message for each profile that matched none, where profiles match one at a time."""
    from scipy.sparse import csr_array, vstack

    count = np.asarray(window.matched.sum(axis=0)).ravel()
    unseen = np.flatnonzero((count == 0) & made.wants.any(axis=1))
    if not unseen.size or not _one_at_a_time(made, window):
        return window
    n = unseen.size
    alone = csr_array((np.ones(n, np.int32), (np.arange(n), unseen)), shape=(n, len(made.profiles)))
    return Window(
        vstack((window.matched, alone), format="csr"),
        np.concatenate((window.audience, made.wants[unseen])),
        np.concatenate((window.weight, np.full(n, 0.5))),
        window.sources,
        np.concatenate((window.source, rng.integers(0, max(1, window.sources.size), n))),
    )


def _single(made: OverlaySystem, window: Window) -> tuple[Bools, Ints]:
    """The distinct audiences of single profiles, each with each source, busiest first."""
    if not window.sources.size or not _one_at_a_time(made, window):
        return np.zeros((0, made.gateways.size), np.bool_), np.zeros(0, np.int64)
    reach = np.unique(made.wants[made.wants.sum(axis=1) > 1], axis=0)
    n_sources = max(1, min(window.sources.size, MOST_PRICED // max(1, len(reach))))
    return np.tile(reach, (n_sources, 1)), np.repeat(np.arange(n_sources), len(reach))


def _gain(made: OverlaySystem, window: Window, reach: Bools, source: Ints) -> Floats:
    """What a tree from the source costs less than a path to each gateway."""
    weight = np.zeros((len(reach), max(1, window.sources.size)))
    weight[np.arange(len(reach)), source] = 1.0
    each, paths = np.arange(len(reach)), made.paths
    tree = union_prices(paths.distance, paths.next_hop, window.sources, made.gateways, reach, weight, each, each)
    if not window.sources.size:
        return -tree
    unicast = np.zeros(len(reach))
    for s in np.unique(source).tolist():
        mine = source == s
        unicast[mine] = reach[mine] @ paths.distance[window.sources[s], made.gateways]
    return unicast - tree


def _unseen(found: AudienceClasses, classes: AudienceClasses) -> Ints:
    """The rows of `found` that are neither classes of the window nor repeat one before them."""
    keys = [(int(s), row.tobytes()) for s, row in zip(classes.source, np.packbits(classes.reach, axis=1), strict=True)]
    seen = set(keys)
    fresh = []
    for i, (s, row) in enumerate(zip(found.source.tolist(), np.packbits(found.reach, axis=1), strict=True)):
        if (s, row.tobytes()) not in seen:
            seen.add((s, row.tobytes()))
            fresh.append(i)
    return np.array(fresh, np.int64)
