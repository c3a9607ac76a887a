"""Boxes into the arrays that the matching kernel walks.

Every box is filed once under the attribute that tells most: if it asks for one value or few (an
equality, an IN list, IS NULL), in the block of each of those codes; otherwise in the open block of
its narrowest attribute. Blocks of more than a few boxes get bitsets (see `kernels.matcher`). Time is
O(b log b) and memory O(b · sides) for b boxes: at most 8 sides of 64 bytes each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.profiles.kernels.matcher import BoxIndex, bitsets, hulls
from narrowcast.profiles.match.cells import Span

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

DIRECT = 8  # blocks up to this size are scanned box by box
FEW = 8  # a set of at most so many codes is filed under each, also if they are not single values
MAX_SIDES = 8
MAX_CUTS = 255
RARE = 64  # an attribute that fewer than one box in RARE asks for is no side


def offsets(counts: Ints) -> Ints:
    """Where each group starts, and where the last ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))


def _sums(values: Ints, start: Ints) -> Ints:
    """The sum of each group of values."""
    total = offsets(values)
    return total[start[1:]] - total[start[:-1]]


def ranges(first: Ints, count: Ints) -> Ints:
    """first[0], first[0] + 1, … count[0] of them, then those of the next."""
    start = offsets(count)
    return np.arange(start[-1]) + np.repeat(first - start[:-1], count)


@dataclass(frozen=True, slots=True)
class Sets:
    """All sets of codes that boxes ask for, one after another over all attributes."""

    start: Ints  # of each set's spans
    low: Ints
    high: Ints
    size: Ints  # codes in each set
    filed: Bools  # a few codes: a box may be filed under each

    @classmethod
    def of(cls, spans: Sequence[Sequence[Span]]) -> Sets:
        start = offsets(np.fromiter(map(len, spans), np.int64, len(spans)))
        flat = np.fromiter((code for listed in spans for span in listed for code in span), np.int64, 2 * int(start[-1]))
        low, high = flat[0::2], flat[1::2]
        size = _sums(high - low + 1, start)
        single = _sums((low != high).astype(np.int64), start) == 0
        return cls(start, low, high, size, single | (size <= FEW))

    @property
    def hull(self) -> tuple[Ints, Ints]:
        """First and last code of each set; a set without any is 1..0, which holds nothing."""
        empty = self.start[:-1] == self.start[1:]
        if not self.low.size:
            return np.ones(empty.size, np.int64), np.zeros(empty.size, np.int64)
        first = np.minimum(self.start[:-1], self.low.size - 1)
        return np.where(empty, 1, self.low[first]), np.where(empty, 0, self.high[self.start[1:] - 1])

    def codes(self, chosen: Ints) -> Ints:
        """The codes of the chosen sets, one set after another."""
        spans = ranges(self.start[chosen], np.diff(self.start)[chosen])
        return ranges(self.low[spans], self.high[spans] - self.low[spans] + 1)


@dataclass(frozen=True, slots=True)
class Dims:
    """What boxes ask, box after box: of an attribute, a set of its codes."""

    box: Ints
    attribute: Ints
    set: Ints


def build(dims: Dims, sets: Sets, sizes: Ints, target_start: Ints, targets: Ints) -> BoxIndex:
    """The index of boxes, given what each asks, how many codes each attribute has, and whom each box tells."""
    n_boxes = target_start.size - 1
    score = sets.size[dims.set] / sizes[dims.attribute]
    best = _best(dims, score, sets.filed[dims.set], n_boxes)
    filed = best >= 0
    filed[filed] = sets.filed[dims.set[best[filed]]]
    # The dim that files a box holds for every message that comes to it there.
    asked = np.ones(dims.box.size, np.bool_)
    asked[best[filed]] = False
    tests = _tests(dims, np.flatnonzero(asked)[np.lexsort((score[asked], dims.box[asked]))], sets, n_boxes)
    posts, post_block, keys = _file(best, filed, dims, sets, sizes)
    blocks = _blocks(posts, post_block, target_start, targets)
    return BoxIndex(
        target_start=target_start,
        targets=targets.astype(np.int32),
        n_targets=int(targets.max(initial=-1)) + 1,
        **tests,
        **blocks,
        **keys,
        **_most(post_block, np.diff(target_start)[posts], keys),
        **_sides(blocks, tests, sizes),
    )


def _tests(dims: Dims, order: Ints, sets: Sets, n_boxes: int) -> dict[str, Any]:
    """Hulls of the dims in this order, and the sets of those that are several spans."""
    low, high = sets.hull
    asked = dims.set[order]
    several = order[np.diff(sets.start)[asked] > 1]
    return {
        "dim_start": offsets(np.bincount(dims.box[order], minlength=n_boxes)),
        "dims": np.stack((dims.attribute[order], low[asked], high[asked]), axis=1).astype(np.int32),
        "union_start": offsets(np.bincount(dims.box[several], minlength=n_boxes)),
        "union_attribute": dims.attribute[several].astype(np.int32),
        "union_set": dims.set[several].astype(np.int32),
        "span_start": sets.start,
        "span_low": sets.low.astype(np.int32),
        "span_high": sets.high.astype(np.int32),
    }


