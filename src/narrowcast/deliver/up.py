"""A whole system on this machine, for as long as a block of Python runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrowcast.deliver.client.connect import Connection, connect
from narrowcast.deliver.processes.supervise import start_detached, stop_running
from narrowcast.model.plan import Plan


@dataclass(frozen=True)
class RunningSystem:
    """What `with narrowcast.up(plan) as system` gives: its data folder, and a way in."""

    folder: Path

    def connect(self, **options: Any) -> Connection:
        """A connection to it, as `narrowcast.connect`: `with` or `async with`."""
        return connect(self.folder, **options)


@contextmanager
def up(
    plan: Plan | str | Path | None = None,
    system: str | Path | None = None,
    *,
    key: str | Sequence[str] = (),
    interface: str = "lo",
    domain: int | None = None,
    multicast: bool = True,
    shards: int = 1,
    messages: int = 64,
    sync: str = "always",
    seal: bool = True,
    retention: str = "auto",
) -> Iterator[RunningSystem]:
    """Run a plan on this machine: durable log, coordinator, sources and multicast, until the block ends.

    Parameters
    ----------
    plan : a plan, or its folder; without one every subscription gets a channel of its own
    system : the data folder, kept afterwards; by default a temporary one that goes with the block
    key : the attributes that make a flow, for a plan that does not say
    interface, domain : where multicast goes out, and its DDS domain; by default one that nobody here uses
    multicast : without it everything goes by unicast or from the log
    shards, messages, sync : logs side by side, most messages in one frame, when the log goes to disk
    seal : encrypt and authenticate frames
    retention : how much the log keeps, as 50GB, 7d, both with a comma, or none; by default half of the free space

    Returns
    -------
    RunningSystem : `connect()` to publish and subscribe

    Raises
    ------
    PlanError : the plan is unsound
    TransportError : an engine is missing, or something does not start

        with narrowcast.up(plan) as system, system.connect() as client:
            client.publish([{"symbol": "IBM", "price": 101}])
    """
    with ExitStack() as stack:
        folder = Path(system) if system is not None else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if isinstance(plan, Plan):
            plan.save(folder / "plan", overwrite=True)
            plan = folder / "plan"
        names = (key,) if isinstance(key, str) else tuple(key)
        arguments = up_arguments(
            plan, folder, names, interface=interface, domain=domain, multicast=multicast, shards=shards,
            messages=messages, sync=sync, seal=seal, retention=retention,
        )  # fmt: skip
        start_detached(arguments, folder)
        try:
            yield RunningSystem(folder)
        finally:
            stop_running(folder)


def up_arguments(
    plan: str | Path | None,
    folder: Path,
    key: Sequence[str],
    *,
    interface: str,
    domain: int | None,
    multicast: bool,
    shards: int,
    messages: int,
    sync: str,
    seal: bool = True,
    retention: str = "auto",
) -> list[str]:
    """What to tell `narrowcast up`, for a process that runs it in the foreground."""
    given = [] if plan is None else [str(plan)]
    given += ["--key", ",".join(key)] if key else []
    given += ["--system", str(folder), "--shards", str(shards), "--messages", str(messages), "--sync", sync]
    given += [] if seal else ["--no-seal"]
    given += [] if retention == "auto" else ["--retention", retention]
    if not multicast:
        return [*given, "--no-multicast"]
    given += ["--interface", interface]
    return given if domain is None else [*given, "--domain", str(domain)]
