"""The input tables in a folder: each file and folder there is a table, or it is named as passed over."""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches
from pathlib import Path

from narrowcast.data.ingest.tables import SPECS
from narrowcast.errors import InputError
from narrowcast.model.stores import StorePlace, check_place
from narrowcast.model.tables import MANIFEST, PACKINGS, READABLE, ending
from narrowcast.model.text_files import check_text

# What generated folders have beside their tables.
COMPANIONS = (MANIFEST, "workload.json")
# Tables from which something can be measured together.
ENOUGH = (("messages", "subscriptions"), ("messages", "queries"), ("flows", "interest"), ("tree", "demand"))


def find_inputs(folder: str | Path, tell: Callable[[str], None] | None = None) -> dict[str, str | Path]:
    """The input tables of a folder, by their file or folder names: messages.parquet, flows.csv.gz, a folder tree, …

    `tell` gets a line for everything that is no table. Two files for one table are an InputError, and so is a
    file named after a table that has no other and cannot be read. Names from . and _ are no data, as for Spark.
    """
    place = check_place(folder, "inputs")
    found: dict[str, str | Path] = {}
    others = []
    for entry, is_folder in _entries(place):
        name = _table(entry, is_folder)
        if name in found:
            other = str(found[name]).rsplit("/", 1)[-1]
            raise InputError(f"{place}: both {other} and {entry} are the {name} table", name=name)
        if name in SPECS:
            found[name] = place / entry if isinstance(place, Path) else f"{place.split('?')[0]}/{entry}"
        elif not entry.startswith((".", "_")) and entry not in COMPANIONS:
            others.append(entry)
    lines = [_passed_over(entry, place, found) for entry in others]
    if not found:
        raise InputError(
            f"{place}: no input table here; tables are {', '.join(SPECS)}",
            name="inputs",
            got=str(place),
            hint=lines[0] if lines else None,
        )
    for name, path in found.items():
        if isinstance(path, Path):
            check_text(path, name, objects=False)
    if tell is not None:
        for line in lines:
            tell(line)
    return found


def check_enough(names: Collection[str]) -> None:
    """Refuse tables from which nothing can be measured.

    >>> check_enough(["nodes", "messages"])
    Traceback (most recent call last):
    narrowcast.errors.InputError: nothing can be measured from nodes, messages alone (messages and subscriptions \
would do, or messages and queries, flows and interest, tree and demand)
    """
    if not any(set(needed) <= set(names) for needed in ENOUGH):
        sets = [" and ".join(needed) for needed in ENOUGH]
        raise InputError(
            f"nothing can be measured from {', '.join(names)} alone",
            name="inputs",
            got=tuple(names),
            hint=f"{sets[0]} would do, or {', '.join(sets[1:])}",
        )


def _entries(place: str | Path) -> list[tuple[str, bool]]:
    """What a folder holds, in order, and whether each is a folder itself. A store is asked for its files."""
    if isinstance(place, Path):
        if not place.is_dir():
            raise InputError(f"{place}: no such folder", name="inputs", got=str(place))
        return sorted((path.name, path.is_dir()) for path in place.iterdir())
    tops = [name.partition("/")[::2] for name in StorePlace.at(place, "inputs").files()]
    if not [name for name, _ in tops if name]:
        raise InputError(f"{place}: no such folder", name="inputs", got=place)
    return sorted({(name, bool(below)) for name, below in tops})


def _table(name: str, is_folder: bool) -> str:
    """The table that a file or folder would be by its name; "" for a file of another format."""
    known = ending(name)
    return name.removesuffix(known) if known or is_folder else ""


def _passed_over(name: str, place: str | Path, found: Collection[str]) -> str:
    """The line about something that is no table; an InputError where it looks like the only file of one."""
    first = name.split(".")[0]
    if first in SPECS and first not in found:
        endings = ", ".join(READABLE[:3])
        raise InputError(
            f"{place}/{name}: the {first} table has an ending that cannot be read",
            name=first,
            got=name,
            hint=f"endings are {endings}, of text also with {' or '.join(PACKINGS)}",
        )
    near = [n for n in get_close_matches(first.lower(), SPECS, n=1, cutoff=0.8) if n not in found]
    return f"measure ignores {name}: not the name of a table" + (f" (did you mean {near[0]}?)" if near else "")