def _blocks(posts: Ints, block: Ints, target_start: Ints, targets: Ints) -> dict[str, Any]:
    """Postings block by block, by target within each, so that most answers come out sorted."""
    first_target = np.append(targets, 0)[target_start[posts]]
    order = np.lexsort((posts, first_target, block))
    alone = np.diff(target_start)[posts] == 1
    return {
        "post_start": offsets(np.bincount(block, minlength=int(block.max(initial=-1)) + 1)),
        "post_box": posts[order].astype(np.int32),
        "post_target": np.where(alone, first_target, -1)[order].astype(np.int32),
    }


def _best(dims: Dims, score: NDArray[np.float64], filed: Bools, n_boxes: int) -> Ints:
    """The dim that leads to each box: one of few codes first, then the smallest share; −1 for a box without any."""
    order = np.lexsort((dims.attribute, score, ~filed, dims.box))
    first = np.ones(order.size, np.bool_)
    first[1:] = dims.box[order[1:]] != dims.box[order[:-1]]
    best = np.full(n_boxes, -1, np.int64)
    best[dims.box[order[first]]] = order[first]
    return best


def _file(best: Ints, filed: Bools, dims: Dims, sets: Sets, sizes: Ints) -> tuple[Ints, Ints, dict[str, Any]]:
    """Postings as (box, block), and the way from a code to its block."""
    boxes = np.flatnonzero(filed)
    by_set = dims.set[best[boxes]]
    codes = sets.codes(by_set)
    posts = np.repeat(boxes, sets.size[by_set])
    key_attribute, which = np.unique(dims.attribute[best[posts]], return_inverse=True)
    key_start = offsets(sizes[key_attribute])
    used, block = np.unique(key_start[which] + codes, return_inverse=True)
    key_block = np.full(int(key_start[-1]), -1, np.int32)
    key_block[used] = np.arange(used.size)
    # Open boxes: one block if bitsets can cover all attributes, else one per narrowest attribute.
    rest = np.flatnonzero(~filed)
    narrowest = np.where(best[rest] >= 0, np.append(dims.attribute, -1)[best[rest]], -1)
    if sizes.size <= MAX_SIDES:
        narrowest[:] = -1
    opened, open_block = np.unique(narrowest, return_inverse=True)
    keys = {
        "key_attribute": key_attribute.astype(np.int32),
        "key_start": key_start[:-1],
        "key_block": key_block,
        "open_block": np.arange(used.size, used.size + opened.size, dtype=np.int32),
    }
    return np.concatenate((posts, rest)), np.concatenate((block, used.size + open_block)), keys


def _most(block: Ints, n_targets: Ints, keys: Mapping[str, Any]) -> dict[str, Any]:
    """What a row can find at most: all of the open blocks and the fullest block of every key."""
    told = np.bincount(block, weights=n_targets).astype(np.int64)
    of_keys = np.split(keys["key_block"], keys["key_start"][1:])
    most = sum(int(told[blocks[blocks >= 0]].max(initial=0)) for blocks in of_keys) + told[keys["open_block"]].sum()
    return {"most_found": int(most), "most_words": int(np.bincount(block).max(initial=0) + 63) // 64}


def _sides(blocks: Mapping[str, Any], tests: Mapping[str, Any], sizes: Ints) -> dict[str, Any]:
    """Bitsets for the large blocks."""
    post_start, post_box = blocks["post_start"], blocks["post_box"]
    dim_start, dims, union_start = tests["dim_start"], tests["dims"], tests["union_start"]
    counts = np.zeros(post_start.size - 1, np.int64)
    attributes: list[int] = []
    cuts: list[NDArray[np.int32]] = []
    words: list[NDArray[np.uint64]] = []
    for block in np.flatnonzero(np.diff(post_start) > DIRECT):
        boxes = post_box[post_start[block] : post_start[block + 1]]
        n_dims = dim_start[boxes + 1] - dim_start[boxes]
        attribute = dims[ranges(dim_start[boxes], n_dims), 0]
        asking = np.bincount(attribute)
        common = np.argsort(-asking, kind="stable")[:MAX_SIDES]
        common = common[asking[common] * RARE >= boxes.size]
        n_sided = _sums(np.isin(attribute, common).astype(np.int64), offsets(n_dims))
        # Sides alone decide a box if they are all it asks and its hulls are its sets.
        decided = (n_sided == n_dims) & (union_start[boxes] == union_start[boxes + 1])
        for side in common:
            low, high = hulls(boxes, side, dim_start, dims)
            cut = _cuts(np.concatenate((low[low >= 0], high[low >= 0] + np.int32(1))))
            attributes.append(int(side))
            cuts.append(cut)
            words.append(bitsets(low, high, cut, sizes[side], decided))
        counts[block] = common.size
    return {
        "side_start": offsets(counts),
        "side_attribute": np.array(attributes, np.int32),
        "cut_start": offsets(np.array([cut.size for cut in cuts], np.int64)),
        "cuts": np.concatenate((*cuts, np.empty(0, np.int32))),
        "word_start": offsets(np.array([word.size for word in words], np.int64)),
        "words": np.concatenate((*words, np.empty(0, np.uint64))),
    }


def _cuts(bounds: NDArray[np.int32]) -> NDArray[np.int32]:
    """At most MAX_CUTS of the bounds, so that buckets hold about equally many."""
    distinct = np.unique(bounds)
    if distinct.size <= MAX_CUTS:
        return distinct
    return np.unique(np.sort(bounds)[np.linspace(0, bounds.size - 1, MAX_CUTS).astype(np.int64)])
