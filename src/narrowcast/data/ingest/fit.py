"""Whether profiles can be asked of the messages there are: columns that are absent or of another type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from narrowcast.data.ingest.key import nearest
from narrowcast.profiles import Profile

SOME = 3
_WORDS = {"number": "a number", "string": "text", "boolean": "a truth value", "timestamp": "a time"}
_HINTS = {
    "string": "a text stands in quotes",
    "number": "a number stands without quotes",
    "boolean": "compare it with TRUE or FALSE",
    "timestamp": "write TIMESTAMP '2026-01-05 09:30:00'",
}


def misfit(profile: Profile, kinds: Mapping[str, str]) -> str | None:
    """What a profile asks of a column of another kind, with its text; None if it can be asked.

    >>> misfit(Profile.parse("price > 'high'"), {"price": "number"})
    "compares the column 'price' with text, but it holds a number: price > 'high' (a number stands without quotes)"
    >>> misfit(Profile.parse("price > 1"), {"price": "string"})
    "compares the column 'price' with a number, but it holds text: price > 1 (a text stands in quotes; --type \
price=double takes it for numbers)"
    """
    for name, asked in profile.kinds.items():
        has = kinds.get(name, "null")
        if has not in (asked, "null"):
            what, hint = _WORDS.get(has, "no plain value"), _HINTS.get(has)
            if (has, asked) == ("string", "number"):  # a few such cells make a column of a text file text
                hint = f"{hint}; --type {name}=double takes it for numbers"
            text = f"compares the column {name!r} with {_WORDS[asked]}, but it holds {what}: {short(profile)}"
            return f"{text} ({hint})" if hint else text
    return None


def absent_in(profiles: Sequence[Profile], columns: Iterable[str]) -> dict[str, list[int]]:
    """The attributes that are no columns, each with the places of the profiles that name it.

    >>> absent_in([Profile.parse("symbl = 'IBM'"), Profile.parse("price > 1")], ["symbol", "price"])
    {'symbl': [0]}
    """
    there = frozenset(columns)
    found: dict[str, list[int]] = {}
    for place, profile in enumerate(profiles):
        for name in profile.attributes:
            if name not in there:
                found.setdefault(name, []).append(place)
    return dict(sorted(found.items()))


def absent_line(name: str, n_profiles: int, holders: Sequence[str], columns: Sequence[str]) -> str:
    """One line on a column that messages lack: how many profiles name it, whose, and what was probably meant.

    >>> absent_line("symbl", 1, ["ann"], ["symbol", "price"])
    "the messages have no column 'symbl', so it is null in 1 profile: ann (did you mean 'symbol'?)"
    """
    near = nearest(name, columns)
    line = f"the messages have no column {name!r}, so it is null in {_counted(n_profiles)}: {some(holders, n_profiles)}"
    return f"{line} (did you mean {near!r}?)" if near else line


def idle_line(n_profiles: int, n_idle: int, first: Iterable[tuple[str, object]]) -> str:
    """One line on the profiles that matched no message: how many, and the first with their holders.

    >>> idle_line(40, 1, [("ann", "price > 1000000")])
    '1 of 40 profiles matched no message: price > 1000000 (ann)'
    """
    shown = [f"{short(text)} ({holder})" for holder, text in first]
    return f"{n_idle:,} of {_counted(n_profiles)} matched no message: {some(shown, n_idle, '; ')}"


def some(names: Sequence[str], n: int, between: str = ", ") -> str:
    """The first of n names, and that there are more."""
    return between.join([*names[:SOME], *(["…"] if n > SOME else [])])


def short(profile: object) -> str:
    text = str(profile)
    return text if len(text) <= 120 else text[:117] + "..."


def _counted(n: int) -> str:
    return f"{n:,} profile" + ("" if n == 1 else "s")
