"""Accounts in a running system: written to the registry for coordinator and gate, and the gate's process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import aclosing

from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.events import Tick
from narrowcast.deliver.parts.part import NEVER, Part
from narrowcast.deliver.processes.backbone import Backbone
from narrowcast.deliver.processes.drive import Driver, Engines
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.nats.gated import GATE
from narrowcast.deliver.transport.nats.link import GATED
from narrowcast.deliver.transport.nats.registry import NatsRegistry
from narrowcast.deliver.trust.accounts import Account
from narrowcast.deliver.trust.audit import Audit
from narrowcast.deliver.trust.gate import Gate
from narrowcast.deliver.trust.mirror import Mirror


async def write_accounts(registry: NatsRegistry, accounts: Iterable[Account]) -> None:
    """Have the registry know these accounts and no others."""
    wanted = {records.named(records.ACCOUNT, each.name): each.record for each in accounts if each.role in GATED}
    known = {value.key: value.data for value in await registry.listed(records.ACCOUNT)}
    for key in sorted(known.keys() - wanted.keys()):
        await registry.delete(key)
    for key, record in sorted(wanted.items()):
        if known.get(key) != record:
            await registry.put(key, record)


class GatePart(Part):
    """What is told about a gate: its counts. It answers questions, and has no clock."""

    role = "gate"

    def __init__(self, name: str, counts: Counter[str]) -> None:
        super().__init__(name)
        self.counts = counts

    def _on_tick(self, event: Tick, now: float) -> None:
        """Nothing."""

    def _next_wake(self, now: float) -> float:
        return NEVER


async def gate_driver(name: str, system: System, base: Backbone) -> Driver:
    """A gate, ready to be started."""
    registry, mirror = base.registry, Mirror(await base.registry.made() or "")
    for value in await registry.listed(""):
        mirror.note(value)
    gate = Gate(base.numbered, registry, mirror, Audit(system.folder), base.system.shards, base.system.to_toml())
    driver = Driver(GatePart(name, gate.counts), Engines(base.numbered, registry))

    async def follow() -> None:
        async with aclosing(registry.watch("")) as changes:
            async for value in changes:
                mirror.note(value)

    async def answer(subject: str, reply: str, data: bytes) -> None:
        said = await gate.answer(subject, reply, data)
        if said is not None:
            await base.link.answer(reply, said)

    async def serve() -> None:
        clock = asyncio.get_running_loop().time

        def heard(subject: str, reply: str, data: bytes) -> None:
            if gate.admits(subject, clock()):
                driver._spawn(answer(subject, reply, data))

        await base.link.serve(f"{GATE}.*.*", GATE, heard)
        await asyncio.Event().wait()

    def begin() -> None:
        driver._spawn(follow())
        driver._spawn(serve())

    driver.on_start = begin
    return driver
