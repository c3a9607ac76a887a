"""LIKE patterns and paths into documents, which no range of strings can express: tested where all else holds."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from narrowcast.profiles.match.box_index import ranges
from narrowcast.profiles.match.cells import NULL_CODE, LikePiece
from narrowcast.profiles.match.codes import kind_of
from narrowcast.profiles.match.compiled import Likely
from narrowcast.profiles.sql.like import ANY, ONE, Pattern, like
from narrowcast.profiles.xpath.document import seen_document
from narrowcast.profiles.xpath.match import XPathMatcher
from narrowcast.profiles.xpath.xpath import XPath

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
FEW = 16


def confirmed(
    rows: Ints,
    targets: Ints,
    likely: Likely,
    names: list[str],
    codes: NDArray[np.int32],
    arrays: Mapping[str, pa.Array],
) -> tuple[Ints, Ints]:
    """The pairs with every likely box replaced by what it tells, where its patterns hold. In no order."""
    plain = targets < likely.first
    row, box = rows[~plain], targets[~plain] - likely.first
    asked = np.diff(likely.set_start)[box]
    pair, set_ = np.repeat(np.arange(box.size), asked), likely.sets[ranges(likely.set_start[box], asked)]
    holds = np.ones(box.size, np.bool_)
    found = {name: _found(matcher, arrays[name], row) for name, matcher in likely.paths.items()}
    order = np.argsort(set_, kind="stable")
    first = np.flatnonzero(np.diff(set_[order], prepend=-1))
    for group in np.split(order, first[1:]) if order.size else []:
        name, pieces = likely.pieces[int(set_[group[0]])]
        group = group[holds[pair[group]]]
        code = codes[:, names.index(name)]
        holds[pair[group]] &= passes(pieces, code, arrays[name], row[pair[group]], found.get(name, {}))
    row, box = row[holds], box[holds]
    told = np.diff(likely.target_start)[box]
    more = likely.targets[ranges(likely.target_start[box], told)]
    return np.concatenate((rows[plain], np.repeat(row, told))), np.concatenate((targets[plain], more))


Found = Mapping[XPath, Ints]  # the rows, in order, where each path finds something


def _found(matcher: XPathMatcher, array: pa.Array, rows: Ints) -> Found:
    """Every path on the documents of these rows, each read once; what is no document has nothing in it."""
    if kind_of(array.type) != "string":
        return {}
    wanted = np.unique(rows)
    texts = array.take(pa.array(wanted)).to_pylist()
    there = [i for i, text in enumerate(texts) if text is not None]
    at, path = matcher.match([seen_document(texts[i]) for i in there])
    order = np.lexsort((at, path))
    at, path = wanted[np.array(there, np.int64)][at[order]], path[order]
    ends = np.searchsorted(path, np.arange(len(matcher.paths) + 1))
    return {each: at[ends[k] : ends[k + 1]] for k, each in enumerate(matcher.paths)}


def passes(pieces: list[LikePiece], code: NDArray[np.int32], array: pa.Array, rows: Ints, found: Found) -> Bools:
    """Which of these rows belong to a set with patterns, given that their codes do.

    Rows that hold no string belong already. Each distinct string is tested once.
    """
    if found:
        return _passes_with_paths(pieces, code, array, rows, found)
    result = np.ones(rows.size, np.bool_)
    if kind_of(array.type) != "string":
        return result
    asked = np.flatnonzero(code[rows] != NULL_CODE)
    which, values = _distinct(array.take(pa.array(rows[asked])))
    code_of = np.zeros(len(values), np.int32)
    code_of[which] = code[rows[asked]]
    belongs = np.zeros(len(values), np.bool_)
    for first, last, likes in pieces:
        inside = np.flatnonzero((code_of >= first) & (code_of <= last) & ~belongs)
        for pattern, wanted in likes:
            inside = inside[_like(values.take(pa.array(inside)), pattern) == wanted]
        belongs[inside] = True
    result[asked] = belongs[which]
    return result


def _passes_with_paths(
    pieces: list[LikePiece], code: NDArray[np.int32], array: pa.Array, rows: Ints, found: Found
) -> Bools:
    belongs: Bools = code[rows] == NULL_CODE
    for first, last, likes in pieces:
        inside = np.flatnonzero((code[rows] >= first) & (code[rows] <= last) & ~belongs)
        for pattern, wanted in likes:
            if isinstance(pattern, XPath):
                holds = np.isin(rows[inside], found[pattern], assume_unique=False)
            else:
                holds = _like(array.take(pa.array(rows[inside])).cast(pa.large_string()), pattern)
            inside = inside[holds == wanted]
        belongs[inside] = True
    return belongs


def _distinct(array: pa.Array) -> tuple[Ints, pa.Array]:
    """The place of each string among the distinct ones, and those."""
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    used, which = np.unique(encoded.indices.to_numpy(), return_inverse=True)
    values = encoded.dictionary.take(pa.array(used))
    return which, values.cast(pa.large_string())


def _like(values: pa.Array, pattern: Pattern) -> Bools:
    """Which strings match. RE2 takes time linear in the text, whatever the pattern."""
    if len(values) > FEW:
        try:
            found: Bools = pc.match_substring_regex(values, _regex(pattern)).to_numpy(zero_copy_only=False)
            return found
        except pa.ArrowInvalid:  # a pattern larger than RE2's memory
            pass
    return np.fromiter((like(text, pattern) for text in values.to_pylist()), np.bool_, len(values))


def _regex(pattern: Pattern) -> str:
    wild: Mapping[object, str] = {ANY: ".*", ONE: "."}
    return "(?s)\\A" + "".join(wild[part] if part in wild else _quoted(str(part)) for part in pattern) + "\\z"


def _quoted(text: str) -> str:
    """For RE2: a backslash before every ASCII sign; NUL by its number."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text).replace("\0", r"\x00")
