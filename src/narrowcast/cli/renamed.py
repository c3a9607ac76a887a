"""Options that have another name now. The old one works for one version, with a hint."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

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
