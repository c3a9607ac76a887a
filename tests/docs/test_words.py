"""What pages name is there: commands, their options, environment variables and files of the project."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from narrowcast.cli.app import app
from narrowcast.deliver.processes.settings import NOT_A_KEY
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import DdsSettings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "examples").rglob("*.md"))
ROOTS = [ROOT, ROOT / "src/narrowcast", ROOT / "src", ROOT / "src/narrowcast/deliver"]
ROOTS += sorted((ROOT / "src/narrowcast/plans").glob("[a-z]*/"))
FILE = re.compile(r"(?<![a-z/.])(?:[a-z_0-9-]+/)+[a-z_0-9-]+\.(?:py|toml|sh|json|md|css|js)")
SPANS = {"send", "deliver"}  # of traces, not commands
COMMANDS = typer.main.get_command(app)


def lines(page: Path) -> Iterator[str]:
    """Every command line on a page, in blocks and between words."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"\\\n\s*", " ", text)
    for block in re.findall(r"^ *```(?:sh|text)?\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            for piece in re.split(r" \| | ?&& |; ", line):
                found = re.match(r"\s*(?:\w+=\S+ )*narrowcast (.+)", piece)
                yield from [found.group(1)] if found else []
    for inline in re.findall(r"`([^`\n]+)`", text):
        words = inline.removeprefix("narrowcast ")
        if words != inline or (words.split()[0] in COMMANDS.commands and " -" in words):
            yield words


def refused(line: str) -> str | None:
    """What of a command line is not there, or None."""
    try:
        words = shlex.split(line.replace("…", ""), comments=True)
    except ValueError:
        return f"cannot be read: {line}"
    command: Any = COMMANDS
    while words and getattr(command, "commands", None):
        word = words.pop(0)
        if word in command.commands:
            command = command.commands[word]
        elif word == "--log-format":
            words.pop(0)
        elif not word.startswith("-"):
            return None if word.isupper() or word in SPANS else f"no command {word!r}: {line}"
    try:
        _, extra, _ = command.make_parser(command.context_class(command)).parse_args(
            [word for word in words if word not in ("-v", "&", ">") and not word.endswith((".txt", "received.jsonl"))]
        )
    except Exception as error:  # the parser's; words may name an option without its value
        return None if "requires an argument" in str(error) else f"{error}: {line}"
    return f"{extra} is too much: {line}" if extra and not getattr(command, "commands", None) else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_and_option_of_a_page_is_there(page: Path) -> None:
    assert [told for told in map(refused, lines(page)) if told] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    inline = [
        each for span in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")) for each in FILE.findall(span)
    ]
    assert [name for name in inline if not any((root / name).exists() for root in ROOTS)] == []


def takers(variable: str, command: Any = COMMANDS, name: str = "") -> Iterator[str]:
    """The commands with an option that a variable stands for."""
    for each, inside in getattr(command, "commands", {}).items():
        yield from takers(variable, inside, f"{name} {each}".strip())
    yield from [name] if any(each.envvar == variable for each in command.params) else []


@pytest.mark.parametrize("variable", ["NARROWCAST_CONFIG", "NARROWCAST_INTERFACE", "NARROWCAST_MASTER"])
def test_the_page_names_every_command_that_a_variable_is_for(variable: str) -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{variable}`"))
    assert sorted(re.findall(r"`([a-z]+)`", row.split("|")[3])) == sorted(takers(variable))


def test_the_page_of_the_configuration_file_has_every_setting_and_no_other() -> None:
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    told: set[str] = set()
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        heading, *rest = part.splitlines()
        sections = re.findall(r"`\[(\w+)\]`", heading)
        names = re.findall(r"`([\w.]+)`", "".join(row.split("|")[1] for row in rest if row.startswith("| `")))
        told |= {f"{sections[0]}.{name}" if len(sections) == 1 else name for name in names}
    adapt = (ROOT / "docs/adapting.md").read_text(encoding="utf-8")
    rows = [row for row in adapt.splitlines() if row.startswith("| `")]
    told |= {f"adapt.{name}" for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    told |= {f"adapt.{name}" for name in re.findall(r"`adapt\.(\w+)`", page)}
    assert sorted(told) == sorted(settings(System) | {f"multicast.{each.name}" for each in fields(DdsSettings)})


def settings(section: Any, prefix: str = "") -> set[str]:
    """The names a file may have, those of its tables with a dot."""
    found: set[str] = set()
    for each in fields(section):
        if is_dataclass(each.default):
            found |= settings(each.default, f"{each.name}.")
        elif each.metadata != NOT_A_KEY and each.name != "multicast":
            found.add(prefix + each.name)
    return found
