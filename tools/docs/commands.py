"""The command reference, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer

from narrowcast.cli.app import app

OPENING = """# Commands

What `narrowcast COMMAND --help` says, for every command. [Command line](../command-line.md) tells what they have in
common: lists, environment variables, exit codes.
"""
COMMON = {"help", "verbose", "install_completion", "show_completion", "version"}


def page() -> str:
    """All commands as one page of Markdown."""
    return "\n".join([OPENING, *_told(typer.main.get_command(app), "narrowcast", 1)]) + "\n"


def _told(command: Any, name: str, level: int) -> Iterator[str]:
    inside = getattr(command, "commands", None)
    if level > 1:
        yield f"\n{'#' * level} {name}\n"
        yield (command.help or "").strip()  # its examples are indented, and so are code here too
    if inside is not None:
        for each, sub in inside.items():
            yield from _told(sub, f"{name} {each}", level + 1)
        return
    usage = " ".join(_piece(each) for each in command.params if each.param_type_name == "argument")
    yield f"\n```text\n{name} {usage} [OPTIONS]\n```\n"
    rows = [_row(each) for each in command.params if each.name not in COMMON]
    if rows:
        yield "| | meaning | default |\n|---|---|---|"
        yield from rows


def _piece(argument: Any) -> str:
    shown = (argument.metavar or argument.name.upper()).strip("[]")
    return shown if argument.required else f"[{shown}]"


def _row(each: Any) -> str:
    if each.param_type_name == "argument":
        name, told = f"`{_piece(each)}`", each.help or ""
    else:
        name = ", ".join(f"`{opt}`" for opt in [*each.opts, *each.secondary_opts])
        told = each.help or ""
    kind = getattr(getattr(each, "type_descriptor", None), "annotation", None)
    if isinstance(kind, type) and issubclass(kind, Enum):
        told += " One of " + ", ".join(f"`{choice.value}`" for choice in kind) + "."
    variable = each.envvar if isinstance(each.envvar, str) else None
    if variable:
        told += f" Environment: `{variable}`."
    return f"| {name} | {told.replace('|', chr(92) + '|')} | {_default(each)} |"


def _default(each: Any) -> str:
    value = each.default
    if each.required:
        return "required"
    if value is None or callable(value) or value is False or value == () or "Sentinel" in repr(type(value)):
        return ""
    return f"`{getattr(value, 'value', value)}`"
