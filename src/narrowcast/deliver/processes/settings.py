"""Frozen dataclasses from TOML tables and back: a field is a key, a dataclass is a table, every problem is named.

Python reads TOML and does not write it; what settings hold are texts, numbers, lists of texts and tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
WORDS = {
    str: "a string", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list of strings",
    Mapping: "a table of strings",
}  # fmt: skip
NOT_A_KEY = {"key": False}  # metadata of a field that no file holds


def from_table(kind: type[T], table: Mapping[str, Any], problems: list[str], where: str = "") -> T:
    """A dataclass from a table. What is wrong is added to `problems` and left at its default."""
    known = {field.name: field for field in _keys(kind)}
    hints = get_type_hints(kind)
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            problems.append(_unknown(f"{where}{name}", name, known))
            continue
        wanted = _not_none(hints[name])
        if is_dataclass(wanted) and isinstance(value, dict):
            found[name] = from_table(wanted, value, problems, f"{where}{name}.")  # type: ignore[arg-type]
        elif (problem := _problem(wanted, value, known[name])) is None:
            found[name] = tuple(value) if isinstance(value, list) else value
        else:
            problems.append(f"{where}{name} must be {problem}, got {value!r}")
    return kind(**found)


def to_table(settings: Any) -> dict[str, Any]:
    """The table of a dataclass, without what is as it is by default."""
    found: dict[str, Any] = {}
    for field in _keys(type(settings)):
        value = getattr(settings, field.name)
        if value == _default(field):
            continue
        if is_dataclass(value):
            found[field.name] = to_table(value)
        else:
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def to_toml(table: Mapping[str, Any]) -> str:
    """A table as TOML.

    >>> print(to_toml({"shards": 2, "overlay": {"brokers": {"b 1": "tcp://h:1"}}}), end="")
    shards = 2
    [overlay.brokers]
    "b 1" = "tcp://h:1"
    """
    return "".join(f"{line}\n" for line in _lines(table, ()))


def _keys(kind: Any) -> list[Field[Any]]:
    return [field for field in fields(kind) if field.metadata.get("key", True)]


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _not_none(hint: Any) -> Any:
    """The type of a setting that may be absent."""
    if isinstance(hint, UnionType):
        return next(kind for kind in get_args(hint) if kind is not type(None))
    return hint


def _unknown(full: str, name: str, known: Mapping[str, Any]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"{full} is not known (did you mean {close[0]}?)" if close else f"{full} is not known"


def _problem(wanted: Any, value: Any, field: Field[Any]) -> str | None:
    """What a value must be, if it is not."""
    kind = get_origin(wanted) or wanted
    if is_dataclass(kind):
        return "a table"
    if not _fits(kind, value):
        return WORDS[kind]
    least = field.metadata.get("least")
    return f"at least {least}" if least is not None and value < least else None


def _fits(kind: Any, value: Any) -> bool:
    if kind is tuple:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind is Mapping:
        return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    inner = {name: value for name, value in table.items() if isinstance(value, Mapping)}
    if path and (len(inner) < len(table) or not table):  # a table of tables needs no line of its own
        yield f"[{'.'.join(map(_name, path))}]"
    for name, value in table.items():
        if name not in inner:
            yield f"{_name(name)} = {_value(value)}"
    for name, value in inner.items():
        yield from _lines(value, (*path, name))


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: str | bool | int | float | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)  # JSON spells the infinite otherwise
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML's texts are JSON's, but for this one
