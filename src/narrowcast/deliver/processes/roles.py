"""The processes: each runs one part from a configuration file until it is told to stop.

`python -m narrowcast.deliver.processes.roles ROLE FILE` is what `narrowcast up` starts; `narrowcast ROLE --config FILE`
is the same for people.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from narrowcast.deliver.parts.broker import Broker
from narrowcast.deliver.parts.coordinator import Coordinator, CoordinatorSettings
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.events import Consumed, Subscribe
from narrowcast.deliver.parts.relay import glance
from narrowcast.deliver.parts.source import Source, SourceSettings
from narrowcast.deliver.parts.statistics import report_for_ever
from narrowcast.deliver.processes.backbone import Backbone, backbone
from narrowcast.deliver.processes.configuration import Configuration, read_configuration
from narrowcast.deliver.processes.drive import Driver, Engines
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import packet_bytes
from narrowcast.errors import InputError, NarrowcastError, TransportError

log = logging.getLogger(__name__)


def _name(config: Configuration, role: str) -> str:
    return str(config.part(role).get("name") or f"{role}-{socket.gethostname()}")


def _keys(config: Configuration) -> Path:
    return config.path(config.part("overlay").get("keys", "keys"))


async def coordinator(config: Configuration, base: Backbone) -> Driver:
    """Whoever coordinates needs a name of its own at every start: a lease is held by one process, once."""
    from narrowcast.deliver.processes.planner import FolderPlanner  # the only role that needs Arrow and NumPy

    mine = config.part("coordinator")
    planner = FolderPlanner.read(
        config.path(mine["plan"]) if "plan" in mine else None, mine.get("key", ["symbol"]), mine.get("memberships")
    )
    if base.system.multicast is not None:
        planner.groups = base.system.multicast.groups
    settings = CoordinatorSettings(every=mine.get("every"))
    name = f"{_name(config, 'coordinator')}-{os.getpid()}-{secrets.token_hex(2)}"
    part = Coordinator(name, base.system.every_shard, settings)
    driver = Driver(part, Engines(base.log, base.registry), planner=planner)
    driver.extra = lambda: {"predicted": planner.prediction, "leads": part.leads}
    return driver


async def source(config: Configuration, base: Backbone) -> Driver:
    mine = config.part("source")
    shard = mine.get("shard", 0)
    settings = SourceSettings(
        most_messages=mine.get("messages", 64),
        most_bytes=mine.get("bytes", packet_bytes(base.system.multicast)),
        linger=mine.get("linger_ms", 0) / 1000,
        settle=mine.get("settle_ms", 20) / 1000,
        heartbeat=mine.get("heartbeat_ms", 250) / 1000,
        poll=0.25,  # the tail says sooner
    )
    part = Source(_name(config, "source"), shard, settings)
    return Driver(part, base.engines(part.name, overlay=base.overlay(part.name, _keys(config))), tail=shard)


async def broker(config: Configuration, base: Backbone) -> Driver:
    return a_broker(_name(config, "broker"), config, base)


async def brokers(config: Configuration, base: Backbone) -> list[Driver]:
    """All brokers of the configuration in one process: an overlay on one machine."""
    return [a_broker(name, config, base) for name in sorted(config.part("overlay").get("brokers", {}))]


def a_broker(name: str, config: Configuration, base: Backbone) -> Driver:
    links = base.overlay(name, _keys(config), listen=True)
    return Driver(Broker(name), base.engines(name, multicast=False, overlay=links), open_frame=glance)


async def edge(config: Configuration, base: Backbone) -> Driver:
    """Serves the subscriptions in its configuration, each written to a file of its own that survives its death."""
    from narrowcast.deliver.processes.outlet import Outlet

    mine = config.part("edge")
    part = Edge(_name(config, "edge"), base.system.every_shard, gateway=mine.get("gateway"))
    outlet = Outlet(config.path(mine.get("out", "received")))
    driver = Driver(part, base.engines(part.name, overlay=base.overlay(part.name, _keys(config))), application=outlet)

    def begin() -> None:
        for name, profile in mine.get("subscriptions", {}).items():
            driver.tell(Subscribe(name, profile, outlet.position(name, profile)))

    outlet.consumed = lambda name, count: driver.tell(Consumed(name, count))
    driver.on_start = begin
    return driver


ROLES: dict[str, Callable[[Configuration, Backbone], Any]] = {
    "coordinator": coordinator,
    "source": source,
    "broker": broker,
    "edge": edge,
    "brokers": brokers,
}


async def run_role(role: str, config: Configuration, *, stop: asyncio.Event | None = None) -> None:
    """Run one role until `stop` is set, or SIGTERM or SIGINT comes. NATS may come up later than we do."""
    stop = stop or _on_signals()
    base = await _connect(role, config, stop)
    if base is None:
        return
    try:
        made = await ROLES[role](config, base)
        drivers: list[Driver] = made if isinstance(made, list) else [made]
        reports = []
        for driver in drivers:
            await driver.start()
            log.info("%s runs", driver.part.name)
            reports.append(asyncio.ensure_future(report_for_ever(base, driver, extra=driver.extra)))
        stopped = asyncio.ensure_future(stop.wait())
        failed = [driver.failed for driver in drivers]
        ends: set[asyncio.Future[Any]] = {stopped, *failed}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in (*reports, stopped):
            task.cancel()
        for driver in drivers:
            with suppress(TransportError):
                await driver.stop()
        for each in failed:
            if each.done():
                each.result()
    finally:
        await base.close()


async def _connect(role: str, config: Configuration, stop: asyncio.Event) -> Backbone | None:
    """A coordinator sets the system up; everybody else waits until one has."""
    found = await _system(config) if role == "coordinator" else None
    interface = config.multicast.interface if config.multicast else None
    waited = 0.0
    while not stop.is_set():
        try:
            return await backbone(
                config.url, name=role, system=config.system, found=found, interface=interface, replicas=config.replicas
            )
        except TransportError as error:
            if waited >= 30:
                raise
            log.info("%s", error)
            waited += 0.2
            await asyncio.sleep(0.2)
    return None


async def _system(config: Configuration) -> System:
    brokers = config.part("overlay").get("brokers", {})
    known: dict[str, tuple[str, str]] = {}
    if brokers:
        from narrowcast.deliver.transport.zmq.keys import CLIENTS, public_key

        public_key(_keys(config), CLIENTS)  # so that it is there to be given to clients
        known = {name: (at, public_key(_keys(config), name)) for name, at in brokers.items()}
    return System(config.shards, config.multicast, known)


def _on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def main(arguments: list[str]) -> int:
    """The process `narrowcast up` starts: one line on standard error if it cannot go on."""
    from narrowcast.deliver.transport.nats.server import die_with_parent

    role, path = arguments
    if role not in ROLES:
        raise InputError(f"no role {role!r}; roles: {', '.join(ROLES)}", name="role", got=role)
    die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    gc.freeze()  # what was imported stays; and messages are no cycles
    gc.set_threshold(50_000, 20, 20)
    try:
        asyncio.run(run_role(role, read_configuration(Path(path))))
    except NarrowcastError as error:
        print(f"narrowcast {role}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
