"""Adapting beside a running system: statistics in, decisions, plans offered to the coordinator, a timeline out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from narrowcast.adapt import timeline
from narrowcast.adapt.loop import Loop, PlannedMove
from narrowcast.adapt.offers import Offers
from narrowcast.adapt.sample import LogSample
from narrowcast.adapt.settings import AdaptSettings
from narrowcast.adapt.statistics import NO_KEY, demand_of, start
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import Backbone
from narrowcast.deliver.processes.planner import base_of
from narrowcast.errors import InputError, NarrowcastError, TransportError
from narrowcast.model import snapshot as snapshots
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.aggregation import read_prices
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.kinds import kind_of
from narrowcast.plans.verbs import load
from narrowcast.profiles.parsed import parsed

log = logging.getLogger(__name__)

POLL_S = 0.25
Told = Callable[[dict[str, Any]], None]


class Live:
    """One adapting process. Several would disturb each other: the numbers of their offers compete."""

    def __init__(self, base: Backbone, settings: AdaptSettings, told: Told = lambda row: None) -> None:
        self.base, self.settings, self._told = base, settings, told
        self.offers = Offers(base, settings.folder / "plans", base_of(settings.plan))
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self._loop: Loop | None = None
        self._prices: tuple[float, float] | None = None
        self._in_force = 0  # the number of the offer that the loop goes on from
        self._before: snapshots.Snapshot | None = None
        self._sample = LogSample(base.log, base.system.every_shard)
        stage = kind_of(load(settings.plan).kind).replan
        self._sources: tuple[str, ...] | None = getattr(stage, "SOURCES", None)  # of plans that look into messages

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set, or the statistics have ended."""
        watches = [asyncio.ensure_future(work) for work in (self.offers.watch(), self._watch(), self._report())]
        following = None
        try:
            if self.settings.snapshots is None:
                following = await asyncio.to_thread(start, self.settings.followed, self._present)
            while not stop.is_set():
                await self._look(self.settings.snapshots or self.settings.followed.out)
                if following is not None and not following.query.isActive:
                    await asyncio.to_thread(following.wait, 1)
                    raise NarrowcastError("streaming statistics ended")
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), POLL_S)
        finally:
            for task in watches:
                task.cancel()
            if following is not None:
                await asyncio.to_thread(following.stop, 20.0)

    # What the registry says.

    async def _watch(self) -> None:
        async for key, data, _ in self.base.registry.watch(records.SUBSCRIPTION):
            name = records.name_of(key)
            if data is None:
                self.subscriptions.pop(name, None)
            else:
                with suppress(ValueError):  # whoever wrote rubbish there is not served by it
                    self.subscriptions[name] = records.read(key, data)

    def _present(self) -> list[tuple[str, str]]:
        return [(name, record["profile"]) for name, record in list(self.subscriptions.items())]

    # Statistics in, decisions out.

    async def _look(self, folder: Path) -> None:
        """Take the newest snapshot, if there is a new one."""
        after = -1 if self._before is None else self._before.number
        now = await asyncio.to_thread(snapshots.latest, folder, after=after)
        if now is None or (self._before is not None and now.messages == self._before.messages):
            return
        nodes = {name: r["gateway"] for name, r in self.subscriptions.items() if r.get("gateway") is not None}
        demand = demand_of(now, self._before, profiles=dict(self._present()), nodes=nodes)
        self._before = now
        if demand.interest.n_pairs or (demand.profiles and now.key == NO_KEY):
            await self._step(await self._with_messages(demand))

    async def _with_messages(self, demand: Demand) -> Demand:
        """With what was sent since the last look, as far as profiles speak of it, and where it came from."""
        if self._sources is None:
            return demand
        named = {name for text in set(demand.profiles.values()) for name in parsed(text).attributes}
        return replace(demand, messages=await self._sample.take({*named, *self._sources}))

    async def _step(self, demand: Demand) -> None:
        running = asyncio.get_running_loop()

        def install(move: PlannedMove) -> bool:
            asked = asyncio.run_coroutine_threadsafe(self.offers.install(move.plan, self.settings.patience_s), running)
            return asked.result(self.settings.patience_s + 30)

        loop = self._agreed(demand)
        loop.install = install
        try:
            row = await asyncio.to_thread(loop.step, demand)
        except TransportError as error:  # the registry is down: the plan in force stays, and is looked at again
            log.warning("the plan was not moved, the registry failed: %s", error)
            self._loop = None
            return
        self._in_force = (self.offers.accepted or {"number": 0})["number"]
        timeline.append(self.settings.folder, row)
        self._told(row)

    def _agreed(self, demand: Demand) -> Loop:
        """The loop, going on from the plan that is really in force, whoever installed it."""
        accepted = self.offers.accepted
        number = 0 if accepted is None else accepted["number"]
        prices = self._measured_prices()
        if self._loop is None or number != self._in_force or prices != self._prices:
            self._prices = prices
            plan = self._priced(load(self.settings.plan if accepted is None else accepted["folder"]))
            present = kind_of(plan.kind).replan.continued(plan, demand)
            self._loop = Loop(present, self.settings.policy, installed=plan)
            self._in_force = number
        return self._loop

    def _measured_prices(self) -> tuple[float, float] | None:
        """What `calibrate` wrote last; a file that cannot be read changes nothing."""
        path = self.settings.prices
        with suppress(InputError):
            return None if path is None or not path.exists() else read_prices(path)
        return self._prices

    def _priced(self, plan: Plan) -> Plan:
        """With the prices that were measured on this system, where it is of a kind that they are for."""
        if self._prices is None or not isinstance(plan, ChannelsPlan) or plan.weights is not None:
            return plan
        alpha, beta = self._prices
        return replace(plan, parameters={**plan.parameters, "alpha": alpha, "beta": beta})

    # For people to look at.

    async def _report(self) -> None:
        while True:
            found = timeline.summary(await asyncio.to_thread(timeline.read, self.settings.folder))
            told = {"name": "adapt", "role": "adapt", "counts": {}, "carried": {}, "adapting": found}
            told["epoch"] = self.offers.epoch["current"]
            with suppress(TransportError):
                await self.base.publish_statistics("adapt", json.dumps(told).encode())
            await asyncio.sleep(1.0)
