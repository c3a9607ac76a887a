"""Plans from the console: what is in force, what else there could be, and putting another one in force."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import datetime
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from narrowcast.adapt.offers import Offers
from narrowcast.console import work
from narrowcast.console.answers import live_section
from narrowcast.console.watch import SystemWatch
from narrowcast.deliver.processes.backbone import Backbone
from narrowcast.deliver.processes.planner import base_of
from narrowcast.deliver.wire import Batch, ColumnBatch, decode_entry
from narrowcast.errors import InputError, PlanError
from narrowcast.model.folder import HEAD

T = TypeVar("T")
MOST_MESSAGES, MOST_ENTRIES = 20_000, 2_000
PATIENCE_S = 60.0


class Desk:
    """Where plans are looked at and changed. `plan` is the folder the system was started with; None: it has none.

    Planning runs in one process of its own: the page goes on, and one question is answered after the other.
    """

    def __init__(
        self, base: Backbone, watch: SystemWatch, plan: Path | None, folder: Path, *, snapshots: Path | None = None,
        others: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        self._base, self._watch, self._plan, self._folder = base, watch, plan, folder
        self._snapshots, self.others = snapshots, tuple(others)
        self.offers = None if plan is None else Offers(base, folder / "plans", base_of(plan))
        self.proposals: dict[int, dict[str, Any]] = {}
        self._numbers = count(1)
        self._pool: ProcessPoolExecutor | None = None
        self._turn = asyncio.Lock()

    @property
    def in_force(self) -> str:
        """The folder of the plan in force; InputError where the console knows of none."""
        if self._plan is None or self.offers is None:
            raise InputError(
                "the console knows no plan of this system", name="plan", hint="narrowcast console --plan DIR"
            )
        accepted = self.offers.accepted
        folder = self._plan if accepted is None else Path(accepted["folder"])
        if not (folder / HEAD).is_file():
            raise InputError(f"the plan in force is not on this host: {folder}", name="plan", got=str(folder))
        return str(folder.resolve())

    def about(self) -> dict[str, Any]:
        """The plan in force in a few words, without reading its tables."""
        try:
            folder = Path(self.in_force)
            head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
            return {"kind": head["kind"], "folder": str(folder)}
        except (InputError, OSError, ValueError, KeyError) as error:
            return {"kind": None, "why": str(error)}

    async def _work(self, call: Callable[..., T], *arguments: Any) -> T:
        async with self._turn:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            try:
                return await asyncio.get_running_loop().run_in_executor(self._pool, call, *arguments)
            except BrokenProcessPool:
                self._pool = None
                raise PlanError("the planning process was ended; ask again") from None

    def close(self) -> None:
        """End the planning process, whatever it is at."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(cancel_futures=True)

    # Questions.

    async def explain(self, what: str, name: str, behind: str | None = None) -> str:
        return await self._work(work.explanation_markup, self.in_force, what, name, self._base.system.key, behind)

    async def report(self) -> dict[str, Any]:
        return await self._work(work.reported, self.in_force, self._base.system.key, live_section(self._watch))

    async def whatif(self, more: int) -> dict[str, Any]:
        return await self._work(work.asked_more, self.in_force, more, await self._lately())

    async def _lately(self) -> work.Lately:
        """The newest messages of the log, as many as are worth a plan."""
        payloads: list[bytes] = []
        stamps: list[str] = []
        for shard in self._base.system.every_shard:
            last = await self._base.log.last(shard)
            after, mine = max(0, last - MOST_ENTRIES), list[bytes]()
            while after < last:
                stretch = await self._base.log.read(shard, after, most=256, upto=last)
                for entry in stretch.entries:
                    batch = decode_entry(entry.data)
                    if isinstance(batch, Batch):
                        mine += batch.payloads
                        stamps.append(entry.stamp)
                    elif isinstance(batch, ColumnBatch):
                        from narrowcast.deliver.wire.columns import payloads_of

                        mine += payloads_of(batch)
                        stamps.append(entry.stamp)
                if stretch.upto <= after:
                    break
                after = stretch.upto
            payloads += mine[-MOST_MESSAGES:]
        records = self._watch.subscriptions
        return work.Lately(
            payloads,
            _seconds(stamps),
            {name: record["profile"] for name, record in records.items()},
            {name: record["gateway"] for name, record in records.items() if record.get("gateway") is not None},
            self._base.system.key,
            None if self._snapshots is None else str(self._snapshots),
        )

    # Changes.

    async def propose(self, budget: int | None = None, other: int | None = None) -> dict[str, Any]:
        """A plan for the demand of now, or the one in a folder that was named at the start; judged, not installed."""
        number = next(self._numbers)
        out = str((self._folder / f"proposal-{number}").resolve())
        if other is None:
            found = await self._work(work.proposed, self.in_force, budget, await self._lately(), out)
        elif 0 <= other < len(self.others):
            named = str(self.others[other].resolve())
            found = await self._work(work.offered, self.in_force, named, out, self._base.system.key)
        else:
            raise InputError(f"folder must be from 0 to {len(self.others) - 1}, got {other}", name="folder", got=other)
        self.proposals = {number: found | {"id": number}}  # one at a time
        return self.proposals[number]

    async def install(self, number: int) -> dict[str, Any]:
        """Offer a proposal to the coordinator and wait until it is in force or refused."""
        proposal = self.proposals.pop(number, None)
        if proposal is None or self.offers is None:
            raise InputError(f"no proposal has the number {number}; propose again", name="id", got=number)
        plan = await asyncio.to_thread(work.plan_in, proposal["folder"], self._base.system.key)
        done = await self.offers.install(plan, PATIENCE_S)
        epoch = self.offers.epoch["current"]
        says = (
            f"In force as epoch {epoch}."
            if done
            else "Refused: not everybody could prepare for it. The old plan stays."
        )
        return {"installed": done, "epoch": epoch, "says": says}


def _seconds(stamps: Sequence[str]) -> float:
    """Between the first and the last; a second where they do not say."""
    known = sorted(stamp for stamp in stamps if stamp)
    if len(known) < 2:
        return 1.0
    first, last = (datetime.fromisoformat(stamp[:19]).timestamp() for stamp in (known[0], known[-1]))
    return max(1.0, last - first)
