"""Which boxes hold each message's codes: partition by equality, then bitsets, then exact tests.

Every attribute's value is a whole number here (see `profiles.cells`). A message visits one block of
boxes per key attribute, the block of its own value, and every open block. A block of more than 8
boxes has sides: per side attribute at most 256 buckets of codes, and per bucket two bitsets: boxes
that some code in it satisfies, and boxes that every code in it satisfies. A box in all of the first
may hold the message and is tested, unless it is in all of the second too and surely does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]

ZERO = np.uint64(0)
ONE = np.uint64(1)
LAST = np.uint64(63)
ALL = np.uint64(2**64 - 1)
# 2^k mod 67 differs for every k below 64, which turns a lone bit into its place.
MOD = np.uint64(67)
BIT_OF = np.zeros(67, np.int64)
for _k in range(64):
    BIT_OF[pow(2, _k, 67)] = _k


class BoxIndex(NamedTuple):
    """Boxes and the way to them; `*_start` arrays are offsets into their neighbours."""

    # What a box tells: the profiles (and hidden numbers) that it makes match.
    target_start: Int64s
    targets: Int32s
    n_targets: int
    # What a box asks: hulls as (attribute, low, high), then unions of spans.
    dim_start: Int64s
    dims: Int32s
    union_start: Int64s
    union_attribute: Int32s
    union_set: Int32s
    span_start: Int64s
    span_low: Int32s
    span_high: Int32s
    # Blocks: the boxes posted in each; the block of each code of each key attribute (−1: none).
    post_start: Int64s
    post_box: Int32s
    post_target: Int32s  # of a box that tells just one; −1 if it tells several
    key_attribute: Int32s
    key_start: Int64s
    key_block: Int32s
    open_block: Int32s
    # No row finds more targets, counting repeats, and no block has more words of 64 boxes.
    most_found: int
    most_words: int
    # Sides of large blocks: bucket = number of cuts ≤ code; bitsets (some, every) bucket after bucket.
    side_start: Int64s
    side_attribute: Int32s
    cut_start: Int64s
    cuts: Int32s
    word_start: Int64s
    words: Words


@jit
def _inside(code: int, low: Int32s, high: Int32s, start: int, end: int) -> bool:
    """Whether one of the sorted spans start..end holds the code."""
    while end - start > 1:
        middle = (start + end) >> 1
        if low[middle] <= code:
            start = middle
        else:
            end = middle
    return bool(low[start] <= code <= high[start])


@jit
def _bucket(code: int, cuts: Int32s, start: int, end: int) -> int:
    """How many of the sorted cuts start..end are ≤ code."""
    first = start
    while start < end:
        middle = (start + end) >> 1
        if cuts[middle] <= code:
            start = middle + 1
        else:
            end = middle
    return start - first


@jit
def _unique_sorted(found: Int64s, first: int, end: int, bitmap: Words) -> int:
    """Sort found[first:end] in place and drop repeats; the new end. `bitmap` is all zero before and after."""
    ascending = True
    for j in range(first + 1, end):
        ascending = ascending and found[j - 1] < found[j]
    if ascending:
        return end
    n, m = end - first, first
    if n > 24 and 16 * n > bitmap.size:
        for j in range(first, end):
            bitmap[found[j] >> 6] |= ONE << (np.uint64(found[j]) & LAST)
        for w in range(bitmap.size):
            word = bitmap[w]
            bitmap[w] = ZERO
            while word != ZERO:
                bit = word & (~word + ONE)
                word ^= bit
                found[m] = (w << 6) + BIT_OF[bit % MOD]
                m += 1
        return m
    if n > 24:
        found[first:end].sort()
    else:
        for j in range(first + 1, end):
            x, k = found[j], j
            while k > first and found[k - 1] > x:
                found[k] = found[k - 1]
                k -= 1
            found[k] = x
    for j in range(first, end):
        if m == first or found[j] != found[m - 1]:
            found[m] = found[j]
            m += 1
    return m


@jit
def match(codes: Int32s, index: BoxIndex) -> tuple[Int64s, Int64s]:
    """Targets of every row of codes: how many each row has, and all of them, ascending within a row.

    One loop nest on purpose: a call per box would cost ten times the test itself.
    """
    post_start, post_box, post_target = index.post_start, index.post_box, index.post_target
    side_start, side_attribute, cut_start, cuts = index.side_start, index.side_attribute, index.cut_start, index.cuts
    word_start, words = index.word_start, index.words
    dim_start, dims, union_start = index.dim_start, index.dims, index.union_start
    union_attribute, union_set = index.union_attribute, index.union_set
    span_start, span_low, span_high = index.span_start, index.span_low, index.span_high
    target_start, targets = index.target_start, index.targets

    n, n_keys, n_open = codes.shape[0], index.key_attribute.size, index.open_block.size
    most = index.most_found
    counts, out, filled = np.zeros(n, np.int64), np.empty(4 * n + most, np.int64), 0
    alive, bitmap = np.empty(index.most_words, np.uint64), np.zeros((index.n_targets + 63) >> 6, np.uint64)
    sure_at = np.empty(side_attribute.size, np.int64)

    for i in range(n):
        if filled + most > out.size:
            larger = np.empty(2 * out.size + most, np.int64)
            larger[:filled] = out[:filled]
            out = larger
        end = filled
        for visit in range(n_keys + n_open):
            if visit < n_keys:
                block = index.key_block[index.key_start[visit] + codes[i, index.key_attribute[visit]]]
                if block < 0:
                    continue
            else:
                block = index.open_block[visit - n_keys]
            first, first_side, end_side = post_start[block], side_start[block], side_start[block + 1]
            n_boxes = post_start[block + 1] - first
            n_words = (n_boxes + 63) >> 6
            if first_side == end_side:
                for w in range(n_words):
                    alive[w] = ALL >> np.uint64(max(0, 64 * (w + 1) - n_boxes))
            for s in range(first_side, end_side):
                bucket = _bucket(codes[i, side_attribute[s]], cuts, cut_start[s], cut_start[s + 1])
                at = word_start[s] + 2 * bucket * n_words
                sure_at[s] = at + n_words
                if s == first_side:
                    for w in range(n_words):
                        alive[w] = words[at + w]
                else:
                    for w in range(n_words):
                        alive[w] &= words[at + w]
            for w in range(n_words):
                word = alive[w]
                if word == ZERO:
                    continue
                sure = word if first_side < end_side else ZERO
                for s in range(first_side, end_side):
                    sure &= words[sure_at[s] + w]
                while word != ZERO:
                    bit = word & (~word + ONE)
                    word ^= bit
                    at = first + (w << 6) + BIT_OF[bit % MOD]
                    box = post_box[at]
                    if sure & bit == ZERO:
                        holds = True
                        for d in range(dim_start[box], dim_start[box + 1]):
                            code = codes[i, dims[d, 0]]
                            if code < dims[d, 1] or code > dims[d, 2]:
                                holds = False
                                break
                        if not holds:
                            continue
                        for u in range(union_start[box], union_start[box + 1]):
                            start, stop = span_start[union_set[u]], span_start[union_set[u] + 1]
                            if not _inside(codes[i, union_attribute[u]], span_low, span_high, start, stop):
                                holds = False
                                break
                        if not holds:
                            continue
                    if post_target[at] >= 0:
                        out[end] = post_target[at]
                        end += 1
                        continue
                    for t in range(target_start[box], target_start[box + 1]):
                        out[end] = targets[t]
                        end += 1
        end = _unique_sorted(out, filled, end, bitmap)
        counts[i] = end - filled
        filled = end
    return counts, out[:filled]


@jit
def hulls(boxes: Int32s, attribute: int, dim_start: Int64s, dims: Int32s) -> tuple[Int32s, Int32s]:
    """The hull of each box on one attribute; low −1 where a box does not ask."""
    low, high = np.full(boxes.size, -1, np.int32), np.full(boxes.size, -1, np.int32)
    for j in range(boxes.size):
        for d in range(dim_start[boxes[j]], dim_start[boxes[j] + 1]):
            if dims[d, 0] == attribute:
                low[j], high[j] = dims[d, 1], dims[d, 2]
    return low, high


@jit
def bitsets(low: Int32s, high: Int32s, cuts: Int32s, size: int, decided: NDArray[np.bool_]) -> Words:
    """For each bucket between cuts, the bitset of boxes whose hull meets it and of those whose hull holds it.

    `size` is the number of codes. A box that the sides alone cannot decide is never in the second.
    """
    n_words = (low.size + 63) >> 6
    words = np.zeros(2 * (cuts.size + 1) * n_words, np.uint64)
    for j in range(low.size):
        first, last, sure_first, sure_last = 0, cuts.size, 0, cuts.size
        if low[j] >= 0:
            first, last = _bucket(low[j], cuts, 0, cuts.size), _bucket(high[j], cuts, 0, cuts.size)
            sure_first = first if low[j] == (cuts[first - 1] if first > 0 else 0) else first + 1
            sure_last = last if high[j] == (cuts[last] if last < cuts.size else size) - 1 else last - 1
        bit = ONE << np.uint64(j & 63)
        for bucket in range(first, last + 1):
            at = 2 * bucket * n_words + (j >> 6)
            words[at] |= bit
            if decided[j] and sure_first <= bucket <= sure_last:
                words[at + n_words] |= bit
    return words
