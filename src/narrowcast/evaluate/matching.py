"""Numbers of a new plan made to agree with those of the plan it follows, so that as little as possible moves.

The numbers of groups, sessions and sets are names that mean nothing. Two planners, or one planner twice, give
the same group different ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from narrowcast.model.plan import Tables

# Above so many numbers the best assignment is not sought; the largest overlaps go first.
LARGE = 2_000


def by(plan: Tables, table: str, number: str, *columns: str) -> dict[int, set[Any]]:
    """What stands beside each number of a column."""
    found: dict[int, set[Any]] = {}
    given = plan.tables[table]
    beside = zip(*(given[column].to_pylist() for column in columns), strict=True)
    for n, names in zip(given[number].to_pylist(), beside, strict=True):
        found.setdefault(n, set()).add(names[0] if len(names) == 1 else names)
    return found


def overlaps(new: Mapping[int, set[Any]], old: Mapping[int, set[Any]]) -> Counter[tuple[int, int]]:
    """How much each new number has in common with each old one."""
    holders: dict[Any, list[int]] = {}
    for n, held in old.items():
        for one in held:
            holders.setdefault(one, []).append(n)
    return Counter((m, n) for m, held in new.items() for one in held for n in holders.get(one, ()))


def assigned(
    shared: Mapping[tuple[int, int], int], new: Iterable[int], old: Iterable[int], budget: int | None, fixed: set[int]
) -> dict[int, int]:
    """A number for each new one, all different and below the budget, so that most is shared."""
    rows = sorted(set(new) - fixed)
    free = [n for n in sorted(set(old) - fixed) if budget is None or n < budget]
    pairs = [(m, n, count) for (m, n), count in sorted(shared.items()) if m in set(rows) and n in set(free)]
    found = {m: m for m in fixed} | (_greedy(pairs) if len(rows) > LARGE else _best(pairs, rows, free))
    used, known = set(found.values()), set(old)
    # A number that the old plan did not use disturbs nobody: those come first.
    enough = len(used) + len(rows) + len(known)
    top = enough if budget is None else min(budget, enough)
    spare = sorted((n for n in range(top) if n not in used), key=lambda n: (n in known, n))
    return found | dict(zip((m for m in rows if m not in found), spare, strict=False))


def _best(pairs: list[tuple[int, int, int]], rows: list[int], free: list[int]) -> dict[int, int]:
    from scipy.optimize import linear_sum_assignment

    if not pairs:
        return {}
    row, column = {m: i for i, m in enumerate(rows)}, {n: j for j, n in enumerate(free)}
    kept = np.zeros((len(rows), len(free)))
    for m, n, count in pairs:
        kept[row[m], column[n]] = count
    chosen = zip(*linear_sum_assignment(kept, maximize=True), strict=True)
    return {rows[i]: free[j] for i, j in chosen if kept[i, j] > 0}


def _greedy(pairs: list[tuple[int, int, int]]) -> dict[int, int]:
    found: dict[int, int] = {}
    taken: set[int] = set()
    for m, n, _ in sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])):
        if m not in found and n not in taken:
            found[m] = n
            taken.add(n)
    return found


def with_numbers(plan: Tables, numbers: Mapping[str, Mapping[str, Mapping[int, int]]]) -> Tables:
    import pyarrow as pa

    tables = dict(plan.tables)
    for name, columns in numbers.items():
        for column, number in columns.items():
            given = tables[name]
            cells = [
                [number[n] for n in cell] if isinstance(cell, list) else number[cell]
                for cell in given[column].to_pylist()
            ]
            values = pa.array(cells, given[column].type)
            tables[name] = given.set_column(given.column_names.index(column), column, values)
    return replace(plan, tables=tables, checks={})
