"""Options that every command on Spark has, and its progress on the terminal."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.arguments import pairs
from narrowcast.cli.output import notes, progress, text
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.data.spark.output import TableStep
    from narrowcast.data.spark.progress import TaskReporter

Master = Annotated[
    str,
    typer.Option(
        envvar="NARROWCAST_MASTER",
        help="Where Spark runs: local[*], local[4], spark://host:port, yarn, or sc://host:port (Spark Connect).",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        help="A setting of Spark, as spark.executor.memory=4g; may be given several times. It wins over ours.",
    ),
]
Memory = Annotated[
    str,
    typer.Option(envvar="NARROWCAST_MEMORY", help="Memory of Spark's driver, such as 4g; on local[…] of all Spark."),
]
Out = Annotated[
    Path, typer.Option(help="The folder to write, or its URL (s3://…, gs://…, hdfs://…); it must not exist yet.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Print each step's rows and seconds as it is done.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result of the same name.")]


@contextmanager
def running(
    master: str, memory: str, what: str, sources: Iterable[str | Path] = (), conf: list[str] | None = None
) -> Iterator[tuple[Any, TaskReporter]]:
    """A Spark session for inputs of this size and a reporter that moves a progress bar; both end with the block."""
    settings = spark_settings(conf)
    from narrowcast.data.spark.session import session
    from narrowcast.data.spark.sizing import are_small

    with progress() as bar:
        task = bar.add_task("starting Spark", total=None)
        _without_stacks()
        spark = session(master, memory=memory, quick=are_small(sources), extra=settings)
        # PySpark's own handler would ask Java something in the middle of another question.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        bar.update(task, description=what)
        try:
            yield spark, lambda done, total: bar.update(task, completed=done, total=total or None)
        except KeyboardInterrupt:
            with suppress(Exception):
                spark.sparkContext.setLogLevel("OFF")
            raise
        finally:
            spark.stop()


def _without_stacks() -> None:
    """Ctrl-C is one line: neither the bridge to Java nor Java itself need say where it met them."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: not str(record.msg).endswith("while sending command."))


@contextmanager
def near(place: str | Path, name: str, master: str = "local", conf: list[str] | None = None) -> Iterator[str | Path]:
    """An input where Spark can read it: a copy on this machine of one elsewhere, if Spark runs here.

    A Spark that was given packages of its own, and a cluster's, reads URLs by itself.
    """
    from narrowcast.model.stores import fetched, is_url, reachable

    own = any(setting.startswith(("spark.jars", "spark.hadoop.fs.")) for setting in conf or ())
    if not is_url(place) or not reachable(place) or own or not master.startswith("local"):
        yield place
        return
    with ExitStack() as until:
        with notes.status(f"fetching {name}"):
            here = until.enter_context(fetched(place, name))
        yield here


def as_given(place: str | Path) -> str:
    """A place as a person writes it: a Path has made one slash of two in a URL."""
    from narrowcast.model.stores import as_url, is_url

    return as_url(place) if is_url(place) else str(place)


def say(step: TableStep) -> None:
    """One line per step for --explain."""
    notes.print(f"{step.table:<26} {text(step.rows):>14} rows {step.seconds:>9.2f} s", soft_wrap=True)


def spark_settings(given: list[str] | None) -> dict[str, str]:
    """`--conf NAME=VALUE` as Spark's settings; what another option says is refused.

    >>> spark_settings(["spark.executor.memory=4g"])
    {'spark.executor.memory': '4g'}
    """
    own = {"spark.master": "--master", "spark.driver.memory": "--memory", "spark.remote": "--master sc://…"}
    found = {}
    for pair in given or ():
        name, _, value = pair.partition("=")
        if not name.startswith("spark.") or not value:
            message = f"--conf must be NAME=VALUE, e.g. spark.executor.memory=4g, got {pair!r}"
            raise InputError(message, name="conf", got=pair)
        if name in own:
            raise InputError(
                f"--conf must not set {name}, got {pair!r}", name="conf", got=pair, hint=f"use {own[name]}"
            )
        found[name] = value
    return found


def types(given: list[str] | None) -> dict[str, str] | None:
    """`name=type` pairs, the types as Spark calls them."""
    from narrowcast.data.ingest.types import NAMES, attribute_types

    found = {}
    for pair in pairs(given):
        name, _, kind = pair.rpartition("=")
        if not name or not kind:
            raise InputError(
                f"--type must be NAME=TYPE, e.g. price=double, got {pair!r}",
                name="type",
                allowed=tuple(NAMES),
                got=pair,
                hint=f"types are {', '.join(NAMES)}",
            )
        found[name] = kind
    return attribute_types(found) or None
