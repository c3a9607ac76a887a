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
from dataclasses import replace
from typing import Any

from narrowcast.deliver.parts.broker import Broker
from narrowcast.deliver.parts.coordinator import Coordinator, CoordinatorSettings
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.events import Consumed, Replan, Subscribe
from narrowcast.deliver.parts.relay import glance
from narrowcast.deliver.parts.site_relay import RelaySettings, SiteRelay
from narrowcast.deliver.parts.source import Source, SourceSettings
from narrowcast.deliver.processes.backbone import Backbone, backbone
from narrowcast.deliver.processes.drive import Driver, Engines
from narrowcast.deliver.processes.logs import set_up_logs
from narrowcast.deliver.processes.retention import count_dropped, parse_retention
from narrowcast.deliver.processes.statistics import report_for_ever, snapshots_of
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import packet_bytes
from narrowcast.deliver.transport.loop import run
from narrowcast.errors import InputError, NarrowcastError, TransportError
from narrowcast.model.folder import plan_key

log = logging.getLogger(__name__)
PACKETS = 50  # that a frame of columns may take: carriers cut it, and repair what is lost of it
START_S = 30.0  # for NATS, and for a coordinator that sets the system up


def _name(given: str | None, role: str) -> str:
    return given or f"{role}-{socket.gethostname()}"


async def coordinator(system: System, base: Backbone) -> Driver:
    """Whoever coordinates needs a name of its own at every start: a lease is held by one process, once."""
    from narrowcast.deliver.processes.planner import FolderPlanner  # the only role that needs Arrow and NumPy

    mine = system.coordinator
    planner = FolderPlanner.read(system.plan, mine.key, mine.memberships)
    if base.system.multicast is not None:
        planner.groups = base.system.multicast.groups
    settings = CoordinatorSettings(seal=base.system.security.seal).paced(mine.every)
    name = f"{_name(mine.name, 'coordinator')}-{os.getpid()}-{secrets.token_hex(2)}"
    part = Coordinator(name, base.system.every_shard, settings)
    driver = Driver(part, Engines(base.numbered, base.registry), planner=planner)
    shards = base.system.every_shard

    def again() -> None:
        # The log may not be the one it was: a new epoch has a marker in whatever it is now.
        driver.tell(Replan())
        driver.spawn(base.log.begin(shards))

    base.link.on_reconnect(again)
    driver.extra = lambda: {"predicted": planner.prediction, "leads": part.leads}
    return driver


def _source_settings(system: System, base: Backbone) -> SourceSettings:
    mine = system.source
    return SourceSettings(
        most_messages=mine.messages,
        most_bytes=mine.bytes or packet_bytes(base.system.multicast),
        most_columns=PACKETS * packet_bytes(base.system.multicast),
        linger=mine.linger_ms / 1000,
        settle=mine.settle_ms / 1000,
        heartbeat=mine.heartbeat_ms / 1000,
        poll=0.25,  # the tail says sooner
    )


async def source(system: System, base: Backbone) -> Driver:
    mine = system.source
    name, settings = _name(mine.name, "source"), _source_settings(system, base)
    part = Source(name, mine.shard, settings, gateway=mine.gateway)
    base.sealing(part)
    return Driver(part, base.engines(part.name, overlay=base.overlay(part.name, system.keys)), tail=mine.shard)


async def broker(system: System, base: Backbone) -> Driver:
    return a_broker(_name(system.broker.name, "broker"), system, base)


async def brokers(system: System, base: Backbone) -> list[Driver]:
    """All brokers of the configuration in one process: an overlay on one machine."""
    return [a_broker(name, system, base) for name in sorted(system.overlay.brokers)]


def a_broker(name: str, system: System, base: Backbone) -> Driver:
    links = base.overlay(name, system.keys, listen=True)
    part = Broker(name)
    base.sealing(part)
    return Driver(part, base.engines(name, multicast=False, overlay=links), open_frame=glance)


async def relay(system: System, base: Backbone) -> list[Driver]:
    """The relays of the sites whose gateways the configuration names; frames are made as sources make them."""
    settings = RelaySettings(source=_source_settings(system, base))
    drivers = []
    for gateway in system.relay.gateways:
        part = SiteRelay(f"{system.relay.name}-{gateway}", base.system.every_shard, settings, gateway=gateway)
        base.sealing(part)
        drivers.append(Driver(part, base.engines(part.name, overlay=base.overlay(part.name, system.keys))))
    return drivers


