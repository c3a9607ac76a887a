"""Putting answers on few channels so that clients overhear little: insertion, then single moves.

A channel that carries L objects to N listeners makes them hear L·N; what they hear and did not need is
overheard. Σ L·N over the channels is what is made small, the needed part being constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit


@jit
def _heard_with(load: Any, listeners: Any, needs: Any, h: int, size: float, clients: Any) -> Any:
    """Channel h's L·N if it carried this answer too."""
    new = 0
    for c in clients:
        new += needs[h, c] == 0
    return (load[h] + size) * (listeners[h] + new)


@jit
def _heard_without(load: Any, listeners: Any, needs: Any, h: int, size: float, clients: Any) -> Any:
    """Channel h's L·N if it no longer carried this answer, which it does."""
    gone = 0
    for c in clients:
        gone += needs[h, c] == 1
    return (load[h] - size) * (listeners[h] - gone)


@jit
def _put(load: Any, listeners: Any, needs: Any, h: int, size: float, clients: Any, sign: int) -> None:
    load[h] += sign * size
    for c in clients:
        if sign > 0 and needs[h, c] == 0:
            listeners[h] += 1
        needs[h, c] += sign
        if sign < 0 and needs[h, c] == 0:
            listeners[h] -= 1


@jit
def _best(load: Any, listeners: Any, needs: Any, size: float, clients: Any) -> Any:
    """The channel where an answer adds least, and how much."""
    least, chosen = np.inf, 0
    for h in range(load.size):
        added = _heard_with(load, listeners, needs, h, size, clients) - load[h] * listeners[h]
        if added < least:
            least, chosen = added, h
    return least, chosen


@jit
def physical(sizes: Any, offsets: Any, clients: Any, n_clients: int, channels: int, order: Any) -> Any:
    """The channel of each answer: put in `order` where it adds least, then moved while that gains.

    The listeners of answer i are `clients[offsets[i]:offsets[i + 1]]`. O(passes · channels · pairs).
    """
    load, listeners = np.zeros(channels), np.zeros(channels, np.int64)
    needs = np.zeros((channels, n_clients), np.int32)
    home = np.full(sizes.size, -1)
    for i in order:
        mine = clients[offsets[i] : offsets[i + 1]]
        _, home[i] = _best(load, listeners, needs, sizes[i], mine)
        _put(load, listeners, needs, home[i], sizes[i], mine, 1)
    rounding = 0.0
    for h in range(channels):
        rounding += 1e-12 * load[h] * listeners[h]
    moved = True
    while moved:
        moved = False
        for i in order:
            mine = clients[offsets[i] : offsets[i + 1]]
            h = home[i]
            gain = load[h] * listeners[h] - _heard_without(load, listeners, needs, h, sizes[i], mine)
            _put(load, listeners, needs, h, sizes[i], mine, -1)
            added, best = _best(load, listeners, needs, sizes[i], mine)
            if gain - added > rounding:
                home[i], moved = best, True
            _put(load, listeners, needs, home[i], sizes[i], mine, 1)
    return home
