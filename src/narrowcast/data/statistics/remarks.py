"""What a person should know of a measurement beside its tables: columns not there, profiles without a match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from narrowcast.data.ingest.fit import SOME, absent_in, absent_line, idle_line, some
from narrowcast.data.statistics.partials import Ints
from narrowcast.profiles import Profile
from narrowcast.profiles.flow_key import NULL

# A null among the texts of several columns, in which backslashes are doubled.
_NULL_PART = re.compile(r"(?:^|(?<!\\)\|)\\N(?:$|\|)")


def remarks(profiles: Sequence[Profile], matches: Ints, columns: Sequence[str], holders: Path) -> tuple[str, ...]:
    """Lines on columns that profiles name and messages lack, and on the profiles that matched nothing.

    `matches` counts the messages of each profile; `holders` is the table of who has which.
    """
    absent = absent_in(profiles, columns)
    idle = np.flatnonzero(matches == 0)
    shown = {place for places in absent.values() for place in places[:SOME]} | {int(place) for place in idle[:SOME]}
    whose = _holders(holders, sorted(shown)) if shown else {}
    lines = []
    for name, places in absent.items():
        lines.append(absent_line(name, len(places), [whose[place] for place in places[:SOME]], columns))
    if len(idle):
        first = [(whose[int(place)], profiles[place]) for place in idle[:SOME]]
        lines.append(idle_line(len(profiles), len(idle), first))
    return tuple(lines)


def _holders(table: Path, profiles: Iterable[int]) -> dict[int, str]:
    """The first subscriber of each of these profiles, with how many more have it."""
    import pyarrow.parquet as pq

    found = pq.read_table(table, filters=[("profile", "in", list(profiles))], partitioning=None).to_pylist()
    names: dict[int, list[str]] = {}
    for row in found:
        names.setdefault(row["profile"], []).append(row["subscriber"])
    return {profile: who[0] + (f" and {len(who) - 1:,} more" if len(who) > 1 else "") for profile, who in names.items()}


def keyless(flows: Path, key: Sequence[str]) -> str | None:
    """A line on messages that lack an attribute of the key, and what their flows are called; None without any."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if not key:
        return None
    table = pq.read_table(flows, columns=["flow", "messages"], partitioning=None)
    doubtful = table.filter(pc.match_substring(table["flow"], NULL)).to_pylist()
    found = [row for row in doubtful if (row["flow"] == NULL if len(key) == 1 else _NULL_PART.search(row["flow"]))]
    if not found:
        return None
    n, names = sum(row["messages"] for row in found), [row["flow"] for row in found]
    return (
        f"{n:,} messages have no {' or '.join(key)}; their flows are called {some(names, len(names))} ({NULL} is null)"
    )


def emptiness(n_messages: int, n_set_aside: int, n_pairs: int) -> str | None:
    """Why a result is empty; None if it is not.

    >>> emptiness(0, 12, 0)
    'the result is empty: all 12 messages were set aside'
    """
    if n_messages == 0:
        why = f"all {n_set_aside:,} messages were set aside" if n_set_aside else "there are no messages"
        return f"the result is empty: {why}"
    return None if n_pairs else f"nobody wants anything: no profile matches any of {n_messages:,} messages"
