"""Long lists of wanted flows cut into profiles of a size the language allows, many users at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.model import Interest
from narrowcast.model.arrays import Ints

#: Symbols, topics or items per profile: each counts as a term, and a profile may have 64.
PER_PROFILE = 40
#: Users handled together; part of the seeded result.
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Portions:
    """The lists of users first, first + 1, …: portion i holds `values[starts[i]:ends[i]]`, all of one user and kind."""

    first: int
    n: int
    values: list[str]
    starts: list[int]
    ends: list[int]
    user: list[int]
    run: list[int]
    """Which list the portion was cut from; lists are numbered from 0 in each block."""

    def texts(self, attribute: str) -> Iterator[tuple[int, int, str]]:
        """(user, list, profile) of each portion."""
        for user, run, start, end in zip(self.user, self.run, self.starts, self.ends, strict=True):
            yield user, run, condition_of(attribute, self.values[start:end])


def condition_of(attribute: str, quoted: list[str]) -> str:
    """A profile: the attribute has one of these values, already in quotes.

    >>> condition_of("symbol", ["'IBM'"]), condition_of("symbol", ["'IBM'", "'MMM'"])
    ("symbol = 'IBM'", "symbol IN ('IBM', 'MMM')")
    """
    return f"{attribute} = {quoted[0]}" if len(quoted) == 1 else f"{attribute} IN ({', '.join(quoted)})"


def quoted(names: Any) -> NDArray[Any]:
    """Names as string constants of the profile language.

    >>> quoted(["IBM", "O'X"]).tolist()
    ["'IBM'", "'O''X'"]
    """
    return np.array(["'" + str(name).replace("'", "''") + "'" for name in names], dtype=object)


def blocks(interest: Interest, names: NDArray[Any], kind_of_flow: Ints | None = None) -> Iterator[Portions]:
    """Every user's flows by blocks of users, in lists of one kind and portions of at most PER_PROFILE."""
    offsets, flows = interest.by_user
    for first in range(0, interest.n_users, BLOCK):
        n = min(BLOCK, interest.n_users - first)
        mine = flows[offsets[first] : offsets[first + n]]
        user = np.repeat(np.arange(n), np.diff(offsets[first : first + n + 1]))
        kind = np.zeros(mine.size, np.int64) if kind_of_flow is None else kind_of_flow[mine]
        change = np.ones(mine.size, np.bool_)
        change[1:] = (np.diff(user) != 0) | (np.diff(kind) != 0)
        run = np.cumsum(change) - 1
        place = np.arange(mine.size) - np.flatnonzero(change)[run]
        starts = np.flatnonzero(place % PER_PROFILE == 0)
        ends = np.append(starts[1:], mine.size)[: starts.size]
        yield Portions(
            first,
            n,
            names[mine].tolist(),
            starts.tolist(),
            ends.tolist(),
            (first + user[starts]).tolist(),
            run[starts].tolist(),
        )
