"""Arguments as people type them: lists with commas between their values, and options under names of before."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from narrowcast.errors import InputError

# By command, then by option; "" holds for every command.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "plan channels": {"--joins-per-user": "--joins-per-subscriber", "--joins": "--new-joins"},
    "plan filters": {"--drawing": "--picture"},
    "plan queries": {"--map": "--picture"},
    "plan semantic": {"--variant": "--method"},
    "whatif": {"--joins-per-user": "--joins-per-subscriber"},
    "diff": {"--receiver-join-rate": "--subscriber-join-rate", "--drain": "--drain-s"},
    "measure": {"--half-life": "--half-life-s", "--window": "--window-s"},
    "generate": {"--users": "--subscribers"},
    "demo": {"--users": "--subscribers"},
    "adapt": {
        "--half-life": "--half-life-s",
        "--horizon": "--horizon-s",
        "--every": "--every-s",
        "--wishes": "--subscriptions",
        "--config": "--system",
    },
    "up": {"--data": "--system"},
    "down": {"--data": "--system"},
    "publish": {"--url": "--system"},
    "subscribe": {"--url": "--system"},
    "top": {"--url": "--system"},
}


def with_new_names(arguments: Sequence[str]) -> list[str]:
    """The same arguments with options under their new names; each old one gives a line on standard error.

    >>> with_new_names(["top", "--system", "x"])
    ['top', '--system', 'x']
    """
    arguments = _with_commas(arguments)
    words = [word for word in arguments if not word.startswith("-")]
    known = RENAMED.get(" ".join(words[:2]), {}) or RENAMED.get(" ".join(words[:1]), {})
    found = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name in known:
            print(f"narrowcast: {name} is now {known[name]}; the old name works until version 0.3", file=sys.stderr)
            name = known[name]
        found.append(f"{name}{equals}{value}")
    return found


def _with_commas(arguments: Sequence[str]) -> list[str]:
    """`--weights 1 1 3`, as it was written until 0.2, as `--weights 1,1,3`."""
    found = list(arguments)
    at = found.index("--weights") + 1 if "--weights" in found else len(found)
    if at + 2 < len(found) and not any("," in word or word.startswith("-") for word in found[at : at + 3]):
        found[at : at + 3] = [",".join(found[at : at + 3])]
        print(f"narrowcast: write --weights {found[at]}; with spaces it works until version 0.3", file=sys.stderr)
    return found


def columns(given: str | None) -> tuple[str, ...] | None:
    """A comma-separated list of column names.

    >>> columns("symbol, venue")
    ('symbol', 'venue')
    """
    if given is None:
        return None
    names = tuple(name.strip() for name in given.split(","))
    if not all(names):
        raise InputError(f"columns must be names such as symbol,venue, got {given!r}", name="key", got=given)
    return names


def numbers(option: str, given: str, count: int | None = None) -> list[float]:
    """A comma-separated list of numbers, as many as `count` if that is given.

    >>> numbers("--groups", "10,20,50")
    [10.0, 20.0, 50.0]
    """
    try:
        found = [float(part) for part in given.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found or (count is not None and len(found) != count):
        what = f"{count} numbers, as {','.join('1' * count)}" if count else "numbers, as 10,20,50"
        raise InputError(f"{option} must be {what}, got {given!r}", name=option.lstrip("-"), got=given)
    return found


def pairs(given: Iterable[str] | None) -> list[str]:
    """NAME=VALUE pairs, with commas between them or one by one; a comma inside a value stays.

    >>> pairs(["price=double,size=bigint", "names=a,b"])
    ['price=double', 'size=bigint', 'names=a,b']
    """
    return [pair for text in given or () for pair in re.split(r",(?=[^,=]+=)", text)]
