"""All tree patterns on a document at once, from its last element to its first.

Every distinct element of the patterns has one bit. S(e), the bits that hold at element e, follows from
the bits that hold at some child (C), at some descendant (D) and the value tests true at e. A row says:
at an element of this label, if all its literals hold, bit `target` holds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Array = NDArray[Any]
CHILD, DESCENDANT, VALUE = 0, 1, 2


class Patterns(NamedTuple):
    """Compiled patterns. Rows of label code l are `row_offsets[l]:row_offsets[l + 1]`; code 0 is "any label".

    Rows without a positive literal come first within a label: `row_positive[l]` is where the others start.
    Literal i of a row is of `literal_kind`, on bit `literal_bit`, wanted true or false.
    """

    base: Array
    row_offsets: Array
    row_positive: Array
    row_target: Array
    literal_offsets: Array
    literal_kind: Array
    literal_bit: Array
    literal_wanted: Array


class Documents(NamedTuple):
    """Documents end to end: document i has elements `documents[i]:documents[i + 1]`.

    `values[value_row[e]]` are the value tests true at element e, as bits; row 0 has none.
    """

    documents: Array
    label: Array
    depth: Array
    value_row: Array
    values: Array


@jit
def _row_holds(p: Any, row: int, child: Array, below: Array, value: Array) -> bool:
    for i in range(p.literal_offsets[row], p.literal_offsets[row + 1]):
        bit = p.literal_bit[i]
        word, shift = bit >> 6, np.uint64(bit & 63)
        if p.literal_kind[i] == 0:
            held = (child[word] >> shift) & np.uint64(1)
        elif p.literal_kind[i] == 1:
            held = (below[word] >> shift) & np.uint64(1)
        else:
            held = (value[word] >> shift) & np.uint64(1)
        if (held == np.uint64(1)) != p.literal_wanted[i]:
            return False
    return True


@jit
def xpath_match(p: Any, d: Any, first: int, end: int, child: Array, below: Array) -> None:
    """Leaves in child[0] the bits that hold at the top element, in below[0] those that hold anywhere.

    Elements first..end−1 are one document. `child` and `below` have a zeroed row per depth; row k
    gathers for the open element of depth k − 1.
    O(elements · (rows of the label + bits / 64)).
    """
    words = child.shape[1]
    here = np.zeros(words, np.uint64)
    for e in range(end - 1, first - 1, -1):
        inside, level = d.depth[e] + 1, d.depth[e]
        value = d.values[d.value_row[e]]
        something = d.value_row[e] > 0 or (e + 1 < end and d.depth[e + 1] == inside)
        here[:] = p.base[d.label[e]]
        for group in (0, d.label[e]):
            stop = p.row_offsets[group + 1] if something else p.row_positive[group]
            for row in range(p.row_offsets[group], stop):
                if _row_holds(p, row, child[inside], below[inside], value):
                    target = p.row_target[row]
                    here[target >> 6] |= np.uint64(1) << np.uint64(target & 63)
            if d.label[e] == 0:
                break
        for w in range(words):
            child[level, w] |= here[w]
            below[level, w] |= here[w] | below[inside, w]
            child[inside, w] = np.uint64(0)
            below[inside, w] = np.uint64(0)


@jit
def xpath_match_many(p: Any, d: Any, query_bit: Array, query_deep: Array) -> tuple[Array, Array]:
    """(document, query) pairs, sorted; query_deep: anywhere in the document, not only at its top."""
    words = p.base.shape[1]
    levels = 2
    for e in range(d.depth.size):
        levels = max(levels, d.depth[e] + 2)
    child = np.zeros((levels, words), np.uint64)
    below = np.zeros((levels, words), np.uint64)
    rows = np.empty(1024, np.int64)
    cols = np.empty(1024, np.int64)
    n = 0
    for i in range(d.documents.size - 1):
        xpath_match(p, d, d.documents[i], d.documents[i + 1], child, below)
        for q in range(query_bit.size):
            bit = query_bit[q]
            held = below[0, bit >> 6] if query_deep[q] else child[0, bit >> 6]
            if (held >> np.uint64(bit & 63)) & np.uint64(1):
                if n == rows.size:
                    rows = np.concatenate((rows, np.empty(n, np.int64)))
                    cols = np.concatenate((cols, np.empty(n, np.int64)))
                rows[n], cols[n] = i, q
                n += 1
        child[0] = np.uint64(0)
        below[0] = np.uint64(0)
    return rows[:n], cols[:n]
