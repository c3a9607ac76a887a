"""How commands speak: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from narrowcast.model.quantity import quantity

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]


class Terminal(Console):
    """Rich's console, except that a reader who has seen enough (`| head`) is no failure."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


output = Terminal(highlight=False)
notes = Terminal(stderr=True, highlight=False)


def print_json(result: Mapping[str, Any]) -> None:
    """The whole result as one JSON document."""
    json.dump(result, sys.stdout, indent=2, default=_plain)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays, paths and the like, as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()
) -> Table:
    """A rich table, no narrower than its title; the columns named in `numbers` are set flush right."""
    wide = min(len(title), output.width)
    result = Table(title=title, title_justify="left", title_style="bold", header_style="bold", min_width=wide)
    for column in columns:
        result.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        result.add_row(*(text(cell) for cell in row))
    return result


def text(value: object) -> str:
    """A number as people read it: thousands apart, no more digits than matter."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return quantity(value)
    return str(value)


@contextmanager
def working(what: str, most_s: float | None = None) -> Iterator[Callable[[float], None]]:
    """What is being done and for how long, on standard error; what it gives is called with the best cost so far."""
    limit = "" if most_s is None else f" of {most_s:g} s"
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TextColumn(limit))
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda best: bar.update(task, description=f"{what}: best so far {text(best)}")


def progress() -> Progress:
    """A progress bar on standard error; silent where that is no terminal."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=notes,
        transient=True,
        disable=not notes.is_terminal,
    )
