"""Everything on one machine: a NATS server in a data folder, a coordinator and sources, started and kept running."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.admission import write_accounts
from narrowcast.deliver.processes.backbone import KEYS, URL_FILE, backbone, url_of
from narrowcast.deliver.processes.disk import Disk
from narrowcast.deliver.processes.preflight import is_unused
from narrowcast.deliver.processes.retention import AUTO, kept_retention
from narrowcast.deliver.processes.system import (
    CoordinatorSection,
    OverlaySection,
    RelaySection,
    SecuritySection,
    SourceSection,
    System,
    new_id,
)
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.nats.link import NatsLink, connect_nats
from narrowcast.deliver.transport.nats.log import DISK, DISK_FREE, DISK_FULL
from narrowcast.deliver.transport.nats.server import NatsServer, free_port
from narrowcast.deliver.transport.private_file import write_private
from narrowcast.deliver.trust.accounts import SERVICES, Accounts, account_of, nats_users
from narrowcast.deliver.trust.audit import Audit
from narrowcast.errors import InputError, TransportError

if TYPE_CHECKING:
    from narrowcast.model.plan import Plan

log = logging.getLogger(__name__)
STATE = "up.json"
CONFIGURATION = "up.toml"
ID = "system.id"
LOOPBACK = "127.0.0.1"
HERE = DdsSettings()  # multicast on loopback
_STARTED: dict[int, subprocess.Popen[bytes]] = {}  # by this process, to be waited for at their end


def local_system(
    folder: Path,
    plan: Path | None = None,
    *,
    key: tuple[str, ...] = (),
    shards: int = 1,
    messages: int = 64,
    multicast: DdsSettings | None = HERE,
    brokers: Mapping[str, str] | None = None,
    relays: Sequence[str] = (),
    seal: bool = True,
    retention: str = AUTO,
) -> System:
    """A system on this machine, in a data folder. `plan` None: every subscription gets a channel of its own."""
    return System(
        nats=URL_FILE,
        shards=shards,
        multicast=multicast,
        overlay=OverlaySection(keys=KEYS, brokers=brokers or {}),
        coordinator=CoordinatorSection(plan=None if plan is None else str(plan.resolve()), key=key),
        source=SourceSection(messages=messages),
        relay=RelaySection(gateways=tuple(relays)),
        security=SecuritySection(seal=seal),
        retention=retention,
        folder=folder,
    )


def local_multicast(folder: Path, *, interface: str, groups: int, domain: int | None) -> DdsSettings:
    """Where the multicast of a system on this machine goes: a domain and addresses that nobody here uses.

    Parameters
    ----------
    folder : the data folder; a system that was started there before keeps what it had, for its clients know it
    interface : the network interface
    groups : how many multicast groups there may be
    domain : the DDS domain if it is given, in use or not

    Returns
    -------
    DdsSettings : group addresses are those of 239.DOMAIN.0.0/16

    Raises
    ------
    TransportError : every domain is in use on this machine
    """
    if domain is None:
        domain = _last_domain(folder)
    if domain is None:
        domain = next((d for d in (*range(HERE.domain, 231), *range(HERE.domain)) if is_unused(d, interface)), None)
    if domain is None:
        raise TransportError("every DDS domain from 0 to 230 is in use on this machine", endpoint=interface)
    return DdsSettings(interface=interface, domain=domain, groups=groups, network=f"239.{domain}.0.0/16")


def _last_domain(folder: Path) -> int | None:
    try:
        known = System.read(folder / CONFIGURATION).multicast
    except InputError:
        return None
    return None if known is None else known.domain


def kept_id(folder: Path) -> str:
    """The id of the system in a data folder, made at its first start."""
    path = folder / ID
    if not path.exists():
        write_private(path, new_id() + "\n")
    return path.read_text(encoding="utf-8").strip()


def brokers_of(plan: Plan | None) -> dict[str, str]:
    """The brokers of a plan's trees, each with a free port on loopback; a plan of flows must know its key."""
    if plan is None:
        return {}
    from narrowcast.deliver.routing.routes import Subscribers
    from narrowcast.deliver.transport import Overlay
    from narrowcast.plans.kinds import kind_of

    routing = kind_of(plan.kind).route.route(plan, Subscribers({}, {}), None)
    trees = [address for address in routing.addresses.values() if isinstance(address, Overlay)]
    names = sorted({name for tree in trees for name in tree.brokers} | set(getattr(plan, "every_broker", ())))
    return {name: f"tcp://127.0.0.1:{free_port()}" for name in names}