async def edge(system: System, base: Backbone) -> Driver:
    """Serves the subscriptions in its configuration, each written to a file of its own that survives its death.

    And those of other processes on its host, if it has a socket for them.
    """
    from narrowcast.deliver.processes.outlet import Outlet
    from narrowcast.deliver.processes.shared.server import EdgeServer

    mine = system.edge
    part = Edge(base.owned(_name(mine.name, "edge")), base.system.every_shard, gateway=mine.gateway)
    base.sealing(part)
    outlet = Outlet(system.path(mine.out))
    driver = Driver(part, base.engines(part.name, overlay=base.overlay(part.name, system.keys)), application=outlet)
    if mine.socket is not None:
        shared = EdgeServer(system.path(mine.socket), driver, base.allowed, outlet)
        driver.application, driver.on_stop = shared.told, shared.stop

    wanted = {base.owned(name): await base.allowed(profile) for name, profile in mine.subscriptions.items()}

    def begin() -> None:
        if mine.socket is not None:
            driver.spawn(shared.start())
        for name, profile in wanted.items():
            driver.tell(Subscribe(name, profile, outlet.position(name, profile)))

    outlet.consumed = lambda name, count: driver.tell(Consumed(name, count))
    driver.on_start = begin
    return driver


async def gate(system: System, base: Backbone) -> Driver:
    """Answers publishers and subscribers that have accounts."""
    from narrowcast.deliver.processes.admission import gate_driver

    return await gate_driver(_name(None, "gate"), system, base)


ROLES: dict[str, Callable[[System, Backbone], Any]] = {
    "coordinator": coordinator,
    "source": source,
    "broker": broker,
    "edge": edge,
    "relay": relay,
    "brokers": brokers,
    "gate": gate,
}


async def run_role(role: str, system: System, *, stop: asyncio.Event | None = None) -> None:
    """Run one role until `stop` is set, or SIGTERM or SIGINT comes. NATS may come up later than we do."""
    stop = stop or _on_signals()
    base = await _connect(role, system, stop)
    if base is None:
        return
    end_metrics: Callable[[], None] | None = None
    try:
        made = await ROLES[role](system, base)
        drivers: list[Driver] = made if isinstance(made, list) else [made]
        reports = []
        for driver in drivers:
            await driver.start()
            log.info("%s started", driver.part.name)
            reports.append(asyncio.ensure_future(report_for_ever(base, driver, extra=driver.extra)))
        if role == "coordinator":
            watch = count_dropped(base.log.bounds, base.system.every_shard, drivers[0].counts)
            reports.append(asyncio.ensure_future(watch))
        if role != "edge":
            base.registry.on_back = lambda: _begin_again(drivers)
        if system.metrics.port is not None:
            from narrowcast.deliver.processes.metrics import serve_metrics

            _, end_metrics = serve_metrics(system.metrics.port, system.metrics.address, lambda: snapshots_of(drivers))
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
        if end_metrics is not None:
            await asyncio.to_thread(end_metrics)  # a scrape that is under way needs the loop
        await base.close()


def _begin_again(drivers: list[Driver]) -> None:
    """The registry went back, and what was learnt from it with it: end, to be started anew."""
    for driver in drivers:
        if not driver.failed.done():
            driver.failed.set_exception(TransportError("the registry was restored or emptied: starting again"))


async def _connect(role: str, system: System, stop: asyncio.Event) -> Backbone | None:
    """A coordinator sets the system up; everybody else waits until one has."""
    found = _public(system) if role == "coordinator" else None
    interface = system.multicast.interface if system.multicast else None
    limits = _limits(system) if role == "coordinator" else {}
    loop = asyncio.get_running_loop()
    end = loop.time() + START_S
    while not stop.is_set():
        try:
            return await backbone(
                system.url, name=role, system=system.system, found=found, interface=interface,
                replicas=system.replicas, patience=2.0, **limits,
            )  # fmt: skip
        except TransportError as error:
            if loop.time() >= end:
                raise
            log.info("%s is waiting for the system to start: %s", role, error)
            await asyncio.sleep(0.2)
    return None


def _limits(system: System) -> dict[str, Any]:
    """What the log of each shard keeps, where the system says so."""
    kept = parse_retention(system.retention)
    if kept is None:
        return {}
    return {"max_bytes": (kept.size_bytes or 0) // system.shards, "max_age": kept.age_s or 0}


def _public(system: System) -> System:
    """What the registry is to hold; keys that are not there yet are made."""
    key = system.coordinator.key or (plan_key(system.plan) if system.plan is not None else ())
    if not system.overlay.brokers:
        return system.public({}, key)
    from narrowcast.deliver.transport.zmq.keys import CLIENTS, public_key

    public_key(system.keys, CLIENTS)  # so that it is there to be given to clients
    return system.public({name: public_key(system.keys, name) for name in system.overlay.brokers}, key)


def _on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def main(arguments: list[str]) -> int:
    """The process `narrowcast up` starts: one line on standard error if it cannot go on."""
    from narrowcast.deliver.transport.nats.server import die_with_parent

    role, path, *metrics = arguments
    if role not in ROLES:
        raise InputError(f"role must be one of {', '.join(ROLES)}, got {role!r}", name="role", got=role)
    die_with_parent()
    set_up_logs(logging.INFO)
    gc.freeze()  # what was imported stays; and messages are no cycles
    gc.set_threshold(50_000, 20, 20)
    try:
        system = System.read(path)
        if metrics:
            system = replace(system, metrics=replace(system.metrics, port=int(metrics[0])))
        run(run_role(role, system))
    except NarrowcastError as error:
        print(f"narrowcast {role}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
