"""Profiles against columns: which rows of a record batch each one matches, all of them in one go.

Exactly what `Profile.matches` says of each row as a message: a column that is not there is null, and a value of another
kind than the constant it is compared with is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from narrowcast.deliver.wire.columns import rows_of
from narrowcast.profiles import Profile
from narrowcast.profiles.predicate import predicate
from narrowcast.profiles.sql.syntax import Finds, terms

if TYPE_CHECKING:
    from narrowcast.profiles.match.matcher import Matcher

Rows = NDArray[np.int64]
NO_ROWS: Rows = np.empty(0, np.int64)


class TableTests:
    """One compiled matcher over all profiles; those with XPath are tested row by row.

    >>> tests = TableTests([Profile.parse("p > 1"), Profile.parse("p = 'x'")])
    >>> [rows.tolist() for rows in tests(pa.record_batch({"p": [1, 2, 3]}))]
    [[1, 2], []]
    """

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self._n = len(profiles)
        together = [k for k, profile in enumerate(profiles) if not _has_paths(profile)]
        self._which: Rows = np.array(together, np.int64)
        self._matcher = _matcher([profiles[k] for k in together]) if together else None
        self._apart = {k: predicate(profile) for k, profile in enumerate(profiles) if _has_paths(profile)}

    def __call__(self, batch: pa.RecordBatch) -> list[Rows]:
        """The numbers of the rows that each profile matches, ascending."""
        found = [NO_ROWS] * self._n
        if self._matcher is not None:
            rows, which = self._matcher.match_any(batch)
            order = np.argsort(which, kind="stable")
            ends = np.searchsorted(which[order], np.arange(len(self._which) + 1))
            rows = rows[order]
            for k, place in enumerate(self._which.tolist()):
                found[place] = rows[ends[k] : ends[k + 1]]
        if self._apart:
            messages = rows_of(batch)
            for k, test in self._apart.items():
                found[k] = np.array([n for n, message in enumerate(messages) if test(message)], np.int64)
        return found


def _matcher(profiles: Sequence[Profile]) -> Matcher:
    """Compiled code takes half a second to load, and is not needed where flows decide."""
    from narrowcast.profiles.match.matcher import Matcher

    return Matcher(profiles)


def _has_paths(profile: Profile) -> bool:
    return any(isinstance(term, Finds) for term in terms(profile.expression))


@lru_cache(maxsize=4096)
def table_test(profile: Profile) -> TableTests:
    """The test of one profile alone."""
    return TableTests([profile])
