"""Two pictures of a filter placement: traffic against filters, and the tree with filters and link loads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from narrowcast.cli.pictures.page import ACCENT, INK, new_page, save_picture
from narrowcast.model import Tree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# More vertices than this are a blur: the upper levels are drawn alone.
DRAWN = 3_000


def curve_picture(curve: Floats, bound: Floats, path: Path) -> None:
    """Traffic with 0..k filters; where only bounds are known, the band between them."""
    figure, axes = new_page(7, 4.5)
    filters = np.arange(curve.size)
    axes.plot(filters, curve, color=INK, marker="o" if curve.size <= 40 else None, markersize=3)
    if (bound < curve).any():
        axes.fill_between(filters, bound, curve, color=ACCENT, alpha=0.2, linewidth=0, label="the optimum is in here")
        axes.legend(frameon=False)
    axes.set_xlabel("filters")
    axes.set_ylabel("total traffic")
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    save_picture(figure, path)


def tree_picture(tree: Tree, loads: Floats, filters: Ints, path: Path) -> None:
    """The tree from the source down: the thicker and darker a link, the more it carries; squares are filters."""
    from matplotlib.collections import LineCollection

    shown = _shown(tree)
    x, y = _positions(tree), -tree.depth
    figure, axes = new_page(min(24.0, 6 + 0.05 * int(shown.sum())), 2 + 0.8 * int(tree.depth[shown].max() + 1))
    below = np.flatnonzero(shown & (tree.parents >= 0))
    above = tree.parents[below]
    share = loads[below] / max(float(loads[below].max(initial=0.0)), 1e-300)
    ends = np.stack([np.stack([x[above], y[above]], 1), np.stack([x[below], y[below]], 1)], 1)
    links = LineCollection(list(ends), linewidths=0.3 + 3.7 * share, cmap="viridis_r", zorder=1)
    links.set_array(loads[below])
    axes.add_collection(links)
    figure.colorbar(links, ax=axes, label="load of the link", shrink=0.7)
    plain, held = shown.copy(), np.zeros(tree.n, np.bool_)
    held[filters] = shown[filters]
    plain &= ~held
    small = 8 if shown.sum() > 300 else 20
    axes.scatter(x[plain], y[plain], s=small / 2, color=INK, zorder=2)
    axes.scatter(x[held], y[held], s=2 * small, color=ACCENT, marker="s", zorder=3, label=f"{held.sum()} filters")
    axes.legend(frameon=False, loc="upper right")
    if not shown.all():
        axes.set_title(f"the upper {int(tree.depth[shown].max()) + 1} of {int(tree.depth.max()) + 1} levels")
    axes.set_axis_off()
    save_picture(figure, path)


def _shown(tree: Tree) -> NDArray[np.bool_]:
    """Whole levels from the root down, as many as can be told apart."""
    fits = np.cumsum(np.bincount(tree.depth)) <= DRAWN
    return np.asarray(tree.depth < max(1, int(fits.sum())))


def _positions(tree: Tree) -> Floats:
    """Leaves side by side in the order of a walk; every other vertex over the middle of its children."""
    offsets, children = tree.children
    leaves = np.where(tree.is_leaf, 1.0, 0.0)
    order = tree.order.tolist()
    for v in reversed(order[1:]):
        leaves[tree.parents[v]] += leaves[v]
    start = np.zeros(tree.n)
    for v in order:
        at = start[v]
        for child in children[offsets[v] : offsets[v + 1]].tolist():
            start[child] = at
            at += leaves[child]
    return start + (leaves - 1) / 2