def relays_of(plan: Plan | None) -> tuple[str, ...]:
    """The gateways where a plan needs relays: those of a network's sites."""
    return getattr(plan, "relay_gateways", ())


class Supervisor:
    """Starts the processes, starts again those that die, and stops them all."""

    def __init__(
        self, system: System, *, sync: str = "always", listen: str = LOOPBACK, tls: Mapping[str, Path] | None = None
    ) -> None:
        """`system` as `local_system` makes it; `sync`: when its log goes to disk, always or after an interval.

        `listen`: the address at which NATS is reached. `tls`: the files of its `cert`, `key` and `ca`.
        """
        self.system, self.data = system, system.folder
        self.server = NatsServer(self.data, host=listen, sync=sync, tls=tls or {})
        self.accounts, self.audit = Accounts(self.data), Audit(self.data)
        self._served = self._admitted = ""  # the state of the accounts that NATS lets in, and that all know of
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._again: dict[str, float] = {}
        self._ready = False
        self._disk, self._stuck = Disk(self.data), False
        self._link: NatsLink | None = None
        self._failed: set[str] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set."""
        refuse_second(self.data)
        try:
            await self._begin()
            await self._wait_ready(stop)
            while not stop.is_set():
                await self._look_after()
                await _sleep(stop, 0.2)
        except OSError as error:
            raise TransportError(f"{self.data}: {error.strerror or error}", endpoint=str(self.data)) from None
        finally:
            await self._stop()

    async def _begin(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = kept_retention(self.data, self.system.retention)
        self.system = replace(self.system, id=kept_id(self.data), retention=kept)
        write_private(self.data / CONFIGURATION, self.system.to_toml())
        for role in SERVICES:
            self.accounts.add(account_of(role, role), known=True)
        self._served = self.accounts.state
        self.server.users = self._users()
        await self.server.start()
        for account in self.accounts.listed():
            if account.name in SERVICES:
                text = account.credential(self.server.url, self.server.authority)
                write_private(self.data / f"{account.name}.credential", text)
        self._tell()
        for name in self._roles():
            self._start(name)
        self._tell()

    def _users(self) -> str:
        return nats_users(self.accounts.listed(), self.system.system, self.system.shards)

    async def _admit(self) -> None:
        """Let in whoever has an account now: NATS first, which drops who has none, then coordinator and gate."""
        state = self.accounts.state
        if state == self._admitted or not self._ready:
            return
        if state != self._served:
            await self.server.admit(self._users())
            self._served = state
        base = await backbone(url_of(self.data), name="up", system=self.system.system, patience=5.0)
        try:
            await write_accounts(base.registry, self.accounts.listed())
        finally:
            await base.close()
        self._admitted = state
        self._tell()

    async def _look_after(self) -> None:
        """What fails now, on a full disk say, may work the next time. It is said once."""
        failed = set()
        for duty in (self._revive, self._admit, self._watch_disk):
            try:
                await duty()
            except (OSError, TransportError) as error:
                failed.add(str(error))
        for why in failed - self._failed:
            log.warning("%s; trying again", why)
        self._failed = failed

    async def _watch_disk(self) -> None:
        """Tell publishers while the disk is full; once it is not, start a server that was stopped by it anew."""
        before = self._disk.full or self._stuck
        self._disk.look()
        self._stuck |= self.server.lacked_space() or self._disk.touched
        self.audit.harvest(self.server.said)
        if not (before or self._disk.full or self._stuck):
            return
        if not before:
            free = self._disk.free // 10**6
            log.warning("the disk of %s is full (%d MB free): nothing is published until it has room", self.data, free)
        if self._link is None:
            self._link = await connect_nats(url_of(self.data), system=self.system.system, name="up", patience=1.0)
        if self._disk.full:
            await self._link.publish(DISK, DISK_FULL)
            return
        if self._stuck:
            await self.server.end()
            await self._revive()
            self._stuck = self._disk.touched = False
        log.warning("the disk of %s has room again: publishing goes on", self.data)
        await self._link.publish(DISK, DISK_FREE)

    def _roles(self) -> list[str]:
        sources = [f"source-{shard}" for shard in self.system.every_shard]
        brokers, relays = self.system.overlay.brokers, self.system.relay.gateways
        between = [role for role, needed in (("brokers", brokers), ("relay", relays)) if needed]
        return ["coordinator", *between, *sources, "gate"]

    def _start(self, name: str) -> None:
        role, _, shard = name.partition("-")
        mine = replace(self.system, nats=f"{role.removesuffix('s')}.credential")  # the same file, for this one
        if shard:
            mine = replace(mine, source=replace(mine.source, name=name, shard=int(shard)))
        path = self.data / f"{name}.toml"
        if not path.exists() or path.read_text(encoding="utf-8") != mine.to_toml():  # the disk may be full
            write_private(path, mine.to_toml())
        command = [sys.executable, "-m", "narrowcast.deliver.processes.roles", role, str(path)]
        if self.system.metrics.port is not None:  # a port for each, from this one on
            command.append(str(self.system.metrics.port + self._roles().index(name)))
        with (self.data / f"{name}.log").open("ab") as out:
            self.processes[name] = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    async def _revive(self) -> None:
        now = time.monotonic()
        dead = self.server.process is not None and self.server.process.poll() is not None
        if dead and now >= self._again.get("nats-server", 0.0):
            log.warning("nats-server exited; restarting it")
            self._again["nats-server"] = now + 1.0
            await self.server.start()
            self._tell()
        for name, process in list(self.processes.items()):
            if process.poll() is not None and now >= self._again.get(name, 0.0):
                log.warning("%s exited with code %s; restarting it", name, process.returncode)
                self._again[name] = now + 1.0
                self._start(name)
                self._tell()

    async def _wait_ready(self, stop: asyncio.Event, timeout: float = 30.0) -> None:
        """Until every source shows itself in the registry."""
        end = time.monotonic() + timeout
        wanted = {records.named(records.NODE, name) for name in self._roles() if name.startswith("source")}
        while not stop.is_set() and time.monotonic() < end:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise TransportError(f"{name} did not start: {_last_line(self.data / f'{name}.log')}")
            try:
                base = await backbone(url_of(self.data), name="up", patience=2.0)
            except TransportError:
                await _sleep(stop, 0.1)
                continue
            try:
                while not stop.is_set() and time.monotonic() < end:
                    found = [await base.registry.get(key) for key in sorted(wanted)]
                    if all(value.data is not None for value in found):
                        self._ready = True
                        self._tell()
                        return
                    await _sleep(stop, 0.05)
            finally:
                await base.close()

    def _tell(self) -> None:
        pids = {name: process.pid for name, process in self.processes.items()}
        if self.server.process is not None:
            pids["nats-server"] = self.server.process.pid
        state = {"pid": os.getpid(), "ready": self._ready, "accounts": self._admitted, "processes": pids}
        write_private(self.data / STATE, json.dumps(state, indent=2) + "\n")

    async def _stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                await asyncio.to_thread(process.wait, 5)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._link is not None:
            await self._link.close()
        await self.server.stop()
        with suppress(OSError):
            (self.data / STATE).unlink(missing_ok=True)


def state_of(data: Path) -> dict[str, object] | None:
    """What a running supervisor wrote about itself; None if none runs."""
    try:
        state: dict[str, object] = json.loads((data / STATE).read_text(encoding="utf-8"))
        os.kill(int(str(state["pid"])), 0)
    except (OSError, ValueError, KeyError):
        return None
    return state


def start_detached(local_arguments: list[str], data: Path, timeout: float = 40.0) -> int:
    """Start `narrowcast up` in a session of its own and return its process id once it is ready."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    log_path = data / "up.log"
    with log_path.open("ab") as out:
        command = [sys.executable, "-m", "narrowcast.cli", "up", *local_arguments]
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if process.poll() is not None:
            raise TransportError(_last_line(log_path).removeprefix("narrowcast: "))
        state = state_of(data)
        if state is not None and state["pid"] == process.pid and state["ready"]:
            _STARTED[process.pid] = process
            return process.pid
        time.sleep(0.05)
    process.terminate()
    raise TransportError(f"not ready after {timeout:g} s; see {log_path}", endpoint=str(data))


def stop_running(data: Path, timeout: float = 15.0) -> bool:
    """End the supervisor of a data folder and all it started; whether there was one."""
    state = state_of(data)
    if state is None:
        return False
    pid = int(str(state["pid"]))
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if not _alive(pid):
            if pid in _STARTED:
                _STARTED.pop(pid).wait()
            return True
        time.sleep(0.05)
    raise TransportError(f"process {pid} did not stop", endpoint=str(data), limit=f"{timeout:g} s")


def _alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet buried does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def refuse_second(data: Path) -> None:
    """One system per data folder."""
    state = state_of(data)
    if state is not None and state["pid"] != os.getpid():
        raise InputError(
            f"{data} is in use: narrowcast up runs there as process {state['pid']}",
            name="system",
            hint="narrowcast down, or --system another folder",
        )


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.exists() else []
    return lines[-1] if lines else "its log is empty"


async def _sleep(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
