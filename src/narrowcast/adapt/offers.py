"""Offering plans to the coordinator of a running system, and seeing what becomes of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.node import STEADY
from narrowcast.deliver.processes.backbone import Backbone
from narrowcast.errors import TransportError
from narrowcast.model.folder import write_tables
from narrowcast.model.plan import Plan


class Offers:
    """The plans of one adapting process. `base` tells which plan the system was started with."""

    def __init__(self, base: Backbone, folder: Path, fingerprint: str) -> None:
        self._registry, self._folder, self._base = base.registry, folder, fingerprint
        self.epoch: dict[str, Any] = dict(STEADY)
        self._changed = asyncio.Event()

    async def watch(self) -> None:
        """Follow the epoch, for ever."""
        async for _, data, _ in self._registry.watch(records.EPOCH):
            if data is not None:
                with suppress(ValueError):  # the coordinator writes rubbish anew
                    self.epoch = records.read(records.EPOCH, data)
                    self._changed.set()

    @property
    def accepted(self) -> dict[str, Any] | None:
        """The offer in force, if it goes on from the plan that the system was started with."""
        offer: dict[str, Any] | None = self.epoch.get("offer")
        return offer if offer is not None and offer.get("base") == self._base else None

    async def install(self, plan: Plan, patience_s: float) -> bool:
        """Offer a plan and wait until it is in force or refused; one that nobody takes up is withdrawn."""
        before = (await self._registry.get(records.OFFER)).data
        last = 0 if before is None else records.unpack(before)["number"]
        number = max(last, self._in_force, int(self.epoch.get("refused", 0))) + 1
        folder = write_tables(plan.to_tables(), self._folder / f"plan-{number:06d}", overwrite=True)
        offer = {"number": number, "folder": str(folder.resolve()), "base": self._base}
        await self._registry.put(records.OFFER, records.pack(offer))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled(number), patience_s)
        if not self._is_settled(number):
            with suppress(TransportError):
                await self._registry.delete(records.OFFER)
        return self._in_force == number

    async def _settled(self, number: int) -> None:
        while not self._is_settled(number):
            self._changed.clear()
            await self._changed.wait()

    def _is_settled(self, number: int) -> bool:
        return max(self._in_force, int(self.epoch.get("refused", 0))) >= number

    @property
    def _in_force(self) -> int:
        """The number of the offer in force, 0 for none."""
        return int((self.epoch.get("offer") or {"number": 0})["number"])
